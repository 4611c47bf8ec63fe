"""The bare script: Kafka's guide, one node after the other, with the checks that a careful operator makes between nodes.

A broker counts as back once its own gauge says that it runs, every broker is registered and no partition is under-replicated,
in three looks in a row; a controller, once all of the quorum name one leader. It looks every 0.2 s, keeps and compares nothing,
and waits for no approval.
"""

import json
import time
from collections.abc import Callable
from typing import Any

import httpx

from activities.adapters.metrics.gauges import GAUGES, RAFT, RAFT_ATTRIBUTES
from bench.migration.stretches import Stretches
from domain.cluster import NodeSpec
from domain.errors import Transient
from domain.health.liveness import BROKER_STATE_RUNNING
from domain.observed.observation import MigrationGauge
from domain.zk_to_kraft.steps import NodeStage
from playground.by_hand import ByHand
from playground.cluster import PlaygroundCluster

LOOK_SECONDS = 0.2
LOOKS = 3
DEADLINE_SECONDS = 300.0
BROKER_STATE, ACTIVE, STATE = (GAUGES[name] for name in ("broker_state", "active_controller_count", "migration_gauge"))


class Bare:
    """One migration by script."""

    def __init__(self, cluster: PlaygroundCluster) -> None:
        self._cluster, self._hand = cluster, ByHand(cluster)
        self._http = httpx.Client(timeout=5, trust_env=False)
        self._told = Stretches()
        self.processor_seconds = 0.0

    def play(self) -> Stretches:
        """`processor_seconds` is this thread's own."""
        begun = time.thread_time()
        self._play()
        self.processor_seconds = time.thread_time() - begun
        return self._told

    def _play(self) -> None:
        spec = self._cluster.spec
        with self._told.step("preflight"):
            self._until(self._is_in_sync, "every replica in sync")
        with self._told.step("controllers"):
            self._hand.add_controllers()
            self._until(lambda: self._active() is not None, "a leader of the quorum that all name")
            self._until(lambda: self._state() == MigrationGauge.PRE_MIGRATION, "the state PRE_MIGRATION")
        brokers = self._with_controller_last()
        for broker in brokers:
            self._roll("roll 1", broker, NodeStage.MIGRATION)
        with self._told.step("copy"):
            self._until(lambda: self._state() == MigrationGauge.MIGRATION, "the end of the copy")
        for broker in brokers:
            self._roll("roll 2", broker, NodeStage.KRAFT)
        active = self._active()
        for controller in sorted(spec.controllers, key=lambda one: one.id == active):
            with self._told.step("finalising", spec.node_name(controller.id)):
                self._hand.restart_into(controller.id, NodeStage.KRAFT)
                self._stably(lambda: self._active() is not None, "a leader of the quorum that all name")
        with self._told.step("finalising"):
            self._until(lambda: self._state() == MigrationGauge.POST_MIGRATION, "the state POST_MIGRATION")

    def _with_controller_last(self) -> list[NodeSpec]:
        holder = (self._hand.znode("/controller") or {}).get("brokerid")
        return sorted(self._cluster.spec.brokers, key=lambda one: one.id == holder)

    def _roll(self, phase: str, broker: NodeSpec, stage: NodeStage) -> None:
        with self._told.step(phase, self._cluster.spec.node_name(broker.id)):
            self._hand.restart_into(broker.id, stage)
            self._stably(
                lambda: self._gauge(broker, BROKER_STATE) == BROKER_STATE_RUNNING and self._is_in_sync(),
                f"{broker.id} back",
            )

    def _is_in_sync(self) -> bool:
        view = self._cluster.view()
        return view is not None and frozenset(self._hand.broker_ids) <= view.broker_ids and not view.under_replicated

    def _active(self) -> int | None:
        """The controller that says it is active, where all controllers name one leader and it is that."""
        controllers = self._cluster.spec.controllers
        leaders = {self._gauge(controller, RAFT, RAFT_ATTRIBUTES["raft_leader"]) for controller in controllers}
        active = {controller.id for controller in controllers if self._gauge(controller, ACTIVE) == 1}
        return active.pop() if len(active) == 1 and leaders == active else None

    def _state(self) -> int | None:
        active = self._active()
        return None if active is None else self._gauge(self._cluster.spec.node(active), STATE)

    def _gauge(self, node: NodeSpec, bean: str, attribute: str = "Value") -> int | None:
        try:
            answer: dict[str, Any] = self._http.get(f"{node.metrics.url}/read/{bean}/{attribute}").json()
        except (httpx.TransportError, json.JSONDecodeError):
            return None
        return int(answer["value"]) if answer.get("status") == httpx.codes.OK else None

    def _until(self, is_so: Callable[[], bool], what: str) -> None:
        self._stably(is_so, what, 1)

    def _stably(self, is_so: Callable[[], bool], what: str, looks: int = LOOKS) -> None:
        deadline, good = time.monotonic() + DEADLINE_SECONDS, 0
        while True:
            good = good + 1 if is_so() else 0
            if good >= looks:
                return
            if time.monotonic() > deadline:
                raise Transient(f"waited {DEADLINE_SECONDS:g} s in vain: {what}")
            time.sleep(LOOK_SECONDS)
