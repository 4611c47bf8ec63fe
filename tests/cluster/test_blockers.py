"""Why is nothing happening? Faults injected into a real migration, one after the other: each is named, with its object and
what to do, within a quarter of a minute, and is gone once it is mended.
"""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from playground.by_hand import CONTROLLER, frozen
from playground.processes import running, wait_until
from playground.rig import Rig, running_node
from playground.services import Program
from playground.waypoints import DUAL_WRITE, ONE_HYBRID

pytestmark = [pytest.mark.cluster, pytest.mark.chaos, pytest.mark.timeout(900)]

NAMED_WITHIN_SECONDS = 15.0
MENDED_WITHIN_SECONDS = 90.0
DEAD_ID = 9


def items(rig: Rig, migration_id: str) -> list[dict[str, Any]]:
    return list(rig.answer("GET", f"/migrations/{migration_id}/blockers")["items"])


def await_named(rig: Rig, migration_id: str, code: str, about: str) -> dict[str, Any]:
    """The entry, once it is there: prints how long that took, and it must not take long."""
    found: list[dict[str, Any]] = []

    def is_named() -> bool:
        found[:] = [i for i in items(rig, migration_id) if (i["code"], i["object"]) == (code, about)]
        return bool(found)

    seconds = wait_until(is_named, f"{code} of {about}", 60)
    entry = found[0]
    print(f"--- {code} {about}: named after {seconds:.1f} s: {entry['observed'][:300]}")
    assert seconds <= NAMED_WITHIN_SECONDS
    assert all(entry[key] for key in ("observed", "expected", "fix", "since", "docs"))
    return entry


def await_gone(rig: Rig, migration_id: str, code: str, about: str) -> None:
    def is_gone() -> bool:
        return (code, about) not in {(i["code"], i["object"]) for i in items(rig, migration_id)}

    seconds = wait_until(is_gone, f"{code} of {about} to be gone", MENDED_WITHIN_SECONDS)
    print(f"--- {code} {about}: gone after {seconds:.1f} s")


def await_nothing_but_hold(rig: Rig, migration_id: str) -> None:
    def is_clear() -> bool:
        left = [(i["code"], i["object"]) for i in items(rig, migration_id)]
        return left == [("held", "the migration")]

    try:
        wait_until(is_clear, "nothing but the hold", MENDED_WITHIN_SECONDS)
    finally:
        print(f"--- left: {[(i['code'], i['object']) for i in items(rig, migration_id)]}")


def await_end_of_session(rig: Rig, broker_id: int) -> None:
    """Before it, a broker that was killed and is started again dies of its own registration, and of nothing else."""
    with rig.by_hand.zookeeper() as client:
        wait_until(lambda: not client.exists(f"/brokers/ids/{broker_id}"), f"the end of broker {broker_id}'s session", 60)


@contextmanager
def edited(path: Path, change: Callable[[str], str]) -> Iterator[None]:
    before = path.read_bytes()
    path.write_text(change(before.decode()))
    try:
        yield
    finally:
        path.write_bytes(before)


@contextmanager
def assigned_to_nobody(rig: Rig, topic: str) -> Iterator[None]:
    """Replica 9, which no broker has, in one partition's assignment."""
    path = f"/brokers/topics/{topic}"
    with rig.by_hand.zookeeper() as client:
        before, _ = client.get(path)
        content = json.loads(before)
        content["partitions"]["0"].append(DEAD_ID)
        client.set(path, json.dumps(content).encode())
        try:
            yield
        finally:
            client.set(path, before)


@contextmanager
def occupied(port: int) -> Iterator[None]:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        yield


def test_every_injected_fault_is_named_and_is_gone_once_it_is_mended(rig: Rig) -> None:
    rig.register()
    migration_id = rig.migrate()
    rig.forward_to(ONE_HYBRID, migration_id)
    hybrid = next(n for n in rig.migration(migration_id)["nodes"] if n["mode"] == "hybrid")["name"]
    hybrid_id = int(hybrid.rpartition("-")[2])
    plain_id = next(b.id for b in rig.cluster.spec.brokers if b.id != hybrid_id)
    held = await_named(rig, migration_id, "held", "the migration")
    assert "a person has to check" in held["observed"]
    await_nothing_but_hold(rig, migration_id)

    # A member of the ensemble stands still: nothing waits for it, and the way back hangs on it.
    server = rig.cluster.ensemble.servers[0]
    process = running(rig.cluster.ensemble.launch(server))
    assert process is not None
    with frozen(process.pid):
        await_named(rig, migration_id, "GF11", f"zookeeper {server.address}")
    await_gone(rig, migration_id, "GF11", f"zookeeper {server.address}")

    # An id in an assignment that nobody has: the copy would never begin.
    topic = sorted(rig.snapshot().content.topics)[0]
    with assigned_to_nobody(rig, topic):
        entry = await_named(rig, migration_id, "copy-not-complete", f"broker {DEAD_ID}")
        assert f"{topic}-0" in entry["observed"]
        assert "reassign" in entry["fix"]
    await_gone(rig, migration_id, "copy-not-complete", f"broker {DEAD_ID}")

    # A rolled broker's file, edited beside our keys, and across them.
    path = rig.by_hand.properties_file(hybrid_id)
    with edited(path, lambda text: f"{text}\n# somebody was here\n"):
        await_named(rig, migration_id, "GF14", f"file of {hybrid}")
    await_gone(rig, migration_id, "GF14", f"file of {hybrid}")
    with edited(path, lambda text: text.replace("zookeeper.metadata.migration.enable=true", "")):
        await_named(rig, migration_id, "file-changed", hybrid)
    await_gone(rig, migration_id, "file-changed", hybrid)

    # A broker that cannot start, because somebody has its port.
    port = int(rig.cluster.bootstrap_servers[plain_id - 1].rpartition(":")[2])
    rig.cluster.kill_node(plain_id)
    entry = await_named(rig, migration_id, "node-down", f"broker-{plain_id}")
    others = [i for i in items(rig, migration_id) if i["code"] not in {"held", "node-down"}]
    assert others == [], "what a dead broker makes lag is no cause of its own"
    await_end_of_session(rig, plain_id)
    with occupied(port):
        rig.cluster.start_node(plain_id)
        wait_until(lambda: running_node(rig.cluster, plain_id) is None, "it dies of the port", 60)
        entry = await_named(rig, migration_id, "node-down", f"broker-{plain_id}")
        assert "port" in entry["fix"]
    rig.cluster.start_node(plain_id)
    await_gone(rig, migration_id, "node-down", f"broker-{plain_id}")
    await_nothing_but_hold(rig, migration_id)

    # A broker whose pid file somebody has moved away: it serves, and nobody knows its process.
    pid_file = Path(rig.cluster.spec.node(plain_id).driver.service.pid_file)
    kept = pid_file.rename(pid_file.with_suffix(".kept"))
    entry = await_named(rig, migration_id, "part-unknown", f"broker-{plain_id}")
    assert str(pid_file) in entry["observed"]
    kept.rename(pid_file)
    await_gone(rig, migration_id, "part-unknown", f"broker-{plain_id}")

    # A broker that stands still.
    with frozen(rig.pid(plain_id)):
        entry = await_named(rig, migration_id, "part-unknown", f"broker-{plain_id}")
        assert f"kill -CONT {rig.pid(plain_id)}" in entry["fix"]
    await_gone(rig, migration_id, "part-unknown", f"broker-{plain_id}")
    rig.cluster.await_in_sync()
    await_nothing_but_hold(rig, migration_id)

    # On to dual write.
    rig.resume(migration_id)
    rig.forward_to(DUAL_WRITE, migration_id)
    await_nothing_but_hold(rig, migration_id)
    leader = int((rig.by_hand.znode(CONTROLLER) or {})["brokerid"])
    standby = next(c.id for c in rig.cluster.spec.controllers if c.id != leader)

    # A config that ZooKeeper cannot hold: the next failover would end dual write.
    about = "client metrics config interval.ms of all"
    rig.by_hand.configure_client_metrics("all", "interval.ms=1000")
    await_named(rig, migration_id, "failover-would-hurt", about)
    rig.by_hand.configure_client_metrics("all", "interval.ms")
    await_gone(rig, migration_id, "failover-would-hurt", about)

    # A controller that stands still.
    with frozen(rig.pid(standby)):
        await_named(rig, migration_id, "part-unknown", f"controller-{standby}")
    await_gone(rig, migration_id, "part-unknown", f"controller-{standby}")

    # Our own processes.
    rig.services.kill(Program.ACTIVITIES)
    await_named(rig, migration_id, "no-worker", "task queue watch")
    rig.services.start(Program.ACTIVITIES)
    await_gone(rig, migration_id, "no-worker", "task queue watch")
    rig.services.kill(Program.CHECKS)
    await_nothing_but_hold(rig, migration_id)
    rig.resume(migration_id)
    await_named(rig, migration_id, "no-worker", "task queue checks")
    rig.hold(migration_id)
    rig.services.start(Program.CHECKS)
    await_gone(rig, migration_id, "no-worker", "task queue checks")
    assert rig.verify().lost == frozenset()
