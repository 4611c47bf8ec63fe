"""What ZooKeeper-mode and hybrid brokers do in ZooKeeper: sessions, the controller's claim, topics and partition states."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence

from activities.observing.zookeeper_view import KEPT_PATHS
from playground.fakes.topics import FakeTopic
from playground.fakes.tree import Znodes
from playground.fakes.znodes import (
    BROKER_IDS,
    CLUSTER_ID,
    CONTROLLER,
    CONTROLLER_EPOCH,
    TOPICS,
    claim_record,
    encoded,
    registration,
    state_path,
    state_record,
    topic_record,
)

SESSION = 0x1000_0000_0000_0000
"""A broker's session id: this and its own id."""


class ZooKeeperSide:
    def __init__(self, cluster_id: str) -> None:
        self.znodes = Znodes()
        self.znodes[CLUSTER_ID] = encoded({"version": "1", "id": cluster_id})
        self.znodes[CONTROLLER_EPOCH] = b"0"
        for path in KEPT_PATHS:
            self.znodes[path] = b""

    def answer(self, word: str, is_leader: bool, others: Mapping[int, str]) -> str:
        """What a server says to a word of four letters (3.8.4)."""
        if word == "srvr":
            return f"Latency min/avg/max: 0/0.5/21\nOutstanding: 0\nMode: {'leader' if is_leader else 'follower'}\n"
        sessions = {SESSION + int(name): f"10.0.0.{name}:40000" for name in self.znodes.children(BROKER_IDS)} | dict(others)
        lines = [f" /{client}[1](queued=0,recved=9,sent=9,sid={sid:#x},lop=PING)" for sid, client in sessions.items()]
        return "\n".join([" /127.0.0.1:50000[0](queued=0,recved=1,sent=0)", *(lines if is_leader else ()), ""])

    # ---- the controller ----

    @property
    def controller(self) -> int | None:
        """The broker whose claim `/controller` is; `None` also while it is KRaft's."""
        found = self.znodes.find(CONTROLLER)
        return found.ephemeral_owner - SESSION if found is not None and found.ephemeral_owner else None

    @property
    def controller_epoch(self) -> int:
        return int(self.znodes[CONTROLLER_EPOCH])

    def keep_sessions(self, alive: Collection[int]) -> None:
        """What belongs to a session lives as long as it does. KRaft's claim belongs to none."""
        known = {int(name) for name in self.znodes.children(BROKER_IDS)}
        for gone in known - set(alive):
            del self.znodes[f"{BROKER_IDS}/{gone}"]
        for new in sorted(set(alive) - known):
            content = registration(new)
            self.znodes.create(f"{BROKER_IDS}/{new}", content, SESSION + new)
        if self.controller is not None and self.controller not in alive:
            del self.znodes[CONTROLLER]

    def elect(self, alive: Sequence[int]) -> None:
        """The first one to create `/controller` is it, in the epoch after the one it finds written."""
        if CONTROLLER in self.znodes or not alive:
            return
        self.znodes.create(CONTROLLER, claim_record(alive[0], -1), SESSION + alive[0])
        self.raise_epoch()

    def raise_epoch(self) -> None:
        self.znodes[CONTROLLER_EPOCH] = str(self.controller_epoch + 1).encode()

    # ---- topics ----

    def topic_names(self) -> set[str]:
        return set(self.znodes.children(TOPICS))

    def write_topic(self, topic: FakeTopic, epoch: int) -> None:
        self.znodes[f"{TOPICS}/{topic.name}"] = topic_record(topic)
        for partition, replicas in enumerate(topic.assignment):
            self.znodes[state_path(topic.name, partition)] = state_record(replicas, 0, epoch)

    def delete_topic(self, name: str) -> None:
        for path in [p for p in self.znodes if p == f"{TOPICS}/{name}" or p.startswith(f"{TOPICS}/{name}/")]:
            del self.znodes[path]

    def write_states(
        self, topics: Collection[FakeTopic], in_sync: Collection[int], epoch: int, *, rewrite: bool = False
    ) -> None:
        """The in-sync replicas of every partition where they have changed; with `rewrite`, of all.

        A controller does not touch what one of a later epoch wrote: KAFKA-20488.
        """
        for topic in topics:
            for partition, replicas in enumerate(topic.assignment):
                path, isr = state_path(topic.name, partition), [r for r in replicas if r in in_sync]
                if path not in self.znodes or not isr:
                    continue
                state = json.loads(self.znodes[path])
                if (rewrite or state["isr"] != isr) and state["controller_epoch"] <= epoch:
                    self.znodes[path] = state_record(isr, state["leader_epoch"] + (state["leader"] != isr[0]), epoch)

    def trapped(self, topics: Collection[FakeTopic]) -> Iterator[str]:
        """Partitions that ZooKeeper's controller cannot elect a leader for: their state is of a later epoch than its own."""
        for topic in topics if self.controller is not None else ():
            for partition in range(len(topic.assignment)):
                path = state_path(topic.name, partition)
                if path in self.znodes and json.loads(self.znodes[path])["controller_epoch"] > self.controller_epoch:
                    yield f"{topic.name}-{partition}"
