"""`run_check`: consistent looks, second looks, one published report, and nothing left behind; against a simulated cluster."""

import asyncio
import json
import stat
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from temporalio.testing import ActivityEnvironment

from activities.adapters.message_runner import MessageEngine
from activities.check_heartbeat import Beat
from activities.comparison.checking import Checking
from activities.observing.observe import observe
from activities.zk_to_kraft.metadata_check import IN_VAIN, LOOKS
from domain.contracts import CheckOutcome, CheckRequest
from domain.drift.report import CheckName, DriftReport, Verdict
from domain.errors import Permanent, Transient
from domain.zk_to_kraft.comparison import claim_of, newest_of
from playground.fakes.check_runner import FakeCheckRunner
from playground.fakes.cluster import FakeCluster
from playground.fakes.metadata_log import FakeLog
from playground.fakes.znodes import CONTROLLER
from tests.unit.fake_walk import POLICY, LedgerInMemory, Walk

ASKED = CheckRequest(kind="zk-to-kraft", report_id="check-1", cluster="orders", migration_id="m1", policy=POLICY)


@pytest.fixture(scope="module")
async def led() -> Walk:
    """All brokers in KRaft mode, in dual write."""
    cluster = FakeCluster(boot_looks=1, catch_up_looks=1, copy_looks=1)
    cluster.metadata_log = FakeLog(cluster)
    walk = Walk(LedgerInMemory(cluster), cluster)
    await walk.to("gate")
    return walk


@pytest.fixture
def walk(led: Walk) -> Walk:
    return led.copy(ledger=LedgerInMemory(led.cluster))


@pytest.fixture
def runner() -> FakeCheckRunner:
    return FakeCheckRunner()


async def check(walk: Walk, runner: FakeCheckRunner, work: Path, request: CheckRequest = ASKED) -> DriftReport:
    outcome: CheckOutcome = await ActivityEnvironment().run(
        Checking(walk.ports, runner, MessageEngine(), work).run_check, request
    )
    report = await walk.ledger.report(request.report_id)
    assert (outcome.report_id, outcome.verdict, outcome.content_hash) == (report.id, report.verdict, report.content_hash)
    assert is_empty(work), "what was copied holds secrets, and goes"
    found: DriftReport = report
    return found


def is_empty(directory: Path) -> bool:
    return not list(directory.iterdir())


async def seen(walk: Walk) -> Any:
    return (await observe(walk.cluster.record(), walk.ports)).zookeeper


async def test_a_clean_look_is_published_at_once(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    before = await seen(walk)
    report = await check(walk, runner, tmp_path)
    assert (report.verdict, report.cut.looks, report.migration_id, report.engine) == (Verdict.CLEAN, 1, "m1", "fake")
    assert newest_of([report], await seen(walk)) is report
    assert report.cut.claim == claim_of(before) != ""
    assert before.migration.offset <= report.cut.migration_offset <= report.cut.high_watermark
    (asked,) = runner.asked
    assert (asked.cut, asked.end) == (report.cut.migration_offset + 1, report.cut.high_watermark)
    assert {"/brokers/topics/orders", "/brokers/topics/orders/partitions/0/state", "/cluster/id"} <= runner.paths


async def test_the_copy_is_private_and_has_the_log(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    found: dict[str, Any] = {}
    compare = runner.compare

    async def look(asked: Any, *rest: Any) -> Any:
        found.update({path.name: path.stat().st_size for path in asked.log.iterdir()})
        found["modes"] = {stat.S_IMODE(path.stat().st_mode) for path in (asked.log, asked.log.parent, asked.log.parent.parent)}
        return await compare(asked, *rest)

    runner.compare = look  # type: ignore[method-assign,assignment]
    await check(walk, runner, tmp_path)
    assert found.pop("modes") == {0o700}
    assert found.keys() == {"00000000000000000000.log"}
    assert found["00000000000000000000.log"] > 0


async def test_what_stands_in_two_looks_is_a_drift(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    runner.looks = [["lost"], ["lost"]]
    report = await check(walk, runner, tmp_path)
    assert (report.verdict, report.cut.looks) == (Verdict.DRIFT, 2)
    assert [finding.key for finding in report.first] == ["lost"]
    assert report.findings is not None
    assert report.manifest is not None
    assert set(runner.sessions) == set(runner.opened.values()), "the migration's, for both looks"


async def test_what_is_gone_in_the_second_look_had_only_moved(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    runner.looks = [["moved"], []]
    assert (await check(walk, runner, tmp_path)).verdict is Verdict.CLEAN


async def test_a_drift_is_found_among_what_moves(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    runner.looks = [["lost", f"moved-{look}"] for look in range(LOOKS)]
    report = await check(walk, runner, tmp_path)
    assert (report.verdict, report.cut.looks) == (Verdict.DRIFT, LOOKS)
    assert [finding.key for finding in report.first] == ["lost"]


async def test_what_moves_in_every_look_is_inconclusive(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    runner.looks = [[f"moved-{look}"] for look in range(LOOKS)]
    report = await check(walk, runner, tmp_path)
    assert (report.verdict, report.cut.looks) == (Verdict.INCONCLUSIVE, LOOKS)
    assert "change faster" in report.not_read[0]


async def test_a_look_in_vain_is_followed_by_another(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    runner.looks = [Transient("a process was killed"), ["lost"], Transient("again"), ["lost"]]
    report = await check(walk, runner, tmp_path)
    assert (report.verdict, report.cut.looks) == (Verdict.DRIFT, 4)


async def test_another_claim_in_the_middle_makes_a_look_void(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    async def fail_over() -> None:
        claim = json.loads(walk.cluster.znodes[CONTROLLER])
        claim["kraftControllerEpoch"] += 1
        walk.cluster.znodes[CONTROLLER] = json.dumps(claim).encode()

    runner.while_reading = fail_over
    report = await check(walk, runner, tmp_path)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert "another dual write began" in report.not_read[0]
    assert not runner.asked


async def test_without_a_dual_write_there_is_nothing_to_compare(runner: FakeCheckRunner, tmp_path: Path) -> None:
    cluster = FakeCluster()
    report = await check(Walk(LedgerInMemory(cluster), cluster), runner, tmp_path)
    assert (report.verdict, report.cut.claim) == (Verdict.INCONCLUSIVE, "")
    assert "no claim of /controller" in report.not_read[0]


async def test_dual_write_that_has_died_is_never_clean(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    walk.cluster.faults.is_dual_write_stuck = True
    walk.cluster.advance(40)
    report = await check(walk, runner, tmp_path)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert "dual write is not current" in report.not_read[0]
    assert report.cut.claim != ""


async def test_after_the_end_the_last_dual_write_is_compared_whoever_leads(
    walk: Walk, runner: FakeCheckRunner, tmp_path: Path
) -> None:
    """ZooKeeper stands still, however far the log has gone on; what was changed since lies between the cut and its end."""
    walk.cluster.faults.is_dual_write_stuck = True
    frozen = (await seen(walk)).migration.offset
    walk.cluster.advance(40)
    claim = json.loads(walk.cluster.znodes[CONTROLLER])
    walk.cluster.znodes[CONTROLLER] = json.dumps(claim | {"brokerid": claim["brokerid"] + 1}).encode()
    report = await check(walk, runner, tmp_path, ASKED.model_copy(update={"check": CheckName.END}))
    (asked,) = runner.asked
    assert (report.verdict, report.check, asked.check) == (Verdict.CLEAN, CheckName.END, CheckName.END)
    assert asked.cut == frozen + 1
    assert asked.end >= frozen + 40
    runner.asked.clear()
    metadata = await check(walk, runner, tmp_path, ASKED.model_copy(update={"report_id": "check-2"}))
    assert (metadata.verdict, runner.asked) == (Verdict.INCONCLUSIVE, [])


@pytest.mark.parametrize("silent", ["zookeeper", "controllers", "disk"])
async def test_a_side_that_does_not_answer_is_told(walk: Walk, runner: FakeCheckRunner, tmp_path: Path, silent: str) -> None:
    if silent == "zookeeper":
        walk.cluster.faults.silent_zookeeper = True
    elif silent == "controllers":
        walk.cluster.faults.silent_metrics |= set(walk.cluster.controller_ids)
    else:
        walk.cluster.faults.silent_nodes |= set(walk.cluster.controller_ids)
    report = await check(walk, runner, tmp_path)
    assert (report.verdict, report.cut.looks) == (Verdict.INCONCLUSIVE, IN_VAIN), "nobody is waited for in silence"
    assert not runner.asked


async def test_the_same_check_again_gives_the_report_that_is_there(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    first = await check(walk, runner, tmp_path)
    runner.looks = [["lost"], ["lost"]]
    assert await check(walk, runner, tmp_path) == first
    assert len(runner.asked) == 1


async def test_what_a_dead_attempt_has_left_is_ended_and_removed(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    """Its sessions are ended before anything of our own begins, and are told until then."""
    dead, beats = str(uuid4()), []
    left = tmp_path / ASKED.report_id / dead / "look-1" / "log"
    left.mkdir(parents=True)
    (left / "0.log").write_text("secrets")
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, heartbeat_details=[{"sessions": [dead]}], attempt=2)
    environment.on_heartbeat = lambda *details: beats.append((details[0]["sessions"], len(runner.interrupted), details[0]))
    runner.while_reading = gone = Gone(left)
    await environment.run(Checking(walk.ports, runner, MessageEngine(), tmp_path).run_check, ASKED)
    assert runner.interrupted == [dead]
    (ours,) = {session for sessions, _, _ in beats for session in sessions} - {dead}
    assert beats[0][:2] == ((dead,), 0)
    assert ((dead, ours), 1) in [beat[:2] for beat in beats]
    assert "ending what a dead attempt has left on Spark" in [details.get("stage") for *_, details in beats]
    assert runner.sessions == [ours]
    assert gone.was_seen
    assert is_empty(tmp_path)


class Gone:
    """Whether a directory is away when it is asked."""

    def __init__(self, directory: Path) -> None:
        self._directory, self.was_seen = directory, False

    async def __call__(self) -> None:
        self.was_seen = not self._directory.exists()


async def test_an_attempt_that_was_only_cut_off_takes_nothing_from_the_next_one(walk: Walk, tmp_path: Path) -> None:
    """Its heartbeat timed out, its worker lives: both have files at the same time, and each removes its own."""
    cut_off, after = FakeCheckRunner(delay=60.0), FakeCheckRunner(delay=0.5)
    old, new = ActivityEnvironment(), ActivityEnvironment()
    first = asyncio.create_task(old.run(Checking(walk.ports, cut_off, MessageEngine(), tmp_path).run_check, ASKED))
    await cut_off.is_comparing.wait()
    (told,) = (path.name for path in (tmp_path / ASKED.report_id).iterdir())
    new.info = replace(new.info, heartbeat_details=[{"sessions": [told]}], attempt=2)
    second = asyncio.create_task(new.run(Checking(walk.ports, after, MessageEngine(), tmp_path).run_check, ASKED))
    await after.is_comparing.wait()
    (theirs,), (ours,) = cut_off.asked, after.asked
    assert theirs.log.exists(), "it lives: its files are its own"
    old.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert not theirs.log.parent.parent.exists()
    assert list(ours.log.iterdir())
    assert (await second).verdict is Verdict.CLEAN
    assert is_empty(tmp_path)


async def test_damaged_input_is_permanent_and_leaves_nothing(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    runner.looks = [Permanent("segment: checksum")]
    with pytest.raises(Permanent):
        await check(walk, runner, tmp_path)
    assert is_empty(tmp_path)


async def test_a_cancelled_check_leaves_nothing(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    runner.delay = 60.0
    environment = ActivityEnvironment()
    running = asyncio.create_task(environment.run(Checking(walk.ports, runner, MessageEngine(), tmp_path).run_check, ASKED))
    await runner.is_comparing.wait()
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert is_empty(tmp_path)
    assert await walk.ledger.report(ASKED.report_id) is None


async def test_what_is_not_built_is_refused(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    with pytest.raises(Permanent):
        await check(walk, runner, tmp_path, ASKED.model_copy(update={"check": CheckName.MESSAGES}))


async def test_a_beat_tells_since_when_it_is_at_the_same() -> None:
    environment = ActivityEnvironment()
    told: list[Any] = []
    environment.on_heartbeat = lambda *details: told.append(dict(details[0]))

    async def work() -> None:
        beat = Beat()
        for done in (1, 1, 2):
            beat.note(1, "compare", done, 2)
            beat.tell("s")

    await environment.run(work)
    first, same, other = (datetime.fromisoformat(details["since"]) for details in told)
    assert first == same < other
