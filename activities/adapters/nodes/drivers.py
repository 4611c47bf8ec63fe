"""From a node's spec to its driver."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from activities.adapters.nodes.local import LocalMachine
from activities.adapters.nodes.plain_process import PidFileProcess
from activities.ports.nodes import Completed, FileContent, ServiceManager, Transport
from domain.cluster import NodeSpec, ZooKeeperMemberSpec
from domain.diagnosis.machines.node_output import NodeOutput
from domain.observed.observation import Process


class ComposedDriver:
    """A `NodeDriver`: a transport and a service manager, nothing else."""

    def __init__(self, transport: Transport, service: ServiceManager) -> None:
        self._transport = transport
        self._service = service

    async def read_file(self, path: str) -> FileContent | None:
        return await self._transport.read_file(path)

    async def write_file(self, path: str, file: FileContent) -> None:
        await self._transport.write_file(path, file)

    async def remove_file(self, path: str) -> None:
        await self._transport.remove_file(path)

    async def read_part(self, path: str, offset: int, length: int) -> bytes | None:
        return await self._transport.read_part(path, offset, length)

    async def rename(self, old: str, new: str) -> None:
        await self._transport.rename(old, new)

    async def remove_tree(self, path: str) -> None:
        await self._transport.remove_tree(path)

    async def list_dir(self, path: str) -> tuple[str, ...] | None:
        return await self._transport.list_dir(path)

    async def make_dir(self, path: str) -> None:
        await self._transport.make_dir(path)

    async def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], timeout: timedelta, stdin: bytes = b""
    ) -> Completed:
        return await self._transport.run(arguments, environment, timeout, stdin)

    async def process(self) -> Process:
        return await self._service.process()

    async def start(self) -> None:
        await self._service.start()

    async def stop(self, identity: str, deadline: timedelta) -> None:
        await self._service.stop(identity, deadline)

    async def kill(self, identity: str, deadline: timedelta) -> None:
        await self._service.kill(identity, deadline)

    async def output(self, lines: int, logs: Sequence[str] = ()) -> NodeOutput:
        return await self._service.output(lines, logs)

    async def output_tail(self, lines: int) -> tuple[str, ...]:
        return (await self.output(lines)).lines


class SpecDrivers:
    """`NodeDrivers`, and `ZooKeeperMembers`. Drivers hold no state, so one is made for each asking."""

    def __init__(self) -> None:
        self._local = LocalMachine()

    def driver(self, node: NodeSpec) -> ComposedDriver:
        return ComposedDriver(self._local, PidFileProcess(self._local, node))

    def machine(self, _member: ZooKeeperMemberSpec) -> Transport:
        """Every transport that a member can have is this machine so far."""
        return self._local
