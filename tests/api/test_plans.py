"""Plans through the door: asked for, found, listed, and named by a migration that starts only while they hold."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
import uuid_utils
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from api.pages.markdown import as_html
from api.running import planning
from domain.contracts import ActivityName, TaskQueue
from domain.decisions import Acceptance, Finding, Severity
from domain.plans import MOVED, NOTHING_ANSWERS, Basis, Estimate, Plan, nothing_answers
from domain.questions import PlanOutcome, PlanRequest
from domain.rehearsal import RehearsalReport
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from ledger.ledger import SqlLedger
from playground.example import example_cluster
from tests.api.conftest import ASKED

Expect = Callable[[httpx.Response, int, str], dict[str, Any]]
DEAD = Finding(code="PF12", object="broker 9", observed="not live", expected="live", fix="start it")


def a_plan(cluster: str, plan_id: str | None = None, **changes: Any) -> Plan:
    now = datetime.now(UTC)
    given: dict[str, Any] = {
        "id": plan_id or str(uuid_utils.uuid7()),
        "cluster": cluster,
        "cluster_id": "c",
        "kind": "zk-to-kraft",
        "policy": ZkToKraftPolicy(stable_samples=7),
        "wanted": ASKED["wanted"],
        "spec_revision": 1,
        "requested_by": "ann",
        "requested_at": now,
        "made_at": now,
        "observation": "a" * 64,
        "phase": "PREFLIGHT",
        "is_blocked": False,
        "findings": (),
        "rolls": (),
        "nodes": (),
        "restarts": {},
        "irreversible": (),
        "gates": (),
        "controllerless_seconds": 0.2,
        "estimate": Estimate(seconds=1, basis=Basis.GUESS, parts=()),
        "not_migrated": (),
        "changes_for_people": (),
        "basis": {},
        "plan_hash": "h" * 64,
    }
    return Plan.model_validate(given | changes)


@dataclass
class Planner:
    """The worker's part. `error`: what making a plan ends with."""

    ledger: SqlLedger
    error: ApplicationError | None = None
    go_on: asyncio.Event | None = None
    asked: list[PlanRequest] = field(default_factory=list)

    @activity.defn(name=ActivityName.MAKE_PLAN)
    async def make_plan(self, request: PlanRequest) -> PlanOutcome:
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        if self.go_on is not None:
            await self.go_on.wait()
        made = await self.ledger.add_plan(a_plan(request.cluster, request.plan_id, policy=request.policy))
        return PlanOutcome(plan_id=made.id, plan_hash=made.plan_hash, is_blocked=made.is_blocked)


@dataclass
class Rehearser:
    """The part of the checks' worker."""

    ledger: SqlLedger

    @activity.defn(name=ActivityName.REHEARSE_PLAN)
    async def rehearse_plan(self, request: PlanRequest) -> PlanOutcome:
        rehearsal = RehearsalReport(rounds=3, has_passed=True, records={"TopicRecord": 7}, seconds_without_controller=1.5)
        made = await self.ledger.add_plan(a_plan(request.cluster, request.plan_id, rehearsal=rehearsal))
        return PlanOutcome(plan_id=made.id, plan_hash=made.plan_hash, is_blocked=made.is_blocked)


@pytest.fixture
async def planner(api: Any, temporal_client: Client) -> AsyncIterator[Planner]:
    made = Planner(api.wiring.ledger)
    async with Worker(temporal_client, task_queue=TaskQueue.WATCH, activities=[made.make_plan]):
        yield made


async def post(api: Any, cluster: str, **more: Any) -> httpx.Response:
    answer: httpx.Response = await api.http.post("/plans", json={"cluster": cluster, **ASKED} | more)
    return answer


async def ended(api: Any, url: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            told: dict[str, Any] = (await api.http.get(url)).json()
            if told["state"] != "running":
                return told
            await asyncio.sleep(0.05)


async def planned(api: Any, **changes: Any) -> Plan:
    spec = await api.registered()
    made: Plan = await api.wiring.ledger.add_plan(a_plan(spec.name, **changes))
    return made


async def start(api: Any, plan: Plan, **more: Any) -> httpx.Response:
    answer: httpx.Response = await api.post_migration(plan.cluster, plan_id=plan.id, **more)
    return answer


async def test_a_plan_is_asked_for_and_found_where_the_answer_says(api: Any, planner: Planner) -> None:
    spec = await api.registered()
    answer = await post(api, spec.name, policy={"stable_samples": 5})
    assert answer.status_code == 202, answer.text
    url = answer.headers["location"]
    told = await ended(api, url)
    assert (told["state"], told["detail"], told["links"]) == ("ended", "", {"self": url, "cluster": f"/clusters/{spec.name}"})
    assert told["plan"]["id"] == told["id"] == answer.json()["id"]
    assert [asked.policy.stable_samples for asked in planner.asked if asked.cluster == spec.name] == [5]
    (listed,) = (await api.http.get("/plans", params={"cluster": spec.name})).json()["items"]
    assert (listed["id"], listed["links"]) == (told["id"], told["links"])


async def test_a_rehearsal_is_work_for_the_worker_of_checks(api: Any, temporal_client: Client) -> None:
    made = Rehearser(api.wiring.ledger)
    spec = await api.registered()
    async with Worker(temporal_client, task_queue=TaskQueue.CHECKS, activities=[made.rehearse_plan]):
        told = await ended(api, (await post(api, spec.name, rehearse=True)).headers["location"])
    assert (told["state"], told["plan"]["rehearsal"]["rounds"]) == ("ended", 3)
    page = (await api.http.get(told["links"]["self"], headers={"Accept": "text/markdown"})).text
    assert "The copy was rehearsed" in page


async def test_without_a_worker_for_it_a_rehearsal_says_which_one_is_missing(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "QUEUE_LIMIT", timedelta(seconds=1))
    spec = await api.registered()
    told = await ended(api, (await post(api, spec.name, rehearse=True)).headers["location"])
    assert "keeperless-checks" in told["detail"]


async def test_a_plan_is_a_page_for_whoever_reads_it(api: Any) -> None:
    wave = {"nodes": ("broker-1", "broker-4"), "reason": "they share no partition"}
    alone = [{"nodes": (f"broker-{number}",), "reason": "one at a time"} for number in (2, 3)]
    file = {"stage": "kraft", "sha256": "f" * 64, "diff": ("-a=1", "+b=```")}
    node = {"name": "broker-1", "role": "broker", "path": "/etc/1.properties", "restarts": 2, "files": (file,)}
    node["configuration_management"] = "Paused by `touch /run/paused`."
    node["dropped"] = ({"key": "log.dirs", "stage": "migration", "is_replaced": True, "why": "The specification says it."},)
    accepted = DEAD.model_copy(update={"code": "PF06", "accepted": Acceptance(by="ann", reason="a test\ncluster")})
    odd = DEAD.model_copy(update={"severity": Severity.WARNING, "is_unverifiable": True, "observed": "two\nlines"})
    plan = await planned(
        api,
        is_blocked=True,
        findings=(DEAD, accepted, odd),
        rolls=({"what": "Roll 1", "stage": "kraft", "waves": (wave, *alone)},),
        nodes=(node, node | {"name": "broker-4"}),
        irreversible=({"what": "The end.", "gate": "finalize"},),
        not_migrated=("orphans",),
        unknown=("kafka: timeout",),
        canaries=("a topic at each broker",),
    )
    answer = await api.http.get(f"/plans/{plan.id}", headers={"Accept": "text/markdown"})
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    page = answer.text
    in_a_browser = await api.http.get(f"/plans/{plan.id}", headers={"Accept": "text/html, */*;q=0.8"})
    assert in_a_browser.headers["content-type"] == "text/html; charset=utf-8"
    assert in_a_browser.text == as_html(page)
    for line in (
        "**Blocked.** A migration would be refused, and nothing changed.",
        "- kafka: timeout",
        "- **PF12** broker 9: not live; expected: live. start it",
        "- **PF12** broker 9 (could not be checked): two lines; expected: live. start it",
        "- **PF06** broker 9: not live; expected: live. Accepted by ann: a test cluster",
        "- The end. Gate: **finalize**.",
        "1. broker-1, broker-4: they share no partition",
        "2. broker-2, then broker-3: one at a time",
        "- orphans",
        "- a topic at each broker",
        "- broker-1, broker-4: Paused by `touch /run/paused`.",
        "- `log.dirs`, replaced in stage migration: The specification says it.",
    ):
        assert line in page.splitlines(), line
    titles = [line[3:] for line in page.splitlines() if line.startswith("## ")]
    found = [title.partition(":")[0] for title in titles]
    assert found[found.index("Blockers") :][:3] == ["Blockers", "Accepted", "Warnings"]
    assert "````diff\n-a=1\n+b=```\n````" in page
    told = (await api.http.get(f"/plans/{plan.id}")).json()["plan"]
    assert told["plan_hash"] == plan.plan_hash
    assert [f["accepted"] for f in told["findings"]] == [None, {"by": "ann", "reason": "a test\ncluster"}, None]


async def test_the_page_of_a_cluster_of_which_nothing_answers_says_so_and_is_short(api: Any) -> None:
    silent = nothing_answers()
    plan = await planned(api, is_blocked=True, findings=(silent,), unknown=("kafka: timeout",))
    page = (await api.http.get(f"/plans/{plan.id}", headers={"Accept": "text/markdown"})).text
    assert page.splitlines()[2].startswith("**Nothing can be planned.**")
    assert f"- **{NOTHING_ANSWERS}** cluster: " in page
    assert "restarted" not in page
    assert "## Files" not in page


async def test_the_page_of_a_migration_that_is_over_restarts_nothing(api: Any) -> None:
    node = {"name": "broker-1", "role": "broker", "path": "/etc/1.properties", "restarts": 0, "files": ()}
    plan = await planned(api, phase="KRAFT", nodes=(node,))
    page = (await api.http.get(f"/plans/{plan.id}", headers={"Accept": "text/markdown"})).text
    assert "## What is restarted\n\nNothing.\n" in page
    assert "rollback is expected" not in page


async def test_a_plan_in_the_making_is_listed(api: Any, planner: Planner) -> None:
    """Before those that were made; once it is made, as one of them."""
    planner.go_on = asyncio.Event()
    made = await planned(api)
    asked = (await post(api, made.cluster)).json()

    async def listed(least: int = 0) -> list[dict[str, Any]]:
        async with asyncio.timeout(30):
            while True:
                answer = (await api.http.get("/plans", params={"cluster": made.cluster})).json()
                assert answer["unlooked"] == []
                if len(answer["items"]) >= least:
                    return list(answer["items"])
                await asyncio.sleep(0.1)

    making, before = await listed(2)
    assert (making["id"], making["state"], making["cluster"]) == (asked["id"], "running", made.cluster)
    assert making["detail"]
    assert (making["made_at"], making["is_blocked"], making["blockers"], making["is_rehearsed"]) == (None, None, None, False)
    assert (before["id"], before["state"]) == (made.id, "ended")
    other = await api.registered()
    assert (await api.http.get("/plans", params={"cluster": other.name})).json()["items"] == []
    planner.go_on.set()
    await ended(api, asked["links"]["self"])
    assert [item["state"] for item in await listed()] == ["ended", "ended"]


async def test_without_temporal_plans_that_were_made_are_listed(api_without_temporal: Any) -> None:
    """The answer also says that others may be missing."""
    made = await planned(api_without_temporal)
    answer = (await api_without_temporal.http.get("/plans", params={"cluster": made.cluster})).json()
    assert [item["id"] for item in answer["items"]] == [made.id]
    assert "Plans that are being made are not listed" in answer["unlooked"][0]


@pytest.mark.parametrize(
    ("report", "told"),
    [
        (
            {"rounds": 1, "has_passed": True, "records": {"TopicRecord": 7}},
            ["- It passed with the cluster as it is, after 1 round.", "- Records: 7 TopicRecord."],
        ),
        (
            {"rounds": 2, "has_passed_in_part": True, "left_out": ("/a", "/b"), "seconds_without_controller": 1.5},
            [
                "- **It did not pass with the cluster as it is.** After 2 rounds it passed without: /a, /b. "
                "All that follows is about that copy.",
                "- Records: none.",
                "- The cluster would be without a ZooKeeper controller for 1.5 s.",
            ],
        ),
        ({"rounds": 3}, ["- **It did not pass**, after 3 rounds.", "- Records: none."]),
    ],
)
async def test_the_page_says_first_whether_the_copy_passes_with_the_cluster_as_it_is(
    api: Any, report: dict[str, Any], told: list[str]
) -> None:
    plan = await planned(api, rehearsal=report)
    page = (await api.http.get(f"/plans/{plan.id}", headers={"Accept": "text/markdown"})).text
    _, _, section = page.partition("## The copy was rehearsed\n\n")
    assert section.partition("\n\n")[0].splitlines() == told


ACCEPTED = {"code": "PF06", "object": "*", "by": "ann", "reason": "a test\ncluster"}
TOLERATED = {"record": "acl", "by": "ben", "reason": "it is meant"}


@pytest.mark.parametrize(
    ("policy", "lines"),
    [
        ({}, ["- Everything has its default."]),
        (
            {"max_parallel": 2, "min_soak": "P1D", "accepted_findings": [ACCEPTED], "tolerated": [TOLERATED]},
            [
                "- `max_parallel`: 2",
                '- `min_soak`: "P1D"',
                "- Accepted: **PF06** of every object, by ann: a test cluster",
                "- Tolerated: acl, any key, any field: ben: it is meant",
            ],
        ),
    ],
)
async def test_the_page_says_with_which_policy(api: Any, policy: dict[str, Any], lines: list[str]) -> None:
    plan = await planned(api, policy=policy)
    page = (await api.http.get(f"/plans/{plan.id}", headers={"Accept": "text/markdown"})).text
    _, _, section = page.partition("\n## Policy\n\n")
    assert section.partition("\n\n")[0].splitlines() == lines


async def test_plans_are_listed_page_by_page(api: Any) -> None:
    first = await planned(api)
    second = await api.wiring.ledger.add_plan(a_plan(first.cluster))
    page = (await api.http.get("/plans", params={"cluster": first.cluster, "limit": 1})).json()
    assert [item["id"] for item in page["items"]] == [second.id] == [page["next_cursor"]]
    rest = await api.http.get("/plans", params={"cluster": first.cluster, "limit": 1, "cursor": page["next_cursor"]})
    assert [item["id"] for item in rest.json()["items"]] == [first.id]
    assert rest.json()["next_cursor"] is None


async def test_a_list_of_plans_has_what_tells_them_apart_and_not_the_whole(api: Any, expect_problem: Expect) -> None:
    warning = DEAD.model_copy(update={"severity": Severity.WARNING})
    plan = await planned(api, is_blocked=True, findings=(DEAD, DEAD, warning), rehearsal={"rounds": 1})
    (listed,) = (await api.http.get("/plans", params={"cluster": plan.cluster})).json()["items"]
    assert listed == {
        "id": plan.id,
        "cluster": plan.cluster,
        "kind": "zk-to-kraft",
        "state": "ended",
        "detail": "",
        "started_at": plan.model_dump(mode="json")["requested_at"],
        "made_at": plan.model_dump(mode="json")["made_at"],
        "phase": "PREFLIGHT",
        "is_blocked": True,
        "blockers": 2,
        "warnings": 1,
        "is_rehearsed": True,
        "links": {"self": f"/plans/{plan.id}", "cluster": f"/clusters/{plan.cluster}"},
    }
    unmade = await planned(api, rehearsal={"refused": "no room"})
    (listed,) = (await api.http.get("/plans", params={"cluster": unmade.cluster})).json()["items"]
    assert not listed["is_rehearsed"]
    expect_problem(await api.http.get("/plans", params={"cluster": "misspelt"}), 404, "cluster-not-found")


async def test_a_plan_that_cannot_be_made_says_why(api: Any, planner: Planner) -> None:
    spec = await api.registered()
    planner.error = ApplicationError("ZooKeeper: wrong credentials", type="Permanent", non_retryable=True)
    told = await ended(api, (await post(api, spec.name)).headers["location"])
    assert (told["state"], told["detail"], told["plan"]) == ("failed", "ZooKeeper: wrong credentials", None)


async def test_with_a_plan_that_is_still_being_made_nothing_starts(api: Any, planner: Planner, expect_problem: Expect) -> None:
    planner.go_on = asyncio.Event()
    spec = await api.registered()
    told = (await post(api, spec.name)).json()
    problem = expect_problem(await api.post_migration(spec.name, plan_id=told["id"]), 409, "plan-not-made")
    assert "still being made" in problem["detail"]
    assert problem["links"] == {"plan": told["links"]["self"]}
    page = await api.http.get(told["links"]["self"], headers={"Accept": "text/markdown"})
    assert page.headers["content-type"] == "text/markdown; charset=utf-8"
    assert page.text.startswith("# A plan that is running\n")
    planner.go_on.set()
    assert (await ended(api, told["links"]["self"]))["state"] == "ended"
    page = await api.http.get(told["links"]["self"], headers={"Accept": "text/markdown"})
    assert page.text.startswith("# Plan of zk-to-kraft")


async def test_with_a_plan_that_could_not_be_made_nothing_starts(api: Any, planner: Planner, expect_problem: Expect) -> None:
    spec = await api.registered()
    planner.error = ApplicationError("ZooKeeper: wrong credentials", type="Permanent", non_retryable=True)
    told = await ended(api, (await post(api, spec.name)).headers["location"])
    problem = expect_problem(await api.post_migration(spec.name, plan_id=told["id"]), 409, "plan-not-made")
    assert "ZooKeeper: wrong credentials" in problem["detail"]
    page = await api.http.get(told["links"]["self"], headers={"Accept": "text/markdown"})
    assert "ZooKeeper: wrong credentials" in page.text


async def test_without_a_worker_it_says_which_one_is_missing(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "QUEUE_LIMIT", timedelta(seconds=1))
    spec = await api.registered()
    told = await ended(api, (await post(api, spec.name)).headers["location"])
    assert told["state"] == "failed"
    assert "keeperless-activities" in told["detail"]


async def test_what_is_not_there_is_not_found(api: Any, expect_problem: Expect) -> None:
    expect_problem(await api.http.get(f"/plans/{uuid4()}"), 404, "plan-not-found")
    expect_problem(await post(api, "nobody"), 404, "cluster-not-found")
    spec = await api.registered()
    expect_problem(await api.post_migration(spec.name, plan_id=str(uuid4())), 404, "plan-not-found")
    expect_problem(await api.post_migration(spec.name, plan_id="no uuid"), 422, "invalid-request")
    expect_problem(await post(api, spec.name, polices={}), 422, "invalid-request")


async def test_a_migration_starts_with_its_plan_and_the_plans_policy(api: Any) -> None:
    """Within two seconds, and without any worker: whether the cluster has moved on is for the migration to find out."""
    plan = await planned(api)
    begun = time.monotonic()
    answer = await start(api, plan)
    assert time.monotonic() - begun < 2
    assert answer.status_code == 202, answer.text
    told = answer.json()
    assert (told["plan_id"], told["policy"]["stable_samples"]) == (plan.id, 7)


async def test_a_plan_with_blockers_starts_nothing(api: Any, expect_problem: Expect) -> None:
    """No worker is asked: the plan says it itself."""
    plan = await planned(api, is_blocked=True, findings=(DEAD,))
    problem = expect_problem(await start(api, plan), 422, "plan-blocked")
    assert problem["findings"] == [DEAD.model_dump(mode="json")]
    assert problem["links"] == {"plan": f"/plans/{plan.id}"}
    assert await api.wiring.ledger.migrations([plan.cluster]) == []


ANOTHER_REVISION = ("the cluster's specification", "revision 1", "revision 7")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"spec_revision": 7}, ANOTHER_REVISION),
        ({"made_at": datetime(2026, 1, 2, 3, 4, tzinfo=UTC)}, ("the plan", "made at 2026-01-02 03:04 UTC", "14 days")),
    ],
)
async def test_an_outdated_plan_starts_nothing(
    api: Any, expect_problem: Expect, changes: dict[str, Any], expected: tuple[str, str, str]
) -> None:
    """No worker is asked: the ledger knows it."""
    plan = await planned(api, **changes)
    problem = expect_problem(await start(api, plan), 422, "plan-outdated")
    (finding,) = problem["findings"]
    assert (finding["code"], finding["object"], finding["observed"]) == (MOVED, *expected[:2])
    assert finding["expected"].endswith(expected[2])
    assert await api.wiring.ledger.migrations([plan.cluster]) == []
    refused = [event.data["problem"] for event in await api.wiring.ledger.events() if event.kind == "call-refused"]
    assert refused[-1] == "plan-outdated"


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize("is_blocked", [False, True])
async def test_a_migration_in_the_way_is_told_before_all_that_it_has_changed(
    api: Any, expect_problem: Expect, is_blocked: bool
) -> None:
    plan = await planned(api, is_blocked=is_blocked)
    running = (await api.post_migration(plan.cluster)).json()["id"]
    problem = expect_problem(await start(api, plan), 409, "cluster-busy")
    assert problem["links"] == {"migration": f"/migrations/{running}"}


@pytest.mark.usefixtures("planner")
async def test_a_plan_is_for_its_cluster_and_has_its_policy(api: Any, expect_problem: Expect) -> None:
    plan, other = await planned(api), await api.registered()
    wrong = expect_problem(await api.post_migration(other.name, plan_id=plan.id), 422, "invalid-request")
    assert [error["field"] for error in wrong["errors"]] == ["plan_id"]
    twice = expect_problem(await start(api, plan, policy={"stable_samples": 2}), 422, "invalid-request")
    assert "leave policy out" in twice["errors"][0]["message"]
    wanted = expect_problem(await start(api, plan, wanted=ASKED["wanted"]), 422, "invalid-request")
    assert "leave wanted out" in wanted["errors"][0]["message"]


async def test_a_migration_wants_what_its_plan_wants(api: Any) -> None:
    plan = await planned(api)
    answer = await start(api, plan)
    assert answer.status_code == 202, answer.text
    assert answer.json()["wanted"] == ASKED["wanted"] == (await api.http.get(f"/plans/{plan.id}")).json()["plan"]["wanted"]


@pytest.mark.parametrize("path", ["/plans", "/migrations"])
async def test_what_the_cluster_cannot_become_is_named_in_wanted(api: Any, expect_problem: Expect, path: str) -> None:
    spec = await api.registered()
    first, *others = ASKED["wanted"]["controllers"]
    cases = {
        "wanted": ({"id": spec.brokers[0].id}, "node ids [1] are used twice"),
        "wanted.controllers.0.metrics.url": ({"metrics": spec.brokers[0].metrics.model_dump()}, "Another node has the same"),
    }
    for named, (change, message) in cases.items():
        wanted = ASKED["wanted"] | {"controllers": [first | change, *others]}
        answer = await api.http.post(path, json={"cluster": spec.name, **ASKED, "wanted": wanted})
        errors = expect_problem(answer, 422, "invalid-request")["errors"]
        assert named in [error["field"] for error in errors]
        assert message in errors[0]["message"]
    even = await api.http.post(path, json={"cluster": spec.name, **ASKED, "wanted": {"controllers": others}})
    (error,) = expect_problem(even, 422, "invalid-request")["errors"]
    assert (error["field"], "use an odd number" in error["message"]) == ("wanted.controllers", True)


async def test_a_cluster_without_zookeeper_is_registered_and_not_migrated_from_it(api: Any, expect_problem: Expect) -> None:
    spec = (await api.registered()).model_copy(update={"zookeeper": None, "quorum": example_cluster().quorum})
    assert (await api.http.put(f"/clusters/{spec.name}", json=spec.model_dump(mode="json"))).status_code == 200
    (error,) = expect_problem(await post(api, spec.name), 422, "invalid-request")["errors"]
    assert (error["field"], "there is nothing to migrate from" in error["message"]) == ("wanted", True)


async def test_without_temporal_a_plan_is_not_begun(api_without_temporal: Any, expect_problem: Expect) -> None:
    spec = await api_without_temporal.registered()
    expect_problem(await post(api_without_temporal, spec.name), 503, "temporal-unavailable")
