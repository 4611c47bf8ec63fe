"""Canaries and the longest pause on real servers, under continuous writes, through POST /migrations."""

import json
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclBindingFilter, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from domain.canaries import PREFIX
from playground.clients import admin_client
from playground.processes import running, wait_until
from playground.rig import PLANNED_RESTARTS, Rig

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800), pytest.mark.chaos]

DELETE_DELAY = 120
"""Seconds until Kafka has removed a deleted topic's files: `file.delete.delay.ms` is a minute."""


def test_canaries_come_and_go_at_every_restarted_broker_and_nothing_of_them_is_left(rig: Rig) -> None:
    rig.register()
    seen: set[str] = set()
    watching = Watch(rig, seen)
    watching.start()
    migration_id = rig.migrate(canaries=True, max_client_pause="PT60S")
    gate = rig.await_gate(migration_id, deadline_seconds=900)
    watching.stop()
    name = f"{PREFIX}{migration_id}"
    assert {f"/brokers/topics/{name}-{broker}" for broker in (1, 2, 3)} <= seen, "they were there"
    assert {f"/config/users/{name}-{broker}" for broker in (1, 2, 3)} <= seen
    assert {f"/kafka-acl/Group/{name}-{broker}" for broker in (1, 2, 3)} <= seen
    assert left_over(rig) == []
    assert rig.approve(migration_id, gate["evidence_hash"]).status_code == 201
    ended = rig.await_end(migration_id)
    assert (ended["state"], ended["phase"]) == ("succeeded", "KRAFT")
    assert rig.restarts(migration_id) == PLANNED_RESTARTS
    assert_events_tell_it(rig.events(migration_id))
    assert told_by_kafka(rig) == []
    report = rig.verify()
    assert report.lost == frozenset()
    wait_until(lambda: not files_of(rig), "the end of the files of deleted topics", DELETE_DELAY)


def assert_events_tell_it(events: list[dict[str, Any]]) -> None:
    done = [event["data"] for event in events if event["kind"] == "step-done"]
    tried = [data["node"] for data in done if data["action"] == "try-canaries"]
    rolled = [data for data in done if data["action"] == "roll-node" and data["node"].startswith("broker")]
    assert tried == [data["node"] for data in rolled], "each broker is tried after each of its restarts, before the next"
    assert len(tried) == 6
    pauses = [data["client_pause_seconds"] for data in rolled]
    print("longest pauses", pauses)
    assert all(0 < pause < 60 for pause in pauses)
    assert not [event for event in events if event["kind"] == "held"]


class Watch(threading.Thread):
    """Notes what appears in ZooKeeper under the reserved prefix."""

    def __init__(self, rig: Rig, seen: set[str]) -> None:
        super().__init__()
        self._rig, self._seen, self._is_over = rig, seen, threading.Event()

    def run(self) -> None:
        with self._rig.by_hand.zookeeper() as client:
            while not self._is_over.wait(0.02):
                for folder in ("/brokers/topics", "/config/users", "/kafka-acl/Group"):
                    if client.exists(folder):
                        self._seen |= {f"{folder}/{name}" for name in client.get_children(folder) if name.startswith(PREFIX)}

    def stop(self) -> None:
        self._is_over.set()
        self.join()


def left_over(rig: Rig) -> list[str]:
    """Znodes of reserved names, and what Kafka tells."""
    with rig.by_hand.zookeeper() as client:

        def below(path: str) -> Iterator[str]:
            for name in client.get_children(path):
                child = f"{path.rstrip('/')}/{name}"
                yield child
                yield from below(child)

        znodes = [path for path in below("/") if PREFIX in path]
    return znodes + told_by_kafka(rig)


def told_by_kafka(rig: Rig) -> list[str]:
    admin = admin_client(rig.cluster.bootstrap_servers)
    wanted = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    names = [*admin.list_topics(timeout=10).topics, *admin.describe_user_scram_credentials().result(10)]
    names += [acl.name for acl in admin.describe_acls(wanted).result(10)]
    return [name for name in names if name.startswith(PREFIX)]


def files_of(rig: Rig) -> list[Path]:
    return [path for broker in rig.cluster.spec.brokers for log in broker.log_dirs for path in Path(log).glob(f"{PREFIX}*")]


def test_a_restart_that_makes_clients_wait_too_long_holds_the_migration_and_is_not_repeated(rig: Rig) -> None:
    rig.register()
    migration_id = rig.migrate(max_client_pause="PT3S", compare_messages=False)
    rig.await_event(migration_id, lambda e: is_roll(e, "step-started"), "the first roll of a broker")
    first = next(e["data"]["node"] for e in rig.seen if is_roll(e, "step-started"))
    broker = next(b for b in rig.cluster.spec.brokers if rig.cluster.spec.node_name(b.id) == first)
    before = running(rig.cluster.launch(broker.id))
    assert before is not None
    with rig.by_hand.zookeeper() as client:
        controller = json.loads(client.get("/controller")[0])["brokerid"]
    other = next(b for b in rig.cluster.spec.brokers if b.id not in {broker.id, controller})
    wait_until(lambda: not before.is_running(), "the middle of the restart", 120, every_seconds=0.02)
    freeze(rig, other.id, 4.5)
    waiting = rig.await_wait(migration_id, "held")
    assert "clients waited" in waiting["detail"]
    assert first in waiting["detail"]
    (done,) = [e["data"] for e in rig.events(migration_id) if is_roll(e, "step-done")]
    assert (done["node"], done["restarted"]) == (first, True)
    assert done["client_pause_seconds"] > 3
    rig.resume(migration_id)
    rig.await_event(
        migration_id,
        lambda e: is_roll(e, "step-done") and e["data"]["node"] != first,
        "the roll of the next broker",
    )
    assert rig.restarts(migration_id)[first] == 1, "what was too slow is not done again"
    assert rig.cluster.view() is not None


def is_roll(event: dict[str, Any], kind: str) -> bool:
    return event["kind"] == kind and event["data"]["action"] == "roll-node" and event["data"]["node"].startswith("broker")


def freeze(rig: Rig, broker_id: int, seconds: float) -> None:
    """A follower that stays in sync and does not fetch: nothing that it has to have is acknowledged meanwhile."""
    process = running(rig.cluster.launch(broker_id))
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        time.sleep(seconds)
    finally:
        process.send_signal(signal.SIGCONT)
