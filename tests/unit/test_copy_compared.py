"""Kafka's copy against what ZooKeeper had: rows that were kept, a later tree, the claim between them, the quorum's log."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.adapters.check_runner import EngineRunner
from activities.ports.checks import Claimed, Comparison
from activities.ports.zookeeper import CapturedZnode
from domain.drift.hashing import content_hash
from domain.drift.records import COPIED_KINDS
from domain.drift.report import CheckName, CheckResult, FindingKind, Verdict
from domain.errors import Permanent, Transient
from domain.quorum_log.metadata_log import EndOfCopy
from domain.quorum_log.record_types import RecordType
from playground.metadata_files import SyntheticCluster, append, batch_of, message, write_log
from tests.unit.test_adapter_check_runner import CLUSTER, SESSION, captured, ignore, znodes

BEFORE, CLAIM, SINCE = 7, 100, 200
"""Transactions: of what was there when the rows were kept; KRaft's claim; what dual write has written."""
CLAIMED_AT = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
TOPIC, STATE = "/brokers/topics/topic-0000000", "/brokers/topics/topic-0000000/partitions/0/state"
CONFIG = "/config/topics/topic-0000000"


@pytest.fixture(autouse=True)
def digest_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIGEST_KEY", "a key of sixteen bytes and more")


@dataclass
class Ensemble:
    """A tree by path, in a capture's order."""

    znodes: dict[str, CapturedZnode] = field(default_factory=lambda: {each.path: each for each in znodes()})

    def write(self, path: str, mzxid: int, **changes: Any) -> None:
        content = json.loads(self.znodes[path].data) | changes
        self.znodes[path] = CapturedZnode(path, json.dumps(content).encode(), mzxid)

    def remove(self, topic: str) -> None:
        """With all that hangs on it."""
        self.znodes = {path: each for path, each in self.znodes.items() if topic not in path.split("/")}


@dataclass
class Copied:
    """What was kept, and the tree as it is now, where a test changes it."""

    directory: Path
    cluster: SyntheticCluster = CLUSTER
    runner: EngineRunner = field(default_factory=lambda: EngineRunner("env:DIGEST_KEY"))
    before: Ensemble = field(default_factory=Ensemble)
    now: Ensemble = field(default_factory=Ensemble)

    async def compared(self, claim: int = CLAIM) -> CheckResult:
        kept = await self.runner.keep(captured([*self.before.znodes.values()]), self.directory / "kept")
        log, then = self.directory / "log", self.directory / "then"
        await asyncio.to_thread(write_log, log, self.cluster)
        end = await self.runner.end_of_copy(log)
        assert end is not None
        await self.runner.as_of_claim(kept.packed, captured([*self.now.znodes.values()]), Claimed(claim, CLAIMED_AT), then)
        asked = Comparison("copy-1", then, log, end.offset, end.offset, self.directory / "out", check=CheckName.COPY)
        return await self.runner.compare(asked, SESSION, ignore)


@pytest.fixture
def copied(tmp_path: Path) -> Copied:
    return Copied(tmp_path)


def told(compared: CheckResult) -> list[tuple[str, str, str]]:
    return [(str(each.finding), each.key, each.field) for each in compared.first]


async def test_a_copy_that_has_all_is_clean(copied: Copied) -> None:
    found = await copied.compared()
    assert (found.verdict, found.first, tuple(found.counts)) == (Verdict.CLEAN, (), COPIED_KINDS)
    assert {kind: found.counts[kind].equal for kind in ("topic", "partition", "topic-config")} == {
        "topic": 3,
        "partition": 6,
        "topic-config": 3,
    }
    findings = content_hash(CheckName.COPY, Verdict.CLEAN, found.counts, (), (), found.rules_fingerprint)
    assert found.content_hash == findings, "it is a report on the copy, and on nothing else"


async def test_what_the_copy_has_lost_is_found_although_dual_write_has_removed_it_from_zookeeper(copied: Copied) -> None:
    copied.cluster = SyntheticCluster(topics=2, partitions=2)
    copied.now.remove("topic-0000002")
    found = await copied.compared()
    assert found.verdict is Verdict.DRIFT
    assert {finding.finding for finding in found.first} == {FindingKind.MISSING_RIGHT}
    assert {finding.record for finding in found.first} == {"topic", "partition", "topic-config"}


async def test_a_value_that_the_copy_has_wrong_is_found_although_dual_write_has_overwritten_it(copied: Copied) -> None:
    copied.before.write(CONFIG, BEFORE, config={CLUSTER.config(0)[0]: "other"})
    copied.now.write(CONFIG, SINCE)
    found = await copied.compared()
    assert told(found) == [("differs", f"topic-0000000/{CLUSTER.config(0)[0]}", "value")]
    assert (found.first[0].left, found.first[0].left_at) == ("other", CONFIG)


async def test_what_somebody_changed_before_the_claim_is_what_the_copy_had_to_take(copied: Copied) -> None:
    copied.before.write(CONFIG, BEFORE, config={CLUSTER.config(0)[0]: "other"})
    copied.now.write(CONFIG, CLAIM - 1)
    assert (await copied.compared()).verdict is Verdict.CLEAN


async def test_a_change_before_the_claim_that_the_copy_has_missed_is_found(copied: Copied) -> None:
    copied.now.write(CONFIG, CLAIM - 1, config={CLUSTER.config(0)[0]: "other"})
    assert told(await copied.compared()) == [("differs", f"topic-0000000/{CLUSTER.config(0)[0]}", "value")]


async def test_what_dual_write_has_written_since_is_no_difference(copied: Copied) -> None:
    copied.now.write(CONFIG, SINCE, config={CLUSTER.config(0)[0]: "other"})
    copied.now.remove("topic-0000001")
    assert (await copied.compared()).verdict is Verdict.CLEAN


async def test_a_topic_made_since_is_told_and_is_no_drift(copied: Copied) -> None:
    copied.before.remove("topic-0000001")
    for path in [each for each in copied.now.znodes if "topic-0000001" in path_parts(each)]:
        copied.now.write(path, SINCE)
    found = await copied.compared()
    assert found.verdict is Verdict.CLEAN
    assert {each[0] for each in told(found)} == {"missing_left"}


def path_parts(path: str) -> list[str]:
    return path.split("/")


async def test_a_leader_that_changed_in_the_restart_is_no_difference(copied: Copied) -> None:
    copied.before.write(STATE, BEFORE, leader=5, isr=[5], leader_epoch=3)
    copied.now.write(STATE, SINCE)
    assert (await copied.compared()).verdict is Verdict.CLEAN


async def test_a_leader_of_which_the_time_is_known_is_compared(copied: Copied) -> None:
    copied.now.write(STATE, CLAIM, leader=5, isr=[5])
    assert told(await copied.compared()) == [("differs", "topic-0000000-0", "isr"), ("differs", "topic-0000000-0", "leader")]


async def test_an_assignment_that_moved_since_is_that_of_before(copied: Copied) -> None:
    """The state was written last before the claim, and the topic's own znode after it."""
    copied.now.write(TOPIC, SINCE, partitions={"0": [5, 4], "1": [4, 5]})
    assert (await copied.compared()).verdict is Verdict.CLEAN


async def test_a_config_that_somebody_removed_before_the_claim_is_not_lost(copied: Copied) -> None:
    """Its znode is still there, and tells: with other configs, or with none."""
    key, value = CLUSTER.config(0)
    copied.before.write(CONFIG, BEFORE, config={key: value, "leader.replication.throttled.replicas": "*"})
    copied.now.write(CONFIG, CLAIM - 1)
    copied.before.write("/config/topics/topic-0000001", BEFORE, config={key: value, "retention.ms": "1"})
    copied.now.write("/config/topics/topic-0000001", SINCE)
    found = await copied.compared()
    assert told(found) == [("missing_right", "topic-0000001/retention.ms", "")], "of that nobody can tell any more"


async def test_configs_that_were_all_removed_before_the_claim_are_not_lost(copied: Copied) -> None:
    copied.cluster = SyntheticCluster(CLUSTER.topics, CLUSTER.partitions, configs=0)
    for topic in range(CLUSTER.topics):
        copied.now.write(f"/config/topics/{CLUSTER.name(topic)}", CLAIM, config={})
    assert (await copied.compared()).verdict is Verdict.CLEAN


async def test_a_topic_that_was_made_anew_under_its_name_has_lost_nothing(copied: Copied) -> None:
    copied.before.write(TOPIC, BEFORE, topic_id="AAAAAAAAAAAAAAAAAAAAAA")
    copied.now.write(TOPIC, CLAIM - 1)
    assert (await copied.compared()).verdict is Verdict.CLEAN


async def test_a_topic_that_goes_while_it_is_read_says_nothing_of_its_state(copied: Copied) -> None:
    copied.before.write(STATE, BEFORE, leader=5, leader_epoch=4)
    del copied.now.znodes[STATE]
    assert (await copied.compared()).verdict is Verdict.CLEAN


async def test_an_assignment_that_was_moving_is_not_compared_unless_its_time_is_known(copied: Copied) -> None:
    moving = {"adding_replicas": {"0": [9]}, "removing_replicas": {}}
    replicas = CLUSTER.replicas[0].tolist()
    copied.before.write(TOPIC, BEFORE, partitions={"0": [*replicas, 9], "1": CLUSTER.replicas[1].tolist()}, **moving)
    copied.now.write(TOPIC, SINCE)
    assert (await copied.compared()).verdict is Verdict.CLEAN


async def test_an_assignment_that_did_not_move_is_compared_whatever_dual_write_has_written(copied: Copied) -> None:
    copied.before.write(TOPIC, BEFORE, partitions={"0": [5, 4, 3], "1": CLUSTER.replicas[1].tolist()})
    copied.now.write(TOPIC, SINCE)
    assert told(await copied.compared()) == [("differs", "topic-0000000-0", "replicas")]


def token(expires: datetime) -> dict[str, Any]:
    milliseconds = round(expires.timestamp() * 1000)
    told = {"version": 1, "owner": "User:a", "renewers": [], "issueTimestamp": 1, "maxTimestamp": milliseconds + 10**9}
    return told | {"expiryTimestamp": milliseconds, "tokenId": "t"}


@pytest.mark.parametrize(("age", "verdict"), [(timedelta(hours=1), Verdict.CLEAN), (timedelta(hours=-1), Verdict.DRIFT)])
async def test_a_token_that_was_past_its_time_is_not_lost(copied: Copied, age: timedelta, verdict: Verdict) -> None:
    path = "/delegation_token/tokens/t"
    copied.before.znodes[path] = CapturedZnode(path, json.dumps(token(CLAIMED_AT - age)).encode(), BEFORE)
    assert (await copied.compared()).verdict is verdict


async def test_after_another_claim_only_what_was_kept_counts(copied: Copied) -> None:
    copied.now.write(CONFIG, CLAIM - 1, config={CLUSTER.config(0)[0]: "other"})
    assert (await copied.compared(claim=-1)).verdict is Verdict.CLEAN


def ids(block: int) -> dict[str, Any]:
    return {"version": 1, "broker": 1, "block_start": str(block), "block_end": str(block + 999)}


@pytest.mark.parametrize(("next_id", "verdict"), [(2000, Verdict.CLEAN), (3000, Verdict.CLEAN), (1000, Verdict.DRIFT)])
async def test_producer_ids_only_go_up(copied: Copied, next_id: int, verdict: Verdict) -> None:
    """A broker may have taken a block between the two looks; one that goes down is handed out twice."""
    path = "/latest_producer_id_block"
    copied.before.znodes[path] = CapturedZnode(path, json.dumps(ids(1000)).encode(), BEFORE)
    copied.now.znodes[path] = CapturedZnode(path, json.dumps(ids(5000)).encode(), SINCE)
    record = {"brokerId": 1, "brokerEpoch": 1, "nextProducerId": next_id}
    with_ids(copied, message(RecordType.PRODUCER_IDS, 0, record))
    assert (await copied.compared()).verdict is verdict


def with_ids(copied: Copied, value: bytes) -> None:
    class WithIds(SyntheticCluster):
        def values_as_copied(self) -> Iterable[bytes]:  # type: ignore[override]
            yield from super().values_as_copied()
            yield value

    copied.cluster = WithIds(CLUSTER.topics, CLUSTER.partitions)


async def test_rows_that_were_digested_with_another_key_are_not_compared(
    copied: Copied, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = await copied.runner.keep(captured(znodes()), copied.directory / "kept")
    monkeypatch.setenv("DIGEST_KEY", "another key of sixteen bytes")
    with pytest.raises(Transient, match="another digest key"):
        await copied.runner.as_of_claim(kept.packed, captured(znodes()), Claimed(CLAIM, None), copied.directory / "then")


async def test_damaged_rows_are_refused(copied: Copied) -> None:
    with pytest.raises(Permanent, match="no archive"):
        await copied.runner.as_of_claim(b"damaged", captured(znodes()), Claimed(CLAIM, None), copied.directory / "then")


async def test_what_is_kept_is_counted(copied: Copied) -> None:
    kept = await copied.runner.keep(captured(znodes()), copied.directory / "kept")
    assert (kept.counts["topic"], kept.counts["partition"], kept.not_read) == (3, 6, ())


# ---- where the copy ends ----


def state(value: int) -> bytes:
    return message(RecordType.ZK_MIGRATION_STATE, 0, {"zkMigrationState": value})


def marker(kind: RecordType, values: Mapping[str, Any] = {}) -> bytes:
    return message(kind, 0, values)


BEGIN, END, ABORT = (
    marker(RecordType.BEGIN_TRANSACTION, {"name": "ZK Migration"}),
    marker(RecordType.END_TRANSACTION),
    marker(RecordType.ABORT_TRANSACTION, {"reason": "failed over"}),
)
PRE_MIGRATION, MIGRATION = state(2), state(1)


@pytest.mark.parametrize(
    ("records", "end"),
    [
        ([PRE_MIGRATION], None),
        ([PRE_MIGRATION, MIGRATION, state(1)], 2),
        ([PRE_MIGRATION, BEGIN, MIGRATION], None),
        ([PRE_MIGRATION, BEGIN, MIGRATION, END, PRE_MIGRATION], 4),
        ([PRE_MIGRATION, BEGIN, MIGRATION, ABORT], None),
        ([PRE_MIGRATION, BEGIN, ABORT, BEGIN, MIGRATION, END], 6),
    ],
)
async def test_the_copy_ends_with_its_transaction(tmp_path: Path, records: list[bytes], end: int | None) -> None:
    segment = tmp_path / f"{0:020}.log"
    segment.write_bytes(b"".join(batch_of(offset, [value], epoch=offset + 1) for offset, value in enumerate(records)))
    found = await EngineRunner("env:DIGEST_KEY").end_of_copy(tmp_path)
    assert found == (EndOfCopy(end, end) if end is not None else None)


async def test_a_log_that_has_lost_its_beginning_tells_of_a_copy_that_came_later(tmp_path: Path) -> None:
    runner = EngineRunner("env:DIGEST_KEY")
    append(tmp_path / f"{10:020}.log", 10, [PRE_MIGRATION])
    assert await runner.end_of_copy(tmp_path) is None
    append(tmp_path / f"{11:020}.log", 11, [MIGRATION])
    assert await runner.end_of_copy(tmp_path) == EndOfCopy(12, 1)
