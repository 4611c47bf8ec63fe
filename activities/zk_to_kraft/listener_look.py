"""What TLS and logins would make of the controllers' listener, before there is one. Writes nothing on any node.

Each node's stores for that listener are opened (`key_stores`); who would believe and let in whom is found from them here.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from cryptography import x509

from activities.observing.node_survey import keyed_digest
from activities.ports.nodes import NodeDriver
from activities.survey.certificates import is_believed
from activities.survey.key_stores import ELSEWHERE, NodeSettings, Stores, look_at_stores
from domain.cluster import ClusterSpec, ControllerSpec, NodeSpec
from domain.configuration.listener_security import LOGIN, options_of, principal_at, settings_of
from domain.configuration.protocol_map import PROTOCOL_MAP, merged_map
from domain.observed.survey import ListenerSecurity, PlainLogin
from domain.zk_to_kraft.node_config import is_inherited


def settings_of_node(node: NodeSpec, driver: NodeDriver, broker: Mapping[str, str], own: Mapping[str, str]) -> NodeSettings:
    """A controller gets what its base file does not have from the first broker, as its own file will be made."""
    inherited = {key: value for key, value in broker.items() if is_inherited(key)} if isinstance(node, ControllerSpec) else {}
    maps = [m for m in (own.get(PROTOCOL_MAP), broker.get(PROTOCOL_MAP)) if m]
    merged = {PROTOCOL_MAP: merged_map(maps[0], maps[-1])} if maps else {}
    return NodeSettings(node, driver, inherited | dict(own) | merged)


async def stores_of(spec: ClusterSpec, asked: NodeSettings) -> Stores:
    """Without TLS there are none."""
    if not spec.controller_security_protocol.endswith("SSL"):
        return Stores()
    settings = listener_settings(spec, asked.properties)
    return await look_at_stores(asked, settings, needs_key=isinstance(asked.node, ControllerSpec))


def security_of(
    spec: ClusterSpec, asked: Mapping[int, NodeSettings], stores: Mapping[int, Stores], key: bytes
) -> dict[int, ListenerSecurity]:
    """Per node what it has; whom each believes is found among all of them."""
    chains = {node_id: seen.chain for node_id, seen in stores.items() if seen.chain}
    return {node_id: _security(spec, one, stores[node_id], chains, key) for node_id, one in asked.items()}


def _security(
    spec: ClusterSpec, asked: NodeSettings, stores: Stores, chains: Mapping[int, Sequence[x509.Certificate]], key: bytes
) -> ListenerSecurity:
    settings = listener_settings(spec, asked.properties)
    mechanism = mechanism_of(asked.properties)
    trusted = stores.trusted
    believed = None if trusted is None else tuple(n for n, chain in chains.items() if is_believed(chain, trusted))
    found = ListenerSecurity(
        problems=tuple(stores.problems),
        unknown=tuple(stores.unknown),
        certificate=stores.certificate,
        believed=believed,
        checks_names=settings.get("ssl.endpoint.identification.algorithm", "https").strip() != "",
        client_auth=settings.get("ssl.client.auth", "none").strip().lower(),
        mechanism=mechanism,
        enabled=tuple(one.strip() for one in settings.get("sasl.enabled.mechanisms", "GSSAPI").upper().split(",")),
        login=plain_login(settings, key) if mechanism == "PLAIN" else None,
    )
    return found.model_copy(update={"principal": principal_at(spec.controller_security_protocol, asked.properties, found)})


def mechanism_of(properties: Mapping[str, str]) -> str:
    return properties.get("sasl.mechanism.controller.protocol", "GSSAPI").strip().upper()


def listener_settings(spec: ClusterSpec, properties: Mapping[str, str]) -> dict[str, str]:
    """Of the controllers' listener. The map of a file that does not know it yet would say another protocol."""
    mapped = {**properties, PROTOCOL_MAP: f"{spec.controller_listener}:{spec.controller_security_protocol}"}
    return settings_of(mapped, spec.controller_listener, mechanism_of(properties))


def plain_login(settings: Mapping[str, str], key: bytes) -> PlainLogin | None:
    """`None`: it is not in the properties, or a class of somebody's own decides."""
    login = settings.get(LOGIN, "")
    if not login or ELSEWHERE in login or any("callback.handler.class" in name for name in settings):
        return None
    options = options_of(login)
    digest = partial(keyed_digest, key, "password")
    accepts = {name.removeprefix("user_"): digest(value) for name, value in options.items() if name.startswith("user_")}
    return PlainLogin(user=options.get("username", ""), password=digest(options.get("password", "")), accepts=accepts)
