"""A node of the cluster, and where a server of ZooKeeper runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from domain.cluster import NodeSpec, ZooKeeperMemberSpec
from domain.diagnosis.machines.node_output import NodeOutput
from domain.observed.observation import Process


@dataclass(frozen=True)
class FileContent:
    """A file's bytes with what must survive an edit: permission bits and owner (numeric ids)."""

    content: bytes
    mode: int
    uid: int
    gid: int


@dataclass(frozen=True)
class Completed:
    """A finished program: exit code and both outputs, decoded."""

    exit_code: int
    output: str
    errors: str


class Transport(Protocol):
    """A machine's files and programs. Paths are the machine's own."""

    async def read_file(self, path: str) -> FileContent | None:
        """The file, or `None` when it does not exist."""

    async def write_file(self, path: str, file: FileContent) -> None:
        """Replace or create, atomically (a reader sees the old bytes or the new), durably, parents included (0700)."""

    async def remove_file(self, path: str) -> None:
        """Remove one file; not there is fine."""

    async def read_part(self, path: str, offset: int, length: int) -> bytes | None:
        """Up to `length` bytes from `offset`, fewer at the file's end; `None` when it does not exist. A negative offset
        counts from the end.
        """

    async def rename(self, old: str, new: str) -> None:
        """Give a file another name on the same file system, atomically and durably, replacing what has it.

        `old` not there is fine when `new` is: done already. `Permanent` when neither is there.
        """

    async def remove_tree(self, path: str) -> None:
        """Remove a directory with all that is in it, following no link; not there is fine."""

    async def list_dir(self, path: str) -> tuple[str, ...] | None:
        """Names in a directory, sorted, or `None` when it does not exist."""

    async def make_dir(self, path: str) -> None:
        """Create a directory with its parents; there already is fine."""

    async def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], timeout: timedelta, stdin: bytes = b""
    ) -> Completed:
        """Run a program in `/` to its end, with `environment` added to a bare one, not to the caller's own. A program that
        outlives `timeout` is ended, and `Transient` raised.

        Secrets are given in `stdin`, which the program may open again as `/dev/stdin`, or in `environment`. No other user of
        the machine may see either: a transport passes neither on a command line.
        """


class ServiceManager(Protocol):
    """A node's process. Written on `Transport` alone, so it works over every transport."""

    async def process(self) -> Process:
        """The node's process, alive or not. A zombie is not alive; a recycled pid is not the node's."""

    async def start(self) -> None:
        """Start the process, detached from us. Running already is fine. Does not wait for it to serve."""

    async def stop(self, identity: str, deadline: timedelta) -> None:
        """Ask the process with this identity to stop cleanly, and wait. Gone already is fine, and its successor is left alone.

        `Transient` after the deadline; never kills.
        """

    async def kill(self, identity: str, deadline: timedelta) -> None:
        """SIGKILL the process with this identity, and wait until it is gone. Gone already is fine, its successor is left alone.

        `Transient` after the deadline.
        """

    async def output(self, lines: int, logs: Sequence[str] = ()) -> NodeOutput:
        """The last lines that the process printed, wherever it prints them. `logs`: files that one which runs no more had open
        besides its output.
        """


class NodeDriver(Transport, ServiceManager, Protocol):
    """One node: its files, its programs, its process."""

    async def output_tail(self, lines: int) -> tuple[str, ...]:
        """The last lines that the process printed, without anything else; empty when there are none."""


class NodeDrivers(Protocol):
    """Gives the driver of a node."""

    def driver(self, node: NodeSpec) -> NodeDriver: ...


class MemberMachine(Protocol):
    """Where a server of the ensemble runs: its files, to be read only, and programs that only look. As in `NodeDriver`."""

    async def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], timeout: timedelta, stdin: bytes = b""
    ) -> Completed: ...

    async def list_dir(self, path: str) -> tuple[str, ...] | None: ...

    async def read_part(self, path: str, offset: int, length: int) -> bytes | None: ...


class ZooKeeperMembers(Protocol):
    """Gives the machine of a server of the ensemble."""

    def machine(self, member: ZooKeeperMemberSpec) -> MemberMachine: ...
