"""`MachineDoctor`: what the machine of a process says of it. For people, and for the last look before a stop."""

from collections.abc import Sequence
from typing import Protocol

from activities.ports.nodes import MemberMachine, NodeDriver
from domain.cluster import NodeSpec
from domain.diagnosis.machines.vital_signs import PortHolder, VitalSigns


class MachineDoctor(Protocol):
    """Reads only. Raises `CannotLook` where a machine cannot run what is asked, and `Transient`."""

    async def watch(self, driver: NodeDriver, node: NodeSpec, pid: int) -> VitalSigns | None:
        """What keeps a node's process from its work. Takes a second. `None` where nothing can be told."""

    async def watch_server(
        self, machine: MemberMachine, port: int, data_dirs: Sequence[str], *, is_shut: bool
    ) -> VitalSigns | None:
        """The same of a server of ZooKeeper, by the port at which it listens. `is_shut`: it accepts no connection there; `None`
        where it does not run."""

    async def watch_ourselves(self) -> VitalSigns | None:
        """The same of this process."""

    async def holders(self, machine: NodeDriver | MemberMachine, ports: Sequence[int]) -> tuple[PortHolder, ...]:
        """The processes that have these ports there."""


class NoDoctor:
    """Asks no machine: nothing is known of any."""

    async def watch(self, driver: NodeDriver, node: NodeSpec, pid: int) -> None:
        return None

    async def watch_server(self, machine: MemberMachine, port: int, data_dirs: Sequence[str], *, is_shut: bool) -> None:
        return None

    async def watch_ourselves(self) -> None:
        return None

    async def holders(self, machine: NodeDriver | MemberMachine, ports: Sequence[int]) -> tuple[PortHolder, ...]:
        return ()
