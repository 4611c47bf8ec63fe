"""Situations in which all is well, at some points of the way, and how to spoil one thing of them."""

from dataclasses import replace
from typing import Any

from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.situation import (
    BrokerSituation,
    Claim,
    ControllerSituation,
    DualWrite,
    QuorumState,
    Registration,
    Replication,
    Situation,
)
from domain.zk_to_kraft.steps import NodeStage

ZOOKEEPER, MIGRATION, KRAFT = NodeStage

SOAK = Situation(
    brokers=tuple(BrokerSituation(i, BrokerMode.KRAFT, KRAFT) for i in (1, 2, 3)),
    controllers=tuple(
        ControllerSituation(i, ControllerMode.MIGRATING, MIGRATION, is_leader=i == 3001, is_caught_up=True)
        for i in (3001, 3002, 3003)
    ),
    quorum=QuorumState.MIGRATION,
    claim=Claim.KRAFT,
    dual_write=DualWrite.CURRENT,
    registration=Registration.AGREES,
    replication=Replication.IN_SYNC,
    is_copy_made=True,
)
"""All brokers in KRaft mode, dual write current: any one node may restart."""


def all_brokers(mode: BrokerMode, stage: NodeStage, **cluster: Any) -> Situation:
    return replace(SOAK, brokers=tuple(BrokerSituation(i, mode, stage) for i in (1, 2, 3)), **cluster)


def all_controllers(s: Situation, **values: Any) -> Situation:
    return replace(s, controllers=tuple(replace(c, **values) for c in s.controllers))


def but(node_id: int, s: Situation, **values: Any) -> Situation:
    """The same, with another value of one node."""

    def changed(nodes: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(replace(node, **values) if node.id == node_id else node for node in nodes)

    return replace(s, brokers=changed(s.brokers), controllers=changed(s.controllers))


HYBRID = all_brokers(BrokerMode.HYBRID, MIGRATION)
EARLY = replace(HYBRID, quorum=QuorumState.POST_MIGRATION)
NEW = all_controllers(
    all_brokers(BrokerMode.ZOOKEEPER, ZOOKEEPER, claim=Claim.ZOOKEEPER, quorum=QuorumState.ABSENT, is_copy_made=False),
    mode=ControllerMode.ABSENT,
    is_caught_up=False,
    is_leader=False,
)
"""Before anything: no controller is there yet."""
LEFT = all_controllers(
    all_brokers(BrokerMode.ZOOKEEPER, ZOOKEEPER, claim=Claim.ZOOKEEPER, quorum=QuorumState.ABSENT, is_copy_made=False),
    mode=ControllerMode.FENCED,
    is_caught_up=False,
    is_leader=False,
)
"""The window is over, and every broker is back in ZooKeeper mode."""
WITHOUT_CONTROLLERS = all_controllers(LEFT, mode=ControllerMode.ABSENT, stage=None)
"""Before the start, and at the end of a rollback."""
FINAL = all_controllers(replace(SOAK, quorum=QuorumState.POST_MIGRATION), mode=ControllerMode.FINAL, stage=KRAFT)
