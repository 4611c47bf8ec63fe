"""Requests for which no Python admin client has a call: client quotas (KIP-546), and configs of the default broker.

confluent-kafka refuses an empty resource name, kafka-python one that is no number; kafka-python has the messages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kafka import KafkaAdminClient
from kafka.errors import for_code
from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafka.protocol.api_message import ApiMessage

BROKER_RESOURCE = 4
DEFAULT_BROKER = ""
SET = 0

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Quota:
    """`entity`: type (`user`, `client-id`, `ip`) → name, None for the default entity. `values`: quota key → value."""

    entity: Mapping[str, str | None]
    values: Mapping[str, float]


def alter_quotas(bootstrap_servers: Sequence[str], quotas: Sequence[Quota]) -> None:
    """Raises kafka-python's error for the first quota that the broker refuses."""
    entry = AlterClientQuotasRequest.EntryData
    request = AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type=kind, entity_name=name) for kind, name in quota.entity.items()],
                ops=[entry.OpData(key=key, value=value, remove=False) for key, value in quota.values.items()],
            )
            for quota in quotas
        ],
        validate_only=False,
    )
    for result in _ask(bootstrap_servers, request, AlterClientQuotasResponse).entries:
        _raise_if_refused(f"quota of {result.entity}", result.error_code, result.error_message)


def set_default_broker_configs(bootstrap_servers: Sequence[str], configs: Mapping[str, str]) -> None:
    """The dynamic settings that hold for every broker without one of its own."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    request = IncrementalAlterConfigsRequest(
        resources=[
            resource(
                resource_type=BROKER_RESOURCE,
                resource_name=DEFAULT_BROKER,
                configs=[
                    resource.AlterableConfig(name=name, config_operation=SET, value=value) for name, value in configs.items()
                ],
            )
        ],
        validate_only=False,
    )
    for result in _ask(bootstrap_servers, request, IncrementalAlterConfigsResponse).responses:
        _raise_if_refused("configs of the default broker", result.error_code, result.error_message)


def _ask(bootstrap_servers: Sequence[str], request: ApiMessage, answer: type[Answer]) -> Answer:
    admin = KafkaAdminClient(bootstrap_servers=list(bootstrap_servers), client_id="playground")
    try:
        response = admin._manager.run(admin._manager.send, request)
    finally:
        admin.close()
    if not isinstance(response, answer):
        raise TypeError(f"{type(response).__name__} in answer to {type(request).__name__}, {answer.__name__} expected")
    return response


def _raise_if_refused(what: str, error_code: int, error_message: str | None) -> None:
    if error_code:
        raise for_code(error_code)(f"{what}: {error_message}")
