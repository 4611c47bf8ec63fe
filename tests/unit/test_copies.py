"""`run_check` before Kafka's copy and after it: what is kept, what it is compared with, and what makes a look void."""

import json
import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from activities.ports.checks import CheckAttempt
from activities.zk_to_kraft.copies import keep_metadata
from domain.contracts import CheckRequest
from domain.drift.report import CheckName, DriftReport, Verdict
from domain.errors import Permanent, Transient
from domain.quorum_log.metadata_log import EndOfCopy
from playground.fakes.check_runner import FakeCheckRunner
from playground.fakes.cluster import FakeCluster
from playground.fakes.metadata_log import FakeLog
from playground.fakes.znodes import CONTROLLER
from tests.unit.fake_walk import POLICY, LedgerInMemory, Walk
from tests.unit.test_checking import check

KEEP = CheckRequest(
    kind="zk-to-kraft", report_id="kept-1", cluster="orders", migration_id="m1", check=CheckName.BEFORE_COPY, policy=POLICY
)
COMPARE = KEEP.model_copy(update={"report_id": "copy-1", "check": CheckName.COPY})


def walk_of() -> Walk:
    cluster = FakeCluster(boot_looks=1, catch_up_looks=1, copy_looks=1)
    cluster.metadata_log = FakeLog(cluster)
    return Walk(LedgerInMemory(cluster), cluster)


@pytest.fixture
async def walk() -> Walk:
    """All brokers in ZooKeeper mode."""
    return walk_of()


@pytest.fixture
def runner() -> FakeCheckRunner:
    return FakeCheckRunner()


async def led(walk: Walk) -> None:
    """To the dual write, after what ZooKeeper had was kept by the migration's own step."""
    await walk.to("gate")


async def test_what_zookeeper_has_is_kept_and_counted(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    report = await check(walk, runner, tmp_path, KEEP)
    assert (report.verdict, report.check, report.counts["topic"].left) == (Verdict.CLEAN, CheckName.BEFORE_COPY, 2)
    assert report.baseline is not None
    assert {"/brokers/topics/orders", "/brokers/topics/orders/partitions/0/state"} <= runner.paths


async def test_reading_zookeeper_tells_how_far_it_is(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    told: list[str] = []
    copied = CheckAttempt(KEEP, walk.cluster.record(), str(uuid4()), tmp_path, lambda _, stage, *__: told.append(stage))
    await keep_metadata(walk.ports, runner, copied)
    assert told[0] == "reading ZooKeeper's tree"
    assert re.fullmatch(r"reading ZooKeeper's tree, \d+ znodes so far", told[-1])


async def test_what_cannot_be_read_is_named_and_nothing_is_taken_for_whole(
    walk: Walk, runner: FakeCheckRunner, tmp_path: Path
) -> None:
    runner.not_read = ("/config/topics/orders is no JSON",)
    report = await check(walk, runner, tmp_path, KEEP)
    assert (report.verdict, report.not_read) == (Verdict.INCONCLUSIVE, runner.not_read)


async def test_a_look_that_a_claim_has_overtaken_keeps_nothing(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    await led(walk)
    report = await check(walk, runner, tmp_path, KEEP)
    assert (report.verdict, report.baseline) == (Verdict.INCONCLUSIVE, None)
    assert "has claimed ZooKeeper already" in report.not_read[0]


async def kept_and_led(walk: Walk, runner: FakeCheckRunner, work: Path) -> DriftReport:
    """As `led`, with an artefact that is really there."""
    report = await check(walk, runner, work, KEEP)
    await led(walk)
    walk.ledger._reports.remove(report)
    walk.ledger._reports.append(report)
    epoch = json.loads(walk.cluster.znodes[CONTROLLER])["kraftControllerEpoch"]
    runner.end = EndOfCopy(42, epoch)
    return report


def zxid_of(walk: Walk, path: str) -> int:
    znode = walk.cluster.znodes.find(path)
    assert znode is not None
    return znode.modified_zxid


async def test_the_copy_is_compared_at_its_end(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    kept = await kept_and_led(walk, runner, tmp_path)
    report = await check(walk, runner, tmp_path, COMPARE)
    (asked,) = runner.asked
    assert (asked.is_copy, asked.cut, asked.end) == (True, 42, 42)
    assert (report.verdict, report.baseline, report.cut.migration_offset) == (Verdict.CLEAN, kept.baseline, 41)
    assert runner.claims == [zxid_of(walk, CONTROLLER)]


async def test_what_the_copy_lacks_is_a_drift_at_the_first_look(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    await kept_and_led(walk, runner, tmp_path)
    runner.looks = [["lost"]]
    report = await check(walk, runner, tmp_path, COMPARE)
    assert (report.verdict, [finding.key for finding in report.first]) == (Verdict.DRIFT, ["lost"])


async def test_after_a_failover_no_znode_tells_of_its_time(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    await kept_and_led(walk, runner, tmp_path)
    assert runner.end is not None
    runner.end = EndOfCopy(runner.end.offset, runner.end.epoch - 1)
    await check(walk, runner, tmp_path, COMPARE)
    assert runner.claims == [-1]


@pytest.mark.parametrize("why", ["no copy", "no claim", "silent"])
async def test_what_cannot_be_compared_is_inconclusive(walk: Walk, runner: FakeCheckRunner, tmp_path: Path, why: str) -> None:
    await kept_and_led(walk, runner, tmp_path)
    expected: dict[str, Any] = {"no copy": "no complete copy", "no claim": "no claim", "silent": "was killed"}
    if why == "no copy":
        runner.end = None
    elif why == "no claim":
        del walk.cluster.znodes[CONTROLLER]
    else:
        runner.looks = [Transient("a process was killed")]
    report = await check(walk, runner, tmp_path, COMPARE)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert expected[why] in report.not_read[0]


async def test_without_what_was_kept_nothing_can_be_asked_for(walk: Walk, runner: FakeCheckRunner, tmp_path: Path) -> None:
    await led(walk)
    walk.ledger._reports.clear()
    runner.end = EndOfCopy(42, 1)
    with pytest.raises(Permanent, match="was not kept"):
        await check(walk, runner, tmp_path, COMPARE)
