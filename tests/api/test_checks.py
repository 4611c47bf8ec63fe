"""Checks that a person asks for: started, awaited, failed, with a migration and without."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

from api.running import checking
from domain.contracts import ActivityName, CheckOutcome, CheckRequest, TaskQueue
from domain.drift.rendering import as_text
from domain.drift.report import CheckName, DriftReport, Verdict
from domain.records import ClusterRecord
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from ledger.ledger import SqlLedger

Expect = Callable[[httpx.Response, int, str], dict[str, Any]]
NOW = datetime(2026, 3, 1, 3, 0, tzinfo=UTC)
PATIENCE_SECONDS = 20.0


def report_of(request: CheckRequest, verdict: Verdict = Verdict.CLEAN) -> DriftReport:
    return DriftReport(
        id=request.report_id,
        cluster=request.cluster,
        migration_id=request.migration_id,
        check=request.check,
        verdict=verdict,
        started_at=NOW,
        ended_at=NOW + timedelta(seconds=1),
        rules_fingerprint="f" * 64,
        content_hash="c" * 64,
    )


class Checker:
    """A stand-in for the checks' worker, which publishes as the real one does. First it fails with what it is given."""

    def __init__(self, api: Any, fails: list[BaseException]) -> None:
        self._ledger = api.wiring.ledger
        self._fails = fails
        self.asked: list[CheckRequest] = []
        self.may_end = asyncio.Event()
        self.forgets = False
        self.beats: dict[str, Any] = {"sessions": ["one"]}

    @activity.defn(name=ActivityName.RUN_CHECK)
    async def run_check(self, request: CheckRequest) -> CheckOutcome:
        self.asked.append(request)
        if self._fails:
            raise self._fails.pop(0)
        while not self.may_end.is_set():
            activity.heartbeat(self.beats)
            await asyncio.sleep(0.05)
        report = report_of(request)
        if not self.forgets:
            await self._ledger.add_report(report)
        return CheckOutcome(report_id=report.id, verdict=report.verdict, content_hash=report.content_hash)


MakeChecker = Callable[..., AbstractAsyncContextManager[Checker]]


@pytest.fixture
def checker(api: Any, temporal_client: Client) -> MakeChecker:
    @asynccontextmanager
    async def run(*fails: BaseException, waits: bool = False) -> AsyncIterator[Checker]:
        stand_in = Checker(api, list(fails))
        if not waits:
            stand_in.may_end.set()
        async with Worker(
            temporal_client,
            task_queue=TaskQueue.CHECKS,
            activities=[stand_in.run_check],
            max_heartbeat_throttle_interval=timedelta(seconds=0.1),
        ):
            yield stand_in

    return run


async def post(api: Any, cluster: str, **body: Any) -> dict[str, Any]:
    answer = await api.http.post(f"/clusters/{cluster}/checks", json=body or {"check": "metadata"})
    assert answer.status_code == 202, answer.text
    told: dict[str, Any] = answer.json()
    assert answer.headers["location"] == told["links"]["self"] == f"/clusters/{cluster}/checks/{told['id']}"
    return told


async def until(api: Any, url: str, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            answer = await api.http.get(url)
            assert answer.status_code == 200, answer.text
            told: dict[str, Any] = answer.json()
            if reached(told):
                return told
            await asyncio.sleep(0.05)


def is_over(told: dict[str, Any]) -> bool:
    return told["state"] != "running"


async def test_a_check_runs_without_a_migration_and_its_report_is_found(api: Any, checker: MakeChecker) -> None:
    spec = await api.registered()
    async with checker(waits=True) as worker:
        told = await post(api, spec.name)
        url = told["links"]["self"]
        assert (told["state"], told["report"]) == ("running", None)
        running = await until(api, url, lambda t: t["detail"] == "A worker makes it.")
        assert running["state"] == "running"
        worker.beats = {**worker.beats, "look": 2, "stage": "compare", "done": 3, "total": 8}
        await until(api, url, lambda t: t["detail"] == "A worker makes it: look 2, compare, 3 of 8.")
        worker.beats = {**worker.beats, "stage": "starting", "done": 0, "total": 1, "since": "2026-11-28T06:01:02.5+00:00"}
        await until(api, url, lambda t: t["detail"] == "A worker makes it: look 2, starting, since 06:01:02 UTC.")
        assert (await api.http.get(url, headers={"accept": "text/html"})).headers["content-type"] == "application/json"
        assert (await api.http.get(f"/clusters/{spec.name}/checks")).json() == {"items": [], "next_cursor": None}
        worker.may_end.set()
        ended = await until(api, url, is_over)
    assert (ended["state"], ended["detail"], ended["report"]["verdict"]) == ("ended", "", "clean")
    assert ended["report"]["links"]["self"] == url
    expected = CheckRequest(kind="zk-to-kraft", report_id=told["id"], cluster=spec.name, policy=ZkToKraftPolicy())
    assert worker.asked == [expected.model_copy(update={"is_asked_for": True})]
    assert (await api.http.get(f"/clusters/{spec.name}/checks")).json() == {"items": [ended], "next_cursor": None}
    page = await api.http.get(url, headers={"accept": "text/plain"})
    assert page.text == as_text(report_of(worker.asked[0]))
    assert (await api.http.get(f"{url}/findings")).json() == {"items": [], "next_cursor": None}


async def test_with_a_migration_it_is_one_of_its_reports_by_its_policy(api: Any, checker: MakeChecker) -> None:
    spec = await api.registered()
    tolerated = [{"record": "topic-config", "key": "audit retention.ms", "by": "Ada", "reason": "goes with the topic"}]
    answer = await api.post_migration(spec.name, policy={"tolerated": tolerated})
    assert answer.status_code == 202, answer.text
    migration = answer.json()
    async with checker(waits=True) as worker:
        told = await post(api, spec.name)
        # A call is in the events when it is answered, and a quick worker publishes before that.
        worker.may_end.set()
        ended = await until(api, told["links"]["self"], is_over)
    (asked,) = worker.asked
    assert (asked.migration_id, asked.policy.tolerated[0].by) == (migration["id"], "Ada")
    listed = (await api.http.get(migration["links"]["reports"])).json()["items"]
    assert listed == [ended["report"]]
    assert (await api.event_kinds(migration["id"]))[1:] == ["call-accepted", "report-published"]


async def test_an_ended_migration_is_not_asked(api: Any, checker: MakeChecker, end: Any) -> None:
    spec = await api.registered()
    migration = (await api.post_migration(spec.name)).json()
    await end(migration["id"])
    async with checker() as worker:
        await until(api, (await post(api, spec.name))["links"]["self"], is_over)
    assert worker.asked[0].migration_id is None


async def test_two_at_once_are_two_checks(api: Any, checker: MakeChecker) -> None:
    spec = await api.registered()
    async with checker() as worker:
        first, second = await post(api, spec.name), await post(api, spec.name)
        ended = [await until(api, told["links"]["self"], is_over) for told in (first, second)]
    assert len({told["id"] for told in ended}) == 2
    assert sorted(asked.report_id for asked in worker.asked) == sorted(told["id"] for told in ended)


async def test_a_check_that_fails_says_why_unless_nobody_worded_it(
    api: Any, checker: MakeChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = await api.registered()
    worded = ApplicationError("__cluster_metadata-0 at byte 9: unknown record 99", type="Permanent", non_retryable=True)
    bug = ApplicationError("hunter2", type="ValueError", non_retryable=True)
    async with checker(worded, bug):
        first = await until(api, (await post(api, spec.name))["links"]["self"], is_over)
        second = await until(api, (await post(api, spec.name))["links"]["self"], is_over)
    assert (first["state"], first["detail"], first["report"]) == ("failed", worded.message, None)
    unforeseen = "It failed in an unexpected way (ValueError): the log of keeperless-checks has the cause."
    assert (second["state"], second["detail"]) == ("failed", unforeseen)


async def test_a_check_that_is_tried_again_says_what_was_in_the_way(api: Any, checker: MakeChecker) -> None:
    spec = await api.registered()
    busy = ApplicationError("ZooKeeper does not answer", type="Transient")
    async with checker(busy, waits=True) as worker:
        url = (await post(api, spec.name))["links"]["self"]
        again = await until(api, url, lambda told: told["detail"].startswith("Attempt 2."))
        assert (again["state"], again["detail"]) == ("running", "Attempt 2. The one before: ZooKeeper does not answer")
        worker.may_end.set()
        assert (await until(api, url, is_over))["state"] == "ended"


async def test_a_check_that_publishes_nothing_has_failed(api: Any, checker: MakeChecker) -> None:
    spec = await api.registered()
    async with checker() as worker:
        worker.forgets = True
        failed = await until(api, (await post(api, spec.name))["links"]["self"], is_over)
    assert (failed["state"], failed["detail"]) == ("failed", "It ended without a result.")


class ReadsTooEarly:
    """The ledger as somebody sees it who asks for a report right before it is published."""

    def __init__(self, ledger: SqlLedger) -> None:
        self._ledger = ledger
        self._is_early = True

    async def report(self, report_id: str) -> DriftReport | None:
        if self._is_early:
            self._is_early = False
            return None
        return await self._ledger.report(report_id)

    async def cluster(self, name: str) -> ClusterRecord | None:
        return await self._ledger.cluster(name)


async def test_what_is_published_while_temporal_is_asked_is_no_failure(api: Any, checker: MakeChecker) -> None:
    spec = await api.registered()
    async with checker():
        url = (await post(api, spec.name))["links"]["self"]
        ended = await until(api, url, is_over)
    api.app.state.wiring = replace(api.wiring, ledger=ReadsTooEarly(api.wiring.ledger))
    assert (await api.http.get(url)).json() == ended


async def test_without_a_worker_it_waits_and_then_says_what_is_missing(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "QUEUE_LIMIT", timedelta(seconds=1))
    spec = await api.registered()
    told = await post(api, spec.name)
    assert "waits for a worker" in told["detail"]
    failed = await until(api, told["links"]["self"], is_over)
    assert (failed["state"], failed["detail"]) == (
        "failed",
        "No worker took it from the task queue `checks`. Start keeperless-checks, and ask again.",
    )


async def test_a_silent_worker_is_told_from_none(api: Any, checker: MakeChecker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "CHECK_LIMIT", timedelta(seconds=2))
    spec = await api.registered()
    async with checker(waits=True) as worker:
        failed = await until(api, (await post(api, spec.name))["links"]["self"], is_over)
        worker.may_end.set()
    assert failed["state"] == "failed"
    assert "took too long" in failed["detail"]


async def test_a_cancelled_check_says_so(api: Any, checker: MakeChecker, temporal_client: Client) -> None:
    spec = await api.registered()
    told = await post(api, spec.name)
    await temporal_client.get_activity_handle(f"check/{spec.name}/{told['id']}").terminate()
    failed = await until(api, told["links"]["self"], is_over)
    assert (failed["state"], failed["detail"]) == ("failed", "It was cancelled in Temporal.")


async def test_what_is_not_there_is_not_found(api: Any, temporal_client: Client, expect_problem: Expect) -> None:
    spec, other = await api.registered(), await api.registered()
    told = await post(api, spec.name)
    for url in (f"/clusters/{spec.name}/checks/nobody", f"/clusters/{other.name}/checks/{told['id']}"):
        expect_problem(await api.http.get(url), 404, "report-not-found")
        expect_problem(await api.http.get(f"{url}/findings"), 404, "report-not-found")
    for path in ("checks", "checks/r", "checks/r/findings"):
        expect_problem(await api.http.get(f"/clusters/nobody/{path}"), 404, "cluster-not-found")
    expect_problem(await api.http.post("/clusters/nobody/checks", json={}), 404, "cluster-not-found")
    # Or the next test's worker would take it.
    await temporal_client.get_activity_handle(f"check/{spec.name}/{told['id']}").terminate()


@pytest.mark.parametrize("body", [{"check": "hunter2"}, {"cheque": "metadata"}])
async def test_an_order_that_makes_no_sense_is_refused(api: Any, expect_problem: Expect, body: dict[str, str]) -> None:
    spec = await api.registered()
    answer = await api.http.post(f"/clusters/{spec.name}/checks", json=body)
    expect_problem(answer, 422, "invalid-request")
    assert "hunter2" not in answer.text


@pytest.mark.parametrize("check", [check for check in CheckName if check is not CheckName.METADATA])
async def test_a_check_that_no_worker_makes_is_refused_at_the_door(api: Any, expect_problem: Expect, check: CheckName) -> None:
    spec = await api.registered()
    answer = await api.http.post(f"/clusters/{spec.name}/checks", json={"check": check})
    (error,) = expect_problem(answer, 422, "invalid-request")["errors"]
    assert error["field"] == "check"
    assert "only metadata can be asked for" in error["message"]


async def test_without_temporal_nothing_starts_and_what_is_published_is_still_found(
    api_without_temporal: Any, expect_problem: Expect
) -> None:
    api = api_without_temporal
    spec = await api.registered()
    expect_problem(await api.http.post(f"/clusters/{spec.name}/checks", json={}), 503, "temporal-unavailable")
    expect_problem(await api.http.get(f"/clusters/{spec.name}/checks/r1"), 503, "temporal-unavailable")
    await api.wiring.ledger.add_report(report_of(CheckRequest(kind="zk-to-kraft", report_id="r1", cluster=spec.name)))
    assert (await api.http.get(f"/clusters/{spec.name}/checks/r1")).json()["state"] == "ended"
