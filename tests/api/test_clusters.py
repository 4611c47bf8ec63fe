"""Clusters: registered, changed, refused; and what is seen of them by a worker."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from api.running import observing
from domain.cluster import ClusterSpec
from domain.contracts import ActivityName, TaskQueue
from domain.questions import ClusterSight, Gauges, ObserveRequest
from domain.records import NodeStatus
from playground.example import example_cluster

Expect = Callable[[httpx.Response, int, str], dict[str, Any]]
MakeSpec = Callable[..., ClusterSpec]


QUORUM = example_cluster().with_quorum_changed(listener="QUORUM").model_dump(mode="json")["quorum"]


async def put(api: Any, spec: ClusterSpec, **changes: Any) -> httpx.Response:
    body = spec.model_dump(mode="json") | changes
    answer: httpx.Response = await api.http.put(f"/clusters/{spec.name}", json=body)
    return answer


async def test_a_cluster_is_registered_and_changed(api: Any, make_spec: MakeSpec) -> None:
    spec = make_spec()
    first = await put(api, spec)
    assert (first.status_code, first.headers["location"]) == (201, f"/clusters/{spec.name}")
    again = await put(api, spec)
    assert (again.status_code, again.json()) == (200, first.json())
    changed = await put(api, spec, quorum=QUORUM)
    assert (changed.status_code, changed.json()["revision"]) == (200, 2)
    single = (await api.http.get(f"/clusters/{spec.name}")).json()
    assert single == changed.json()
    assert ClusterSpec.model_validate(single["spec"]).controller_listener == "QUORUM"
    assert (await api.http.get("/clusters")).json() == {"items": [single]}


async def test_a_spec_stands_while_a_migration_runs(
    api: Any, make_spec: MakeSpec, expect_problem: Expect, end: Callable[[str], Awaitable[None]]
) -> None:
    spec = await api.registered()
    migration_id = (await api.post_migration(spec.name)).json()["id"]
    problem = expect_problem(await put(api, spec, quorum=QUORUM), 409, "cluster-busy")
    assert problem["links"] == {"migration": f"/migrations/{migration_id}"}
    assert (await put(api, spec)).status_code == 200, "the same spec again changes nothing"
    await end(migration_id)
    assert (await put(api, spec, quorum=QUORUM)).status_code == 200


async def test_a_spec_does_not_stand_for_a_run_that_is_gone(
    api: Any, claim: Callable[[str], Awaitable[None]], temporal_client: Client
) -> None:
    spec = await api.registered()
    migration = (await api.post_migration(spec.name)).json()
    await claim(migration["id"])
    await temporal_client.get_workflow_handle(migration["workflow_id"]).terminate("by hand")
    assert (await put(api, spec, quorum=QUORUM)).status_code == 200
    assert (await api.http.get(f"/migrations/{migration['id']}")).json()["state"] == "failed"


async def test_two_nodes_have_no_endpoint_in_common(api: Any, make_spec: MakeSpec, expect_problem: Expect) -> None:
    spec = make_spec()
    nodes = spec.model_dump(mode="json")["brokers"]
    nodes[1]["metrics"] = nodes[0]["metrics"]
    problem = expect_problem(await put(api, spec, brokers=nodes), 422, "invalid-request")
    assert [error["field"] for error in problem["errors"]] == ["brokers.0.metrics.url", "brokers.1.metrics.url"]


async def test_a_kafka_cluster_has_one_name(api: Any, make_spec: MakeSpec, expect_problem: Expect) -> None:
    spec = await api.registered()
    other = make_spec().model_copy(update={"cluster_id": spec.cluster_id})
    problem = expect_problem(await put(api, other), 409, "cluster-id-taken")
    assert problem["links"] == {"cluster": f"/clusters/{spec.name}"}


async def test_the_name_is_the_one_in_the_path(api: Any, make_spec: MakeSpec, expect_problem: Expect) -> None:
    problem = expect_problem(await put(api, make_spec(), name="another"), 422, "invalid-request")
    assert [error["field"] for error in problem["errors"]] == ["name"]


@pytest.mark.parametrize(
    ("spoil", "field"),
    [
        (lambda spec: spec.pop("kafka"), "kafka"),
        (lambda spec: spec["brokers"][0].pop("host"), "brokers.0.host"),
        (lambda spec: spec["brokers"][0].update(properties_file="hunter2"), "brokers.0.properties_file"),
        (lambda spec: spec["zookeeper"].update(digest_auth="admin:hunter2"), "zookeeper.digest_auth"),
        (lambda spec: spec["kafka"].update(client_properties="password=hunter2"), "kafka.client_properties"),
        (lambda spec: spec["brokers"][1].update(metrics={"kind": "hunter2", "url": "http://x"}), "brokers.1.metrics"),
        (lambda spec: spec.update(sudo="hunter2"), "sudo"),
        (lambda spec: spec["quorum"]["controllers"].append(spec["brokers"][0]), "quorum.controllers.3.port"),
        (lambda spec: spec["quorum"]["controllers"][0].update(id=spec["brokers"][0]["id"]), ""),
        (lambda spec: spec.update(quorum=None, zookeeper=None), ""),
        (lambda spec: spec.update(controllers=[]), ""),
    ],
)
async def test_an_invalid_spec_names_the_field_and_repeats_no_value(
    api: Any, make_spec: MakeSpec, expect_problem: Expect, spoil: Callable[[dict[str, Any]], None], field: str
) -> None:
    spec = make_spec().model_dump(mode="json") | {"quorum": deepcopy(QUORUM)}
    spoil(spec)
    answer = await api.http.put(f"/clusters/{spec['name']}", json=spec)
    problem = expect_problem(answer, 422, "invalid-request")
    assert field in [error["field"] for error in problem["errors"]]
    assert "hunter2" not in answer.text


async def test_what_is_not_json_or_not_a_name_is_refused(api: Any, expect_problem: Expect) -> None:
    as_json = {"content-type": "application/json"}
    problem = expect_problem(await api.http.put("/clusters/c", content=b"{hunter2", headers=as_json), 422, "invalid-request")
    expected = "The body is not JSON, at its character 2: Expecting property name enclosed in double quotes"
    assert problem["errors"] == [{"where": "body", "field": "", "message": expected}]
    expect_problem(await api.http.put("/clusters/c", content=b"\xff", headers=as_json), 400, "bad-request")
    expect_problem(
        await api.http.put("/clusters/c", content=b"{}", headers={"content-type": "text/plain"}), 422, "invalid-request"
    )
    expect_problem(await api.http.get("/clusters/Not%20A%00Name"), 422, "invalid-request")
    expect_problem(await api.http.get("/clusters/nobody"), 404, "cluster-not-found")
    expect_problem(await api.http.get("/clusters/nobody/observation"), 404, "cluster-not-found")


async def test_a_body_that_is_larger_than_any_is_not_read_to_its_end(api: Any, expect_problem: Expect) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 100:
            sent += 1
            yield b" " * 1024 * 1024

    answer = await api.http.put("/clusters/c", content=endless(), headers={"content-type": "application/json"})
    problem = expect_problem(answer, 413, "body-too-large")
    assert (problem["docs"], sent) == ("docs/problems/body-too-large.md", 9)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kafka": {"bootstrap_servers": ["127.0.0.1:99999"]}}, "kafka.bootstrap_servers.0"),
        ({"metrics": {"kind": "jolokia", "url": "http://127.0.0.1:0/jolokia"}}, "brokers.0.metrics.url"),
    ],
)
async def test_a_port_that_there_is_not_is_refused(
    api: Any, make_spec: MakeSpec, expect_problem: Expect, change: dict[str, Any], field: str
) -> None:
    spec = make_spec()
    if "metrics" in change:
        change = {"brokers": [spec.brokers[0].model_dump(mode="json") | change, *spec.model_dump(mode="json")["brokers"][1:]]}
    (error,) = expect_problem(await put(api, spec, **change), 422, "invalid-request")["errors"]
    assert (error["field"], error["message"]) == (field, "Expected a port from 1 to 65535 at each address")


@pytest.mark.parametrize(
    ("connect", "rule"),
    [
        ("127.0.0.1:0/kafka", "Expected a port from 1 to 65535"),
        ("zk1,zk2,zk3:2181/kafka", "Write the port of each server: zk1:2181,zk2:2181,zk3:2181/kafka."),
        ("zk1:2181/kafka,zk2:2181/kafka", "Write the chroot once, after the last server: zk1:2181,zk2:2181/kafka."),
        ("zk1:2181/kafka/", "ZooKeeper refuses a chroot that ends with /"),
    ],
)
async def test_a_connect_string_is_refused_with_zookeepers_rule(
    api: Any, make_spec: MakeSpec, expect_problem: Expect, connect: str, rule: str
) -> None:
    (error,) = expect_problem(await put(api, make_spec(), zookeeper={"connect": connect}), 422, "invalid-request")["errors"]
    assert error["field"] == "zookeeper.connect"
    assert rule in error["message"]


async def test_blanks_in_a_connect_string_are_dropped(api: Any, make_spec: MakeSpec) -> None:
    answer = await put(api, make_spec(), zookeeper={"connect": "zk1:2181, zk2:2181 ,[2001:db8::1]:2181/"})
    assert answer.status_code in {200, 201}, answer.text
    assert answer.json()["spec"]["zookeeper"]["connect"] == "zk1:2181,zk2:2181,[2001:db8::1]:2181"


# ---- Observation ----


def sight_of(cluster: str) -> ClusterSight:
    node = NodeStatus(name="broker-1", role="broker", mode="hybrid", stage="migration", is_ready=True, restarts=1)
    return ClusterSight(
        cluster=cluster,
        observed_at=datetime.now(UTC),
        phase="DUAL_WRITE",
        nodes=(node,),
        gauges=Gauges(migration_state="MIGRATION"),
        unknown=("metrics of broker-2",),
    )


@activity.defn(name=ActivityName.OBSERVE)
async def observe_cluster(request: ObserveRequest) -> ClusterSight:
    if request.cluster == "locked":
        raise ApplicationError("ZooKeeper: wrong credentials; correct digest_auth", type="Permanent", non_retryable=True)
    if request.cluster == "buggy":
        raise ValueError("hunter2")
    return sight_of(request.cluster)


async def test_an_observation_is_a_standalone_activity(api: Any, temporal_client: Client) -> None:
    spec = await api.registered()
    async with Worker(temporal_client, task_queue=TaskQueue.WATCH, activities=[observe_cluster]):
        answer = await api.http.get(f"/clusters/{spec.name}/observation")
    assert answer.status_code == 200, answer.text
    assert answer.json()["unknown"] == ["metrics of broker-2"]
    assert answer.json()["gauges"]["write_behind_lag"] is None
    workflows = [run.id async for run in temporal_client.list_workflows(f"WorkflowId STARTS_WITH 'observe/{spec.name}'")]
    assert workflows == []


async def test_a_failed_observation_says_why_unless_nobody_worded_it(
    api: Any, temporal_client: Client, expect_problem: Expect
) -> None:
    await api.registered("locked")
    await api.registered("buggy")
    async with Worker(temporal_client, task_queue=TaskQueue.WATCH, activities=[observe_cluster]):
        told = expect_problem(await api.http.get("/clusters/locked/observation"), 502, "observation-failed")
        untold = expect_problem(await api.http.get("/clusters/buggy/observation"), 502, "observation-failed")
    assert "wrong credentials" in told["detail"]
    assert "hunter2" not in str(untold)


async def test_without_a_worker_an_observation_gives_up(
    api: Any, expect_problem: Expect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observing, "WORKER_LIMIT", timedelta(seconds=1.5))
    spec = await api.registered()
    began = time.monotonic()
    problem = expect_problem(await api.http.get(f"/clusters/{spec.name}/observation"), 504, "no-worker")
    assert 1.4 < time.monotonic() - began < 9
    assert "keeperless-activities" in problem["detail"]


async def test_without_temporal_an_observation_is_unavailable(api_without_temporal: Any, expect_problem: Expect) -> None:
    spec = await api_without_temporal.registered()
    expect_problem(await api_without_temporal.http.get(f"/clusters/{spec.name}/observation"), 503, "temporal-unavailable")
