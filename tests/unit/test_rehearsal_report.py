"""What a rehearsal tells people: findings with a fix for each place, memory, and why there was none."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment

from activities.observing.present_ensemble import Newest
from activities.zk_to_kraft.poison import SLASH
from activities.zk_to_kraft.rehearsal.candidates import MISFIT, candidate_of
from activities.zk_to_kraft.rehearsal.isolation import NotAlone, enter_alone
from activities.zk_to_kraft.rehearsal.messages import Copied, Ended
from activities.zk_to_kraft.rehearsal.program import why_no_round
from activities.zk_to_kraft.rehearsal.rehearsing import Rehearsal, RehearsalPorts, in_time, rehearse, report_of
from activities.zk_to_kraft.rehearsal.room import UnsharedRooms
from api.running.planning import REHEARSED_PLAN_LIMIT
from domain.cluster import ClusterSpec, ZooKeeperMemberSpec
from domain.drift.records import Severity as DriftSeverity
from domain.drift.report import DriftFinding, FindingKind, Verdict
from domain.errors import Permanent
from domain.observed.observation import Suspect
from domain.records import ClusterRecord
from domain.rehearsal import Equality, RehearsalLimits, RehearsalReport, Usage
from domain.zk_to_kraft.rehearsal.outcome import advice_of, differences_of
from domain.zk_to_kraft.rehearsal.trials import Candidate, Effect, Outcome, Trial
from playground.example import example_cluster


@pytest.mark.parametrize(
    ("path", "why", "expected"),
    [
        ("/brokers/ids/9", "is not registered, and has replicas of 3 partitions, such as a-1", Effect.BLOCKS),
        ("/brokers/ids", "does not exist: no broker is known", Effect.BLOCKS),
        ("/brokers/topics/t", "has no topic_id; a controller of Kafka 2.8 or newer gives one", Effect.BLOCKS),
        ("/brokers/topics/t/partitions/0/state", "is no JSON", Effect.LOSES),
        ("/config/topics/t", "is no JSON", Effect.LOSES),
        ("/config/users/u", "the value of producer_byte_rate is no number", Effect.ABORTS),
        ("/config/users/u", "is no JSON", Effect.LOSES),
        ("/kafka-acl/Topic/t", "the principal of ACL 1 has no type; expected Type:name, such as User:name", Effect.ABORTS),
        ("/kafka-acl/Topic/t", "the operation of ACL 1 is not one that Kafka knows", Effect.LOSES),
        ("/config/clients/c", "speed is not a quota that Kafka knows there", Effect.HANGS),
        ("/kafka-acl/Group/a/b", f"{SLASH}: the copy reads no deeper", Effect.HANGS),
    ],
)
def test_what_is_expected_of_a_znode_that_is_not_of_its_form(path: str, why: str, expected: Effect) -> None:
    assert candidate_of(Suspect(what=path, why=why)).expected is expected


def test_the_same_fault_in_two_places_has_one_cause() -> None:
    one, other, another = (
        candidate_of(Suspect(what=f"/kafka-acl/Topic/{name}", why=f"the principal of ACL {number} has {what}"))
        for name, number, what in (("a", 1, "no type"), ("b", 22, "no type"), ("c", 1, "no name"))
    )
    assert one.cause == other.cause != another.cause


QUOTA = candidate_of(Suspect(what="/config/users/u", why="the value of producer_byte_rate is no number"))


def ended(*trials: Trial, copied: Copied | None = None) -> Ended:
    return Ended(candidates=(QUOTA,), trials=trials, copied=copied or Copied())


def test_a_znode_that_aborts_the_copy_is_a_blocker_with_a_command() -> None:
    trials = (Trial(frozenset(), Outcome.DIED), Trial(frozenset({QUOTA.path}), Outcome.COPIED))
    report = report_of(ended(*trials), None, "zk:2181/kafka", Newest(0x4D))
    (finding,) = report.findings
    assert (finding.code, finding.object, finding.severity) == ("RH01", "/config/users/u", "blocker")
    assert "zookeeper-shell.sh zk:2181/kafka delete /config/users/u" in finding.fix
    assert (report.has_passed, report.has_passed_in_part, report.left_out) == (False, True, ("/config/users/u",))


def test_only_a_copy_of_the_cluster_as_it_is_has_passed() -> None:
    report = report_of(ended(Trial(frozenset(), Outcome.COPIED)), None, "zk:2181", Newest(0x4D))
    assert (report.has_passed, report.has_passed_in_part, report.left_out) == (True, False, ())


def test_a_copy_that_stops_at_no_znode_alone_is_told_as_unexplained() -> None:
    """It died as the cluster is; without both guesses it passed, and without either too."""
    first, second = (Candidate(f"/config/brokers/{n}", MISFIT, Effect.ABORTS, f"{n}", is_guess=True) for n in (1, 2))
    trials = (
        Trial(frozenset(), Outcome.DIED),
        Trial(frozenset({first.path, second.path}), Outcome.COPIED),
        Trial(frozenset({first.path}), Outcome.COPIED),
        Trial(frozenset({second.path}), Outcome.COPIED),
    )
    report = report_of(Ended(candidates=(first, second), trials=trials, copied=Copied()), None, "zk:2181", Newest(0))
    (finding,) = report.findings
    assert (finding.code, finding.severity, report.has_passed) == ("RH04", "blocker", False)
    assert report.left_out == (first.path, second.path)
    assert f"passed without {first.path}, {second.path}" in finding.observed


@pytest.mark.parametrize("cut", ["16 rounds were made, and no more are", "round 1 was not over after 0:05:00"])
def test_a_rehearsal_that_is_cut_short_before_a_copy_has_passed_is_not_verified(cut: str) -> None:
    trials = (Trial(frozenset(), Outcome.DIED), Trial(frozenset({QUOTA.path}), Outcome.HUNG))
    cut_off = Ended(candidates=(QUOTA,), trials=trials, copied=Copied(), cut=cut)
    report = report_of(cut_off, None, "zk:2181", Newest(0))
    told = next(finding for finding in report.findings if finding.code == "RH00")
    assert (told.is_unverifiable, told.severity, report.has_passed) == (True, "blocker", False)
    assert cut in told.observed
    assert "rehearse again" in told.fix
    assert "RH04" not in {finding.code for finding in report.findings}


@pytest.mark.parametrize(
    ("made", "seconds", "why"),
    [
        (0, 0.0, ""),
        (1, 301.0, ""),
        (1, 299.0, "after 1 round the time was up"),
        (15, 301.0, ""),
        (16, 9999.0, "16 rounds were made, and no more are"),
    ],
)
def test_no_round_begins_that_may_not_be_over_in_time(made: int, seconds: float, why: str) -> None:
    assert why_no_round(made, seconds, RehearsalLimits()) == why


class SlowRooms:
    """A room that never opens."""

    def __init__(self) -> None:
        self.is_left = False

    def java(self, _home: str | None) -> str:
        return "java"

    def libs(self, _home: str) -> str:
        return "libs"

    @asynccontextmanager
    async def open(self, _directory: Path) -> AsyncIterator[None]:
        try:
            await asyncio.Event().wait()
            yield
        finally:
            self.is_left = True


async def test_a_rehearsal_that_takes_too_long_is_cut_off_and_refused_with_what_to_do(tmp_path: Path) -> None:
    rooms, limits = SlowRooms(), RehearsalLimits(deadline=timedelta(milliseconds=50))
    report = await rehearse(record_of(with_a_member()), RehearsalPorts(None, None, None, rooms), tmp_path, limits)
    assert report.refused.startswith("it was not over after 0:00:00.05")
    assert "while it is idle" in report.refused
    assert rooms.is_left
    assert not await asyncio.to_thread(lambda: list(tmp_path.iterdir()))


class TellingRunner:
    """Compares in eight parts."""

    async def end_of_copy(self, _log: Path) -> Any:
        return SimpleNamespace(offset=7)

    async def keep(self, _rows: Any, _into: Path) -> None: ...

    async def compare(self, _asked: Any, _session: str, on_progress: Any) -> Any:
        on_progress("stage", 3, 8)
        return SimpleNamespace(verdict=Verdict.CLEAN, counts={}, first=(), not_read=())


async def test_a_rehearsal_tells_how_far_its_comparison_is(tmp_path: Path) -> None:
    told: list[tuple[Any, ...]] = []
    ports = RehearsalPorts(*(cast("Any", None),) * 4, runner=cast("Any", TellingRunner()))
    record = record_of(with_a_member())
    rehearsal = Rehearsal(record.spec, record, ports, tmp_path, RehearsalLimits(), lambda *how: told.append(how))
    ended = SimpleNamespace(trials=(Trial(frozenset(), Outcome.COPIED),))
    equality = await rehearsal._equality(tmp_path, cast("Any", ended))
    assert equality is not None
    assert equality.verdict is Verdict.CLEAN
    stages = [stage for _, stage, *_ in told]
    assert len(set(stages)) == len(stages) > 3, "it never stands at one thing"
    assert told[-1] == (1, "stage", 3, 8)


def with_a_member() -> ClusterSpec:
    spec = example_cluster()
    members = (ZooKeeperMemberSpec(host="zk", data_dir="/data"),)
    return spec.model_copy(update={"zookeeper": spec.ensemble.model_copy(update={"members": members})})


@pytest.mark.parametrize(("minutes_ago", "minutes"), [(0, 60), (30, 50), (75, 5), (85, 0)])
def test_a_later_attempt_has_what_is_left_of_the_activitys_time(minutes_ago: int, minutes: int) -> None:
    """So that what is cut off is published by this attempt, and not by nobody."""
    environment = ActivityEnvironment()
    begun = datetime.now(UTC) - timedelta(minutes=minutes_ago)
    environment.info = replace(environment.info, scheduled_time=begun, schedule_to_close_timeout=REHEARSED_PLAN_LIMIT)
    limits = environment.run(in_time, RehearsalLimits())
    assert abs(limits.deadline - timedelta(minutes=minutes)) < timedelta(seconds=5)


def test_a_guess_that_was_not_tried_by_itself_is_told_as_one_and_not_as_poison() -> None:
    guesses = tuple(Candidate(f"/config/brokers/{n}", MISFIT, Effect.ABORTS, f"{n}", is_guess=True) for n in (1, 2, 3))
    everything = frozenset(guess.path for guess in guesses)
    trials = (
        Trial(frozenset(), Outcome.DIED),
        Trial(everything, Outcome.COPIED),
        Trial(everything - {"/config/brokers/1"}, Outcome.COPIED),
        Trial(everything - {"/config/brokers/2"}, Outcome.DIED),
    )
    findings = report_of(Ended(candidates=guesses, trials=trials, copied=Copied()), None, "zk:2181", Newest(0)).findings
    assert [(found.object, found.is_unverifiable) for found in findings] == [
        ("/config/brokers/2", False),
        ("/config/brokers/3", True),
    ]
    guilty, guess = findings
    assert guilty.observed.startswith("has an encrypted password that password.encoder.secret does not open; the copy aborts")
    assert guess.observed.startswith("this is a guess")
    assert "It was not tested whether this one is the cause" in guess.observed


def test_a_copy_that_stops_without_any_explanation_is_told_with_the_logs_last_words() -> None:
    copied = Copied(
        copy_seconds=1.0, seconds_without_controller=2.0, told=("java.lang.IllegalStateException", "at kafka.X.y(X:1)")
    )
    trials = (Trial(frozenset(), Outcome.DIED), Trial(frozenset({QUOTA.path}), Outcome.DIED))
    report = report_of(ended(*trials, copied=copied), None, "zk:2181", Newest(0x4D))
    told = next(finding for finding in report.findings if finding.code == "RH04")
    assert "java.lang.IllegalStateException | at kafka.X.y(X:1)" in told.observed
    assert (report.has_passed, report.copy_seconds, report.seconds_without_controller) == (False, None, None)


def test_a_copy_that_passed_on_files_of_an_unknown_age_is_no_pass() -> None:
    trials = Ended(candidates=(), trials=(Trial(frozenset(), Outcome.COPIED),), copied=Copied())
    (finding,) = report_of(trials, None, "zk:2181", Newest(0x4D, "no server says how new the ensemble is")).findings
    assert (finding.code, finding.severity, finding.is_unverifiable) == ("RH07", "blocker", True)
    assert "no server says how new the ensemble is. The copied files certainly contain transaction 0x4d" in finding.observed
    assert report_of(trials, None, "zk:2181", Newest(0x4D)).findings == ()


@pytest.mark.parametrize(
    ("usage", "advice"),
    [
        (Usage(heap_mib=97, rss_mib=220, heap_given_mib=1024), "-Xmx256m"),
        (Usage(heap_mib=305, rss_mib=500, heap_given_mib=1024), "-Xmx768m"),
        (Usage(heap_mib=250, heap_given_mib=256, was_out_of_memory=True), "256 MiB of heap were not enough"),
    ],
)
def test_memory_is_advised_from_what_was_seen(usage: Usage, advice: str) -> None:
    assert advice in advice_of(usage)


def test_what_is_not_seen_is_not_advised() -> None:
    assert advice_of(Usage()) == ""


def difference(severity: DriftSeverity) -> DriftFinding:
    return DriftFinding(
        record="acl", finding=FindingKind.MISSING_RIGHT, severity=severity, rule="exact", key="a", left_at="/kafka-acl/x"
    )


def test_differences_are_findings_except_for_information_and_what_is_named_already() -> None:
    equality = Equality(
        verdict=Verdict.DRIFT,
        differences=(difference(DriftSeverity.BLOCK), difference(DriftSeverity.INFO)),
        not_read=("/config/topics/t is no JSON", "/config/topics/other is no JSON"),
    )
    differs, unread = differences_of(equality, ["/config/topics/t"])
    assert (differs.code, differs.object, differs.severity) == ("RH05", "acl a", "blocker")
    assert (unread.is_unverifiable, unread.severity) == (True, "blocker")
    assert "/config/topics/other" in unread.observed
    assert differences_of(Equality(verdict=Verdict.CLEAN)) == ()


def record_of(spec: ClusterSpec) -> ClusterRecord:
    now = datetime.now(UTC)
    return ClusterRecord(spec=spec, revision=1, generation=1, created_at=now, updated_at=now)


async def refused(tmp_path: Path, record: ClusterRecord) -> RehearsalReport:
    return await rehearse(record, RehearsalPorts(None, None, None, UnsharedRooms()), tmp_path)


async def test_without_files_of_zookeeper_it_is_refused_with_what_to_add(tmp_path: Path) -> None:
    spec = example_cluster()
    nobody = spec.model_copy(update={"zookeeper": spec.ensemble.model_copy(update={"members": ()})})
    report = await refused(tmp_path, record_of(nobody))
    assert "zookeeper.members" in report.refused
    assert not report.ran
    assert not await asyncio.to_thread(lambda: list(tmp_path.iterdir()))


async def test_without_the_clusters_kafka_on_this_machine_it_is_refused(tmp_path: Path) -> None:
    report = await refused(tmp_path, record_of(example_cluster()))
    assert "/opt/kafka/libs has no Kafka on the activity worker's machine" in report.refused


async def test_without_a_namespace_it_is_refused_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An `unshare` that may not, as in a container."""
    program = tmp_path / "unshare"
    program.write_text("#!/bin/sh\necho 'unshare: unshare failed: Operation not permitted' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(Permanent, match=r"unshare failed: Operation not permitted.*run the activity worker as root"):
        async with asyncio.timeout(20), UnsharedRooms().open(tmp_path / "room"):
            pytest.fail("a room was opened")


def test_the_program_does_nothing_outside_of_a_room() -> None:
    with pytest.raises(NotAlone, match="not the first one of a process namespace"):
        enter_alone("net:[1]")
