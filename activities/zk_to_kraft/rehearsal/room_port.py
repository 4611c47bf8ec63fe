"""Where Kafka's copy is rehearsed."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from activities.zk_to_kraft.rehearsal.messages import Ended, Failed, NotIsolated, Order, Ready, Trying


class RehearsalRoom(Protocol):
    """Where a copy is rehearsed, and nothing of the world can be reached (`activities.zk_to_kraft.rehearsal.messages`)."""

    async def order(self, order: "Order") -> None:
        """Begin. The copied files, and the controller's, lie in the room's directory."""

    async def told(self) -> "Ready | NotIsolated | Trying | Failed | Ended":
        """The next thing that is told. `Transient` where the room is gone."""


class RehearsalRooms(Protocol):
    """Opens rooms on the machine of this worker."""

    def open(self, directory: Path) -> AbstractAsyncContextManager[RehearsalRoom]:
        """A room that works in `directory`, which is private. When it is left, or whoever opened it dies, all that runs in it
        ends, and the directory is removed. `Permanent`, with the reason, where this machine cannot isolate one.
        """

    def java(self, home: str | None) -> str:
        """This machine's `java`. `Permanent` where there is none."""

    def libs(self, kafka_home: str) -> str:
        """This machine's folder of Kafka's jars. `Permanent` where there is none."""
