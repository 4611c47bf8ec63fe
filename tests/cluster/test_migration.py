"""The main job on real servers, under continuous writes: from ZooKeeper to KRaft through POST /migrations."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from domain.configuration.properties import parse
from playground.clients import admin_client
from playground.rig import PLANNED_RESTARTS, Rig
from playground.seed import TOPICS
from playground.wanted import wanted_json

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


def test_a_cluster_goes_to_kraft_and_nothing_acknowledged_is_lost(rig: Rig) -> None:
    files = {broker.id: Path(broker.properties_file).read_bytes() for broker in rig.cluster.spec.brokers}
    name = rig.register()
    plan = rig.plan()
    assert (plan["is_blocked"], plan["unknown"]) == (False, []), plan["findings"]
    assert_nothing_starts_that_has_moved_away_from_its_plan(rig, plan)
    migration_id = rig.migrate_as_planned(plan).json()["id"]

    second = rig.call("POST", "/migrations", {"cluster": name, "kind": "zk-to-kraft", "wanted": wanted_json(rig.spec)})
    assert second.status_code == 409
    assert migration_id in second.text
    early = rig.approve(migration_id, "0" * 64)
    assert early.status_code == 409
    assert "not open" in early.json()["detail"]

    gate = rig.await_gate(migration_id)
    waiting = rig.migration(migration_id)
    assert (waiting["phase"], waiting["state"]) == ("SOAK", "waiting")
    sight = rig.answer("GET", f"/clusters/{name}/observation")
    assert sight["gauges"]["migration_state"] == "MIGRATION"
    assert rig.approve(migration_id, "0" * 64).status_code == 409
    assert rig.approve(migration_id, gate["evidence_hash"]).status_code == 201
    assert rig.approve(migration_id, gate["evidence_hash"]).status_code == 409

    ended = rig.await_end(migration_id)
    assert (ended["state"], ended["phase"]) == ("succeeded", "KRAFT")
    assert rig.restarts(migration_id) == PLANNED_RESTARTS == plan["restarts"]
    assert_files_are_as_planned(rig, files)
    planned = {node["path"]: node["files"][-1]["sha256"] for node in plan["nodes"]}
    assert {path: sha256(file.content).hexdigest() for path, file in rig.files().items()} == planned
    assert_content_survived(admin_client(rig.cluster.bootstrap_servers))
    report = rig.verify()
    assert report.lost == frozenset()
    assert report.acknowledged > 1000
    assert_events_tell_it(rig.events(migration_id))


def assert_nothing_starts_that_has_moved_away_from_its_plan(rig: Rig, plan: dict[str, Any]) -> None:
    file = Path(rig.cluster.spec.brokers[1].properties_file)
    as_planned = file.read_bytes()
    file.write_bytes(as_planned + b"num.partitions=7\n")
    started = rig.migrate_as_planned(plan)
    assert started.status_code == 202, started.text
    refused = rig.await_end(started.json()["id"])
    assert refused["state"] == "refused"
    findings = {finding["object"]: finding["observed"] for finding in refused["findings"]}
    assert findings.keys() >= {"broker-2: properties file", "broker-2"}
    assert "num.partitions: runs with no such line, the file has 7" in findings["broker-2"]
    file.write_bytes(as_planned)


def assert_files_are_as_planned(rig: Rig, originals: dict[int, bytes]) -> None:
    """Every broker's comments are still there in their order, nothing of ZooKeeper is, and the original is archived."""
    for broker in rig.cluster.spec.brokers:
        path = Path(broker.properties_file)
        text, original = path.read_text("latin-1"), originals[broker.id].decode("latin-1")
        assert comments(text) == comments(original)
        properties = parse(text)
        assert properties["node.id"] == str(broker.id)
        assert not [key for key in properties if key.startswith("zookeeper.")]
        archived = list((path.parent / ".keeperless").glob("*.original-*"))
        assert [file.read_bytes() for file in archived] == [originals[broker.id]]
        assert archived[0].stat().st_mode == path.stat().st_mode


def comments(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("#", "!"))]


def assert_content_survived(admin: AdminClient) -> None:
    """The seeded topics are there with their partitions and configs, as KRaft now tells them."""
    topics = admin.list_topics(timeout=10).topics
    assert {topic.name: topic.partitions for topic in TOPICS} == {
        topic.name: len(topics[topic.name].partitions) for topic in TOPICS
    }
    resources = [ConfigResource(ResourceType.TOPIC, topic.name) for topic in TOPICS]
    for resource, future in admin.describe_configs(resources).items():
        told = {name: entry.value for name, entry in future.result(10).items()}
        wanted = next(topic.config for topic in TOPICS if topic.name == resource.name)
        assert {key: told[key] for key in wanted} == wanted


def assert_events_tell_it(events: list[dict[str, Any]]) -> None:
    phases = [event["data"]["phase"] for event in events if event["kind"] == "phase-entered"]
    assert [phase for phase in phases if phase != "COPYING"] == [
        "PREFLIGHT",
        "CONTROLLERS_UP",
        "BROKERS_TO_HYBRID",
        "DUAL_WRITE",
        "BROKERS_TO_KRAFT",
        "SOAK",
        "FINALIZING",
        "KRAFT",
    ]
    finalized = [e["data"]["node"] for e in events if e["kind"] == "step-done" and e["data"]["node"].startswith("controller")][
        3:
    ]
    assert len(finalized) == len(set(finalized)) == 3
    assert [event["kind"] for event in events].index("approved") < next(
        i
        for i, e in enumerate(events)
        if e["kind"] == "step-started" and e["data"]["stage"] == "kraft" and "controller" in e["data"]["node"]
    )


@pytest.mark.parametrize(
    ("what", "change", "code"),
    [
        ("another Kafka's id", lambda spec: spec.update(cluster_id="AAAAAAAAAAAAAAAAAAAAAA"), "PF03"),
        (
            "a used directory",
            lambda spec: spec["quorum"]["controllers"][0].update(log_dirs=spec["brokers"][0]["log_dirs"][:1]),
            "",
        ),
    ],
)
def test_nothing_is_touched_when_the_preflight_or_the_specification_refuses(
    rig: Rig, what: str, change: Any, code: str
) -> None:
    spec = rig.cluster.spec.model_dump(mode="json")
    change(spec)
    answer = rig.call("PUT", f"/clusters/{spec['name']}", spec)
    if not code:
        assert answer.status_code == 422, what
        assert "log_dirs" in answer.text
        return
    assert answer.status_code == 201
    ended = rig.await_end(rig.migrate())
    assert ended["state"] == "refused", what
    assert code in {finding["code"] for finding in ended["findings"]}
    assert set(rig.restarts(ended["id"]).values()) <= {0}


def test_a_controller_directory_that_holds_data_is_refused_before_anything_is_touched(rig: Rig) -> None:
    directory = Path(rig.cluster.spec.controllers[1].log_dirs[0])
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "somebody-elses.data").write_text("precious")
    rig.register()
    ended = rig.await_end(rig.migrate())
    assert ended["state"] == "refused"
    assert {finding["code"] for finding in ended["findings"] if finding["severity"] == "blocker"} == {"PF07"}
    assert (directory / "somebody-elses.data").read_text() == "precious"
    assert httpx.get(f"{rig.services.api_url}/livez", timeout=5, trust_env=False).is_success
