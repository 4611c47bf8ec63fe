"""The connection to Temporal: made on first use, every call within a time limit, errors of our own.

    Transient
    └── TemporalUnavailable   it does not answer, or is too busy: try again
    Permanent
    └── TemporalRefused       carries the status: no such run, no permission, not registered

A call's `rpc_timeout` bounds one attempt, and the SDK makes ten within ten seconds: so the limit is set around the whole
call, and few attempts are made. What was given up may still happen. The ledger fences it: a run whose migration has ended
cannot claim the cluster.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio.api.errordetails.v1 import ResourceExhaustedFailure
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.service import RetryConfig, RPCError, RPCStatusCode

from domain.diagnosis.recorded_causes import TEMPORAL_SAID
from domain.errors import Permanent, Transient

CALL_LIMIT = timedelta(seconds=1.5)
"""For one call, connecting included. A caller of ours is answered within two seconds."""

DEFAULT_ADDRESS = "localhost:7233"
"""What Temporal's own CLI uses when nothing is set."""

FEW_RETRIES = RetryConfig(max_elapsed_time_millis=1000, max_retries=3)

SAID = 300
"""Characters of what Temporal says of an error."""

CODES = "|".join(status.name.title().replace("_", "") for status in RPCStatusCode)
STATUS = re.compile(rf'\bcode: ({CODES}), message: "([^"]*)"')
CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
"""How the SDK tells the status of its first call, in the text of its error."""

MAY_PASS = frozenset(
    {
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.CANCELLED,
        RPCStatusCode.RESOURCE_EXHAUSTED,
        RPCStatusCode.ABORTED,
        RPCStatusCode.INTERNAL,
        RPCStatusCode.UNKNOWN,
    }
)


SAYS_ALL = frozenset({RPCStatusCode.UNIMPLEMENTED, RPCStatusCode.FAILED_PRECONDITION})
"""Refusals of which no other cause is usual than what is said."""

USUAL = (
    "Usual causes: the namespace or a search attribute (Cluster, MigrationKind, Phase, MigrationId, Waiting) is not "
    "registered, a permission is missing, its dynamic configuration forbids it"
)


class TemporalUnavailable(Transient):
    """Temporal does not answer in time; or it does, and cannot do it. `said`: then the first that it says of why. `limit`:
    which of its limits was reached, where it says so.
    """

    def __init__(self, words: str, said: str = "", status: RPCStatusCode | None = None, limit: int = 0) -> None:
        super().__init__(f"{words}: {said}" if said else f"{words}; try again")
        self.said, self.status, self.limit = said, status, limit


class TemporalRefused(Permanent):
    """Temporal answered, and said no. `said`: in its words. `why`: what is known besides, in place of the usual causes."""

    def __init__(self, status: RPCStatusCode, said: str, why: str = "") -> None:
        causes = why or ("" if status in SAYS_ALL else USUAL)
        super().__init__(f"{TEMPORAL_SAID} {status.name}: {said}. {causes}".rstrip())
        self.status, self.said = status, said


class Temporal:
    """One client for one event loop. `call_limit`: for calls of which nothing else is said."""

    def __init__(self, config: ClientConnectConfig, call_limit: timedelta = CALL_LIMIT) -> None:
        self._config, self._call_limit = config, call_limit
        self._client: Client | None = None
        self._turn = asyncio.Lock()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "Temporal":
        """Settings as Temporal's CLI reads them: `TEMPORAL_*`, and profiles. `None`: this process's environment."""
        return cls(ClientConfig.load_client_connect_config(override_env_vars=environment))

    @property
    def namespace(self) -> str:
        return self._config.get("namespace", "default")

    @property
    def address(self) -> str:
        return self._config.get("target_host") or DEFAULT_ADDRESS

    @asynccontextmanager
    async def answering(self, limit: timedelta | None = None) -> AsyncIterator[Client]:
        """The client, for calls that all end within `limit`. Raises `TemporalUnavailable` or `TemporalRefused`."""
        limit = limit or self._call_limit
        try:
            async with asyncio.timeout(limit.total_seconds()):
                yield await self._connected()
        except TimeoutError as error:
            raise TemporalUnavailable(f"Temporal did not answer within {limit.total_seconds():g} s") from error
        except RPCError as error:
            raise _answered(error.status, error.message, _limit_of(error)) from error

    async def why_unserved(self) -> TemporalUnavailable | None:
        """Why a new connection finds nobody at its address; `None` where it finds Temporal, which says what it can do without
        asking its database.
        """
        try:
            async with asyncio.timeout(self._call_limit.total_seconds()):
                await self._connect()
        except TimeoutError:
            return TemporalUnavailable(f"no connection to Temporal within {self._call_limit.total_seconds():g} s")
        except TemporalUnavailable as error:
            return error
        except TemporalRefused:
            return None
        return None

    async def ping(self) -> None:
        """Ask for the namespace: proves the server, the way to it and our settings."""
        async with self.answering() as client:
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))

    async def _connected(self) -> Client:
        async with self._turn:
            if self._client is None:
                self._client = await self._connect()
            return self._client

    async def _connect(self) -> Client:
        config = ClientConnectConfig(**self._config)
        config["target_host"] = self.address
        try:
            return await Client.connect(
                **config,
                data_converter=pydantic_data_converter,
                retry_config=FEW_RETRIES,
                connect_timeout=self._call_limit,
            )
        except RuntimeError as error:  # All that the SDK has for "no connection", and for what is answered to its first call.
            if (answer := STATUS.search(str(error))) is not None:
                raise _answered(RPCStatusCode[CAPITAL.sub("_", answer[1]).upper()], answer[2]) from error
            raise TemporalUnavailable(f"no connection to Temporal at {self.address} ({error})") from error


def _answered(status: RPCStatusCode, said: str, limit: int = 0) -> "TemporalUnavailable | TemporalRefused":
    if status in MAY_PASS:
        return TemporalUnavailable(f"Temporal answered {status.name}", said[:SAID], status, limit)
    return TemporalRefused(status, said[:SAID].rstrip("."))


def _limit_of(error: RPCError) -> int:
    """A `ResourceExhaustedCause`; 0 where none is told, as by a proxy."""
    told = ResourceExhaustedFailure()
    return next((told.cause for detail in error.grpc_status.details if detail.Unpack(told)), 0)
