"""Start commands that override the file, on real servers: in plans, and through a whole migration."""

import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from domain.configuration.properties import parse
from playground import processes
from playground.rig import PLANNED_RESTARTS, Rig

pytestmark = [pytest.mark.cluster, pytest.mark.chaos, pytest.mark.timeout(900)]

PROTOCOL_MAP, THREADS = "listener.security.protocol.map=PLAINTEXT:PLAINTEXT", "num.io.threads=4"


def test_an_override_of_a_staged_key_blocks_the_plan_and_an_unrelated_one_goes_through(rig: Rig) -> None:
    base = rig.cluster.directory / "base.properties"
    restart(rig, 2, "--override", PROTOCOL_MAP)
    base.write_text("early.start.listeners=PLAINTEXT\n", encoding="ascii")
    rig.register(described(base, ()))
    blockers = blockers_of(rig.plan())
    staged, tried = "broker-2 listener.security.protocol.map", f"broker-2 {file_of(rig, 2)}"
    assert set(blockers) == {staged, tried, f"controller-3001 {file_of(rig, 3001)}"}
    assert f"`--override {PROTOCOL_MAP}`" in blockers[staged]["observed"]
    assert "with the overrides of its start command (listener.security.protocol.map)" in blockers[tried]["observed"]
    assert "early.start.listeners contains listener" in blockers[f"controller-3001 {file_of(rig, 3001)}"]["observed"]

    restart(rig, 2, "--override", THREADS)
    with_node_id(rig, 1)
    base.write_text("inter.broker.protocol.version=3.6-IV2\nzookeeper.set.acl=false\nlog.dirs=/d1,/d2\n", encoding="ascii")
    rig.register(described(base, ("--override", THREADS)))
    plan = rig.plan()
    assert blockers_of(plan) == {}
    (dropped,) = [node["dropped"] for node in plan["nodes"] if node["dropped"]]
    assert [(one["key"], one["stage"], one["is_replaced"]) for one in dropped] == [
        ("inter.broker.protocol.version", "migration", False),
        ("zookeeper.set.acl", "kraft", False),
        ("log.dirs", "migration", True),
    ]

    migration_id = rig.migrate_as_planned(plan).json()["id"]
    gate = rig.await_gate(migration_id, deadline_seconds=600)
    assert rig.approve(migration_id, gate["evidence_hash"]).status_code == 201
    assert rig.await_end(migration_id)["state"] == "succeeded"
    assert rig.restarts(migration_id) == PLANNED_RESTARTS
    assert THREADS in command_of(rig, 2)
    assert parse(file_of(rig, 1).read_text("latin-1"))["node.id"] == "1"
    assert rig.verify().lost == frozenset()


def described(base: Path, more: Sequence[str]) -> Any:
    """With a base file for the first controller, and more words in the start command of the second broker."""

    def change(spec: dict[str, Any]) -> None:
        spec["quorum"]["controllers"][0]["base_properties"] = str(base)
        spec["brokers"][1]["driver"]["service"]["start_command"] += more

    return change


def blockers_of(plan: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = [f for f in plan["findings"] if f["severity"] == "blocker" and f["accepted"] is None]
    assert plan["is_blocked"] is bool(found), (plan["unknown"], found)
    return {finding["object"]: finding for finding in found}


def restart(rig: Rig, node_id: int, *more: str) -> None:
    rig.cluster.kill_node(node_id, signal.SIGTERM)
    launch = rig.cluster.launch(node_id)
    processes.start(replace(launch, command=(*launch.command, *more)))
    rig.cluster.await_in_sync()


def with_node_id(rig: Rig, node_id: int) -> None:
    """In place of broker.id, which Kafka takes in ZooKeeper mode as well."""
    file = file_of(rig, node_id)
    file.write_text(file.read_text("latin-1").replace("\nbroker.id", "\nnode.id"), "latin-1")
    restart(rig, node_id)


def file_of(rig: Rig, node_id: int) -> Path:
    return Path(rig.cluster.spec.node(node_id).properties_file)


def command_of(rig: Rig, node_id: int) -> list[str]:
    return Path(f"/proc/{rig.cluster.pid(node_id)}/cmdline").read_text("latin-1").split("\0")
