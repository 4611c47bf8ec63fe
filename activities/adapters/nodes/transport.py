"""The two halves of a node driver. A service manager is written on `Transport` alone, so it works over every transport."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from activities.ports.nodes import Completed, FileContent
from domain.diagnosis.machines.node_output import NodeOutput
from domain.observed.observation import Process


class Transport(Protocol):
    """A machine's files and programs. Limits, errors and meaning of absence as in `activities.ports.NodeDriver`."""

    async def read_file(self, path: str) -> FileContent | None: ...

    async def write_file(self, path: str, file: FileContent) -> None: ...

    async def remove_file(self, path: str) -> None: ...

    async def read_part(self, path: str, offset: int, length: int) -> bytes | None: ...

    async def rename(self, old: str, new: str) -> None: ...

    async def remove_tree(self, path: str) -> None: ...

    async def list_dir(self, path: str) -> tuple[str, ...] | None: ...

    async def make_dir(self, path: str) -> None: ...

    async def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], timeout: timedelta, stdin: bytes = b""
    ) -> Completed:
        """Run a program in `/` with `environment` added to a bare one. The caller's own environment is not passed on.

        No other user of the machine may see `environment` and `stdin`: a transport passes neither on a command line.
        """


class ServiceManager(Protocol):
    """A node's process. Errors as in `activities.ports.NodeDriver`."""

    async def process(self) -> Process: ...

    async def start(self) -> None: ...

    async def stop(self, identity: str, deadline: timedelta) -> None: ...

    async def kill(self, identity: str, deadline: timedelta) -> None: ...

    async def output(self, lines: int, logs: Sequence[str] = ()) -> NodeOutput: ...
