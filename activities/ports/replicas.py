"""Where replicas are, and how they are moved."""

from collections.abc import Collection, Mapping
from typing import Protocol

from domain.errors import Permanent
from domain.observed.replicas import Layout, Throttles
from domain.records import ClusterRecord

Targets = Mapping[tuple[str, int], tuple[int, ...] | None]
"""Replicas in order by topic and number; `None` cancels the reassignment that runs."""

THERE_IS_NONE = "this program moves no replicas"


class ReplicaAdmin(Protocol):
    """Reads and changes the assignment of replicas, in ZooKeeper mode and in KRaft mode. Raises `Transient` where a broker or
    the controller does not answer: what was asked for may have begun then."""

    async def layout(self, cluster: ClusterRecord) -> Layout:
        """Every partition with its running reassignment. Brokers that disagree on who is alive are `Transient`."""

    async def reassign(self, cluster: ClusterRecord, targets: Targets) -> dict[tuple[str, int], str]:
        """Ask the controller for these assignments: why it has refused one, by partition. What is accepted has only begun: it
        ends when the new replicas are in sync. KRaft accepts a broker that is down, and waits for it. A reassignment that
        runs already is replaced."""

    async def throttles(self, cluster: ClusterRecord, brokers: Collection[int], topics: Collection[str]) -> Throttles:
        """Those of these brokers, which have to be alive, and topics. A topic that does not exist has none."""

    async def set_throttles(self, cluster: ClusterRecord, wanted: Throttles) -> None:
        """Set these of brokers and topics, and no others; an empty value removes one. What is set by default stays. Read them
        again afterwards: a broker applies its own later."""


class NoReplicas:
    """A `ReplicaAdmin` of a worker that moves none."""

    async def layout(self, cluster: ClusterRecord) -> Layout:
        raise Permanent(THERE_IS_NONE)

    async def reassign(self, cluster: ClusterRecord, targets: Targets) -> dict[tuple[str, int], str]:
        raise Permanent(THERE_IS_NONE)

    async def throttles(self, cluster: ClusterRecord, brokers: Collection[int], topics: Collection[str]) -> Throttles:
        raise Permanent(THERE_IS_NONE)

    async def set_throttles(self, cluster: ClusterRecord, wanted: Throttles) -> None:
        raise Permanent(THERE_IS_NONE)
