"""`POST /migrations`: one migration for one cluster, whatever crashed in between."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from api.app import create_app
from api.diagnosis.pollers import unserved
from api.running.runs import start_run
from api.running.temporal import Temporal
from api.settings import ApiSettings
from domain.contracts import TaskQueue
from domain.records import MigrationRecord, MigrationState
from tests.api.conftest import ASKED

BUSY_MACHINE = 4.0
"""Seconds: two are promised, and tests share the machine with whatever else runs."""

Expect = Callable[[httpx.Response, int, str], dict[str, Any]]
LONG_AGO = timedelta(minutes=5)


async def test_a_migration_is_started_and_its_run_explains_itself(api: Any, temporal_client: Client) -> None:
    spec = await api.registered()
    answer = await api.post_migration(spec.name)
    assert answer.status_code == 202
    migration = answer.json()
    assert answer.headers["location"] == migration["links"]["self"] == f"/migrations/{migration['id']}"
    assert (migration["state"], migration["requested_by"]) == ("planning", "local (unauthenticated)")
    assert (await api.http.get(answer.headers["location"])).json() == migration

    run = await temporal_client.get_workflow_handle(f"cluster/{spec.cluster_id}").describe()
    assert run.run_id == migration["run_id"]
    attributes = {pair.key.name: pair.value for pair in run.typed_search_attributes}
    assert attributes == {"Cluster": spec.name, "MigrationKind": "zk-to-kraft", "MigrationId": migration["id"]}
    assert await run.static_summary() == f"zk-to-kraft of Kafka cluster {spec.name}"
    assert migration["links"]["self"] in str(await run.static_details())


async def test_a_second_migration_of_a_cluster_is_refused_with_a_link_to_the_first(api: Any, expect_problem: Expect) -> None:
    spec = await api.registered()
    first = (await api.post_migration(spec.name)).json()
    for _ in range(2):
        problem = expect_problem(await api.post_migration(spec.name), 409, "cluster-busy")
        assert problem["links"] == {"migration": first["links"]["self"]}
    assert [m["id"] for m in (await api.http.get(f"/migrations?cluster={spec.name}")).json()["items"]] == [first["id"]]


async def test_of_many_at_once_one_is_started(api: Any) -> None:
    spec = await api.registered()
    answers = await asyncio.gather(*(api.post_migration(spec.name) for _ in range(12)))
    assert sorted(answer.status_code for answer in answers) == [202] + 11 * [409]


async def test_an_unknown_cluster_is_not_found(api: Any, expect_problem: Expect) -> None:
    expect_problem(await api.post_migration("nobody"), 404, "cluster-not-found")


async def test_a_start_that_crashed_before_the_run_is_ended_and_replaced(
    api: Any, make_migration: Callable[..., MigrationRecord]
) -> None:
    spec = await api.registered()
    abandoned = make_migration(spec, LONG_AGO)
    await api.wiring.ledger.create_migration(abandoned)
    answer = await api.post_migration(spec.name)
    assert answer.status_code == 202
    ended = (await api.http.get(f"/migrations/{abandoned.id}")).json()
    assert ended["state"] == "failed"
    assert "never started" in ended["outcome"]
    assert await api.event_kinds(abandoned.id) == ["migration-ended"]


async def test_a_start_that_may_still_be_under_way_is_left_alone(
    api: Any, make_migration: Callable[..., MigrationRecord], expect_problem: Expect
) -> None:
    spec = await api.registered()
    fresh = make_migration(spec)
    await api.wiring.ledger.create_migration(fresh)
    problem = expect_problem(await api.post_migration(spec.name), 409, "cluster-busy")
    assert problem["links"]["migration"].endswith(fresh.id)
    assert (await api.wiring.ledger.migration(fresh.id)).ended_at is None


async def test_the_caretaker_ends_an_abandoned_start_without_being_asked(
    api: Any, make_migration: Callable[..., MigrationRecord]
) -> None:
    abandoned = make_migration(await api.registered(), LONG_AGO)
    await api.wiring.ledger.create_migration(abandoned)
    await api.wiring.caretaker.round()
    assert (await api.wiring.ledger.migration(abandoned.id)).progress.state is MigrationState.FAILED


async def test_a_start_that_crashed_after_the_run_is_found_to_be_running(
    api: Any, make_migration: Callable[..., MigrationRecord], expect_problem: Expect
) -> None:
    spec = await api.registered()
    record = make_migration(spec, LONG_AGO)
    await api.wiring.ledger.create_migration(record)
    run_id = await start_run(api.wiring.temporal, record)
    assert await start_run(api.wiring.temporal, record) == run_id, "a repeated start finds its own run"
    problem = expect_problem(await api.post_migration(spec.name), 409, "cluster-busy")
    assert problem["links"]["migration"].endswith(record.id)
    assert (await api.wiring.ledger.migration(record.id)).run_id == run_id


async def test_anothers_run_holds_the_cluster(
    api: Any, make_migration: Callable[..., MigrationRecord], expect_problem: Expect
) -> None:
    """Another installation, with a ledger of its own, on the same Temporal."""
    spec = await api.registered()
    other = make_migration(spec)
    await start_run(api.wiring.temporal, other)
    problem = expect_problem(await api.post_migration(spec.name), 409, "cluster-busy")
    assert problem["links"] == {"migration": f"/migrations/{other.id}"}
    (ours,) = (await api.http.get(f"/migrations?cluster={spec.name}")).json()["items"]
    assert ours["state"] == "failed"
    assert "Another run holds the cluster" in ours["outcome"]


async def test_an_abandoned_start_is_not_mistaken_for_anothers_run(
    api: Any, make_migration: Callable[..., MigrationRecord], expect_problem: Expect
) -> None:
    spec = await api.registered()
    abandoned, other = make_migration(spec, LONG_AGO), make_migration(spec)
    await api.wiring.ledger.create_migration(abandoned)
    await start_run(api.wiring.temporal, other)
    problem = expect_problem(await api.post_migration(spec.name), 409, "cluster-busy")
    assert problem["links"] == {"migration": f"/migrations/{other.id}"}
    assert (await api.wiring.ledger.migration(abandoned.id)).run_id is None


async def test_while_temporal_is_silent_a_claimed_migration_counts_as_running(
    api: Any, claim: Callable[[str], Awaitable[None]], settings: ApiSettings, serve: Any, expect_problem: Expect
) -> None:
    spec = await api.registered()
    first = (await api.post_migration(spec.name)).json()
    await claim(first["id"])
    async with serve(create_app(settings, Temporal({"target_host": "127.0.0.1:1"}))) as cut_off:
        problem = expect_problem(await cut_off.post_migration(spec.name), 409, "cluster-busy")
    assert problem["links"] == {"migration": first["links"]["self"]}


async def test_a_migration_whose_run_was_terminated_is_out_of_the_way(
    api: Any, claim: Callable[[str], Awaitable[None]], temporal_client: Client
) -> None:
    spec = await api.registered()
    first = (await api.post_migration(spec.name)).json()
    await claim(first["id"])
    await temporal_client.get_workflow_handle(first["workflow_id"]).terminate("by hand")
    assert (await api.post_migration(spec.name)).status_code == 202
    ended = (await api.http.get(f"/migrations/{first['id']}")).json()
    assert ended["state"] == "failed"
    assert "ended from outside" in ended["outcome"]
    assert ended["links"]["temporal_ui"].endswith(f"/workflows/cluster%2F{spec.cluster_id}/{first['run_id']}")


@activity.defn
async def nothing() -> None: ...


@pytest.fixture
async def served(worker: None, temporal_client: Client, temporal_address: str) -> AsyncIterator[None]:
    """By who asks for tasks of the two queues without which no migration gets on."""
    async with Worker(temporal_client, task_queue=TaskQueue.CLUSTER, activities=[nothing]), asyncio.timeout(20):
        temporal = Temporal({"target_host": temporal_address})
        while True:
            if not await unserved(temporal):
                break
            await asyncio.sleep(0.1)
        yield


async def test_a_temporal_in_which_nobody_works_ends_nothing(
    api: Any,
    claim: Callable[[str], Awaitable[None]],
    settings: ApiSettings,
    elsewhere: Temporal,
    serve: Any,
    expect_problem: Expect,
) -> None:
    """Somebody restarted the API with another namespace, which is there: the migration may go on where it was started."""
    spec = await api.registered()
    first = (await api.post_migration(spec.name)).json()
    await claim(first["id"])
    async with serve(create_app(settings, elsewhere)) as lost:
        problem = expect_problem(await lost.post_migration(spec.name), 409, "cluster-busy")
        (gone,) = [
            entry
            for entry in (await lost.http.get(f"/migrations/{first['id']}/blockers")).json()["items"]
            if entry["code"] == "run-gone"
        ]
    assert problem["links"] == {"migration": first["links"]["self"]}
    for said in (problem["detail"], gone["fix"]):
        assert f"in namespace {elsewhere.namespace} at" in said
        assert "start keeperless-workflows and keeperless-activities with it" in said
    assert (await api.wiring.ledger.migration(first["id"])).ended_at is None


@pytest.mark.usefixtures("served")
async def test_a_claimed_migration_that_temporal_does_not_know_any_more_is_out_of_the_way(
    api: Any, claim: Callable[[str], Awaitable[None]], make_migration: Callable[..., MigrationRecord]
) -> None:
    """Its retention is over, or the database was made anew, and workers are there for the next one."""
    spec = await api.registered()
    first = make_migration(spec)
    await api.wiring.ledger.create_migration(first)
    await api.wiring.ledger.set_run(first.id, str(uuid4()), first.created_at)
    await claim(first.id)
    assert (await api.post_migration(spec.name)).status_code == 202
    ended = (await api.http.get(f"/migrations/{first.id}")).json()
    assert ended["state"] == "failed"
    assert "no longer knows its run" in ended["outcome"]


async def test_a_namespace_that_is_not_there_says_nothing_of_a_run(
    api: Any,
    claim: Callable[[str], Awaitable[None]],
    settings: ApiSettings,
    temporal_address: str,
    serve: Any,
    expect_problem: Expect,
) -> None:
    """Somebody set the API up wrong: that must not end what runs."""
    spec = await api.registered()
    first = (await api.post_migration(spec.name)).json()
    await claim(first["id"])
    nowhere = Temporal({"target_host": temporal_address, "namespace": "nowhere"})
    async with serve(create_app(settings, nowhere)) as lost:
        expect_problem(await lost.post_migration(spec.name), 502, "temporal-refused")
    assert (await api.wiring.ledger.migration(first["id"])).ended_at is None


async def test_without_temporal_nothing_stays_active(api_without_temporal: Any, expect_problem: Expect) -> None:
    api = api_without_temporal
    spec = await api.registered()
    for _ in range(2):
        began = time.monotonic()
        expect_problem(await api.post_migration(spec.name), 503, "temporal-unavailable")
        assert time.monotonic() - began < BUSY_MACHINE
    items = (await api.http.get("/migrations")).json()["items"]
    assert [migration["state"] for migration in items] == ["failed", "failed"]


async def test_a_temporal_that_accepts_and_never_answers_costs_two_seconds(
    settings: ApiSettings, serve: Any, expect_problem: Expect
) -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    async with serve(create_app(settings, Temporal({"target_host": f"127.0.0.1:{port}"}))) as api:
        spec = await api.registered()
        began = time.monotonic()
        expect_problem(await api.post_migration(spec.name), 503, "temporal-unavailable")
        print(f"answered after {time.monotonic() - began:.2f} s")
        assert time.monotonic() - began < BUSY_MACHINE
    silent.close()


async def test_what_temporal_refuses_is_told_and_ends_the_migration(
    settings: ApiSettings, temporal_address: str, serve: Any, expect_problem: Expect
) -> None:
    nowhere = Temporal({"target_host": temporal_address, "namespace": "nowhere"})
    async with serve(create_app(settings, nowhere)) as api:
        spec = await api.registered()
        problem = expect_problem(await api.post_migration(spec.name), 502, "temporal-refused")
        assert "namespace" in problem["detail"]
        assert [m["state"] for m in (await api.http.get("/migrations")).json()["items"]] == ["failed"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({**ASKED}, "cluster"),
        ({"cluster": "Orders!", **ASKED}, "cluster"),
        ({"cluster": "orders", "kind": "sideways"}, "kind"),
        ({"cluster": "orders", **ASKED, "polcy": {}}, "polcy"),
        ({"cluster": "orders", **ASKED, "policy": {"an_old_field": 1}}, "policy.an_old_field"),
        ({"cluster": "orders", "kind": "zk-to-kraft"}, ""),
        ({"cluster": "orders", **ASKED, "wanted": {}}, "wanted.controllers"),
        ({"cluster": "orders", **ASKED, "policy": {"min_soak": -1}}, "policy.min_soak"),
    ],
)
async def test_wrong_input_names_its_field(api: Any, expect_problem: Expect, body: dict[str, Any], field: str) -> None:
    problem = expect_problem(await api.http.post("/migrations", json=body), 422, "invalid-request")
    assert [(error["where"], error["field"]) for error in problem["errors"]] == [("body", field)]


@pytest.mark.parametrize("path", ["/migrations", "/plans"])
@pytest.mark.parametrize("code", ["PF03", "PF20"])
async def test_which_cluster_it_is_cannot_be_accepted(api: Any, expect_problem: Expect, path: str, code: str) -> None:
    spec = await api.registered()
    accepted = [{"code": code, "object": "*", "by": "ann", "reason": "it is mine"}]
    body = {"cluster": spec.name, **ASKED, "policy": {"accepted_findings": accepted}}
    problem = expect_problem(await api.http.post(path, json=body), 422, "invalid-request")
    (error,) = problem["errors"]
    assert error["field"] == "policy"
    assert code in error["message"]
    assert "identifies the cluster" in error["message"]


ACCEPTED = {"code": "PF06", "object": "*", "by": "ann", "reason": "a test cluster"}


@pytest.mark.parametrize(
    ("accepted", "field", "words"),
    [
        (ACCEPTED | {"code": "PF99"}, "policy", ["PF99", "PF01", "PF43", "RH07"]),
        ({k: v for k, v in ACCEPTED.items() if k != "object"}, "policy.accepted_findings.0.object", ["missing"]),
    ],
)
async def test_what_is_accepted_is_named(
    api: Any, expect_problem: Expect, accepted: dict[str, str], field: str, words: list[str]
) -> None:
    spec = await api.registered()

    async def ask(accepted: dict[str, str]) -> httpx.Response:
        body = {"cluster": spec.name, **ASKED, "policy": {"accepted_findings": [accepted]}}
        answer: httpx.Response = await api.http.post("/migrations", json=body)
        return answer

    (error,) = expect_problem(await ask(accepted), 422, "invalid-request")["errors"]
    assert error["field"] == field
    assert all(word in error["message"] for word in words), error["message"]
    assert (await ask(ACCEPTED)).status_code == 202


async def test_a_policy_travels_with_the_migration(api: Any) -> None:
    spec = await api.registered()
    body = {"cluster": spec.name, **ASKED, "policy": {"min_soak": "P1D"}}
    assert (await api.http.post("/migrations", json=body)).json()["policy"]["min_soak"] == "P1D"


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"stable_samples": 2**40}, "policy.stable_samples"),
        ({"approval_expires_after": "P100Y"}, "policy.approval_expires_after"),
    ],
)
async def test_a_policy_beyond_all_bounds_is_refused(
    api: Any, expect_problem: Callable[..., dict[str, Any]], policy: dict[str, Any], field: str
) -> None:
    """Before, such numbers overflowed: an answer of 500, or no moment at which an approval would have expired."""
    answer = await api.post_migration((await api.registered()).name, policy=policy)
    assert [error["field"] for error in expect_problem(answer, 422, "invalid-request")["errors"]] == [field]
