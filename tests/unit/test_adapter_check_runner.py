"""`EngineRunner`: a captured tree and a log of the same cluster, staged, compared and confirmed without Spark."""

import asyncio
import errno
import json
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest

from activities.adapters import connected_spark
from activities.adapters.check_runner import EngineRunner
from activities.adapters.connected_spark import ConnectedSpark
from activities.ports.checks import Comparison
from activities.ports.zookeeper import CapturedZnode
from domain.drift.normalise import uuid_text
from domain.drift.report import CheckName, CheckResult, Verdict
from domain.drift.tolerations import Toleration
from domain.errors import Permanent, Transient
from domain.quorum_log.record_types import RecordType
from domain.zk_to_kraft.comparison import names_of
from playground.metadata_files import SyntheticCluster, append, message, write_log
from spark.session.endpoint import Endpoint

KEY = "a key of sixteen bytes and more"
CLUSTER = SyntheticCluster(topics=3, partitions=2)
SESSION = str(uuid4())


def ignore(*_: object) -> None:
    pass


def znodes(**changed: str) -> list[CapturedZnode]:
    """The tree of `CLUSTER`, in the order of a capture; `changed`: values of the topics' configs, by topic."""
    topics, configs = [], []
    for topic in range(CLUSTER.topics):
        name = CLUSTER.name(topic)
        replicas = CLUSTER.replicas[topic * CLUSTER.partitions : (topic + 1) * CLUSTER.partitions].tolist()
        assigned = {str(number): ids for number, ids in enumerate(replicas)}
        told = {"version": 2, "topic_id": uuid_text(CLUSTER.ids[topic].tobytes()), "partitions": assigned}
        topics.append(znode(f"/brokers/topics/{name}", told | {"adding_replicas": {}, "removing_replicas": {}}))
        for number, ids in enumerate(replicas):
            epoch = int(CLUSTER.leader_epochs[topic * CLUSTER.partitions + number])
            state = {"controller_epoch": 1, "leader": ids[0], "version": 1, "leader_epoch": epoch, "isr": ids}
            topics.append(znode(f"/brokers/topics/{name}/partitions/{number}/state", state))
        key, value = CLUSTER.config(0)
        configs.append(znode(f"/config/topics/{name}", {"version": 1, "config": {key: changed.get(f"t{topic}", value)}}))
    return [*topics, *configs]


def znode(path: str, content: dict[str, Any]) -> CapturedZnode:
    return CapturedZnode(path, json.dumps(content).encode(), 7)


async def captured(found: list[CapturedZnode]) -> AsyncIterator[tuple[CapturedZnode, ...]]:
    for each in found:
        yield (each,)


@pytest.fixture(autouse=True)
def digest_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIGEST_KEY", KEY)


@pytest.fixture
def runner() -> EngineRunner:
    return EngineRunner("env:DIGEST_KEY")


async def compared(
    runner: EngineRunner, directory: Path, found: list[CapturedZnode], *tolerated: Toleration
) -> tuple[Comparison, CheckResult]:
    directory.mkdir()  # noqa: ASYNC240
    end = write_log(directory / "log", CLUSTER)
    await runner.stage(captured(found), directory / "zookeeper")
    asked = Comparison("check-1", directory / "zookeeper", directory / "log", end, end, directory / "out", tolerated)
    return asked, await runner.compare(asked, SESSION, ignore)


async def test_both_sides_say_the_same(runner: EngineRunner, tmp_path: Path) -> None:
    _, same = await compared(runner, tmp_path / "look", znodes())
    assert (same.verdict, same.first, same.engine) == (Verdict.CLEAN, (), "local")
    assert (same.counts["partition"].equal, same.counts["topic"].equal) == (6, 3)
    assert same.findings.exists()


async def test_what_only_zookeeper_has_rows_of_is_no_difference(runner: EngineRunner, tmp_path: Path) -> None:
    """The cluster's id is in the log of no quorum."""
    claims = [znode("/cluster/id", {"version": "1", "id": "abc"})]
    _, same = await compared(runner, tmp_path / "look", [*znodes(), *claims])
    assert same.verdict is Verdict.CLEAN


@pytest.mark.parametrize(("first", "verdict"), [(0, "clean"), (1000, "clean"), (2000, "drift")])
async def test_producer_ids_are_as_the_copy_left_them_or_as_dual_write_did(
    runner: EngineRunner, tmp_path: Path, first: int, verdict: str
) -> None:
    """ZooKeeper's newest block, where KRaft hands out 1000 next: the one before it, until KRaft has handed out one itself."""
    block = {"version": 1, "broker": 1, "block_start": str(first), "block_end": str(first + 999)}
    end = write_log(tmp_path / "log", CLUSTER)
    told = {"brokerId": 1, "brokerEpoch": -1, "nextProducerId": 1000}
    end = append(next((tmp_path / "log").glob("*.log")), end, [message(RecordType.PRODUCER_IDS, 0, told)])
    await runner.stage(captured([*znodes(), znode("/latest_producer_id_block", block)]), tmp_path / "zookeeper")
    asked = Comparison("check-1", tmp_path / "zookeeper", tmp_path / "log", end, end, tmp_path / "out")
    assert (await runner.compare(asked, SESSION, ignore)).verdict == verdict


async def test_a_difference_is_named(runner: EngineRunner, tmp_path: Path) -> None:
    _, drifted = await compared(runner, tmp_path / "look", znodes(t1="edited"))
    (finding,) = drifted.first
    assert drifted.verdict is Verdict.DRIFT
    assert (finding.record, finding.left, finding.right) == ("topic-config", "edited", "1000000")
    assert "/config/topics/topic-0000001" in finding.left_at


async def test_only_what_stands_in_both_looks_is_confirmed(runner: EngineRunner, tmp_path: Path) -> None:
    _, earlier = await compared(runner, tmp_path / "1", znodes(t1="edited", t2="moving"))
    asked, later = await compared(runner, tmp_path / "2", znodes(t1="edited", t2="moving on", t0="new"))
    asked = Comparison(**(vars(asked) | {"out": tmp_path / "confirmed"}))
    confirmed, moved = await runner.confirm(asked, earlier, later)
    assert moved == 2
    assert [finding.left for finding in confirmed.first] == ["edited"]
    assert (confirmed.verdict, confirmed.counts["topic-config"].differs) == (Verdict.DRIFT, 1)
    _, alone = await compared(runner, tmp_path / "3", znodes(t1="edited"))
    assert confirmed.content_hash == alone.content_hash, "what moved beside it is not material"


async def test_rows_that_one_side_lacks_are_matched_too(runner: EngineRunner, tmp_path: Path) -> None:
    """Their values are null, which no join matches."""
    without = [each for each in znodes() if not each.path.startswith("/brokers/topics/topic-0000002")]
    _, earlier = await compared(runner, tmp_path / "1", [each for each in without if "config" not in each.path])
    asked, later = await compared(runner, tmp_path / "2", without)
    confirmed, moved = await runner.confirm(Comparison(**(vars(asked) | {"out": tmp_path / "c"})), earlier, later)
    assert moved == 0
    assert {finding.finding for finding in confirmed.first} == {"missing_left"}
    assert confirmed.counts["partition"].missing_left == 2


async def test_the_same_looks_confirm_each_other(runner: EngineRunner, tmp_path: Path) -> None:
    _, earlier = await compared(runner, tmp_path / "1", znodes(t1="edited"))
    asked, later = await compared(runner, tmp_path / "2", znodes(t1="edited"))
    assert await runner.confirm(asked, earlier, later) == (later, 0)


async def test_tolerations_that_were_used_are_named_as_the_policy_names_them(runner: EngineRunner, tmp_path: Path) -> None:
    used = Toleration(record="topic-config", by="anna", reason="known")
    unused = Toleration(record="acl", by="anna", reason="never seen")
    _, tolerated = await compared(runner, tmp_path / "look", znodes(t1="edited"), used, unused)
    assert tolerated.verdict is Verdict.CLEAN
    assert tolerated.tolerated == names_of((used,))


class AwaySpark:
    """A Spark that begins, and is gone."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def session_of(self, migration_id: str) -> str:
        return SESSION

    def leave(self, migration_id: str) -> None:
        pass

    def is_ready(self, session: str) -> bool:
        return True

    async def run(self, job: Any, session: str, on_progress: Any) -> Any:
        job.out.mkdir()
        (job.out / "half").write_text("written")
        raise self._error

    async def interrupt(self, session: str) -> None:
        raise self._error


class LateSpark(AwaySpark):
    """One that is still starting."""

    def is_ready(self, session: str) -> bool:
        return False


async def test_the_next_restart_waits_for_no_spark_that_is_still_starting(tmp_path: Path) -> None:
    """Kafka's copy is compared here meanwhile. What the gate rests on waits for Spark."""
    asked: list[CheckName] = []

    class Asked(LateSpark):
        async def run(self, job: Any, session: str, on_progress: Any) -> Any:
            asked.append(job.check)
            return await super().run(job, session, on_progress)

    runner = EngineRunner("env:DIGEST_KEY", spark=Asked(Transient("gone")))
    job = SimpleNamespace(check=CheckName.COPY, id="1", out=tmp_path / "out")
    assert await runner._run_on_spark(cast("Any", job), SESSION, lambda _: None) is None
    assert asked == []
    job.check = CheckName.METADATA
    assert await runner._run_on_spark(cast("Any", job), SESSION, lambda _: None) is None
    assert asked == [CheckName.METADATA]


@pytest.mark.parametrize("error", [Transient("gone"), Permanent("no Java for it")])
async def test_a_spark_that_is_away_never_closes_the_way(error: Exception, tmp_path: Path) -> None:
    runner = EngineRunner("env:DIGEST_KEY", spark=AwaySpark(error))
    await runner.interrupt(SESSION)
    _, same = await compared(runner, tmp_path / "look", znodes())
    assert (same.verdict, same.engine) == (Verdict.CLEAN, "local")


async def test_without_pyspark_the_comparison_is_made_here(tmp_path: Path) -> None:
    spark = ConnectedSpark(lambda: None)
    _, same = await compared(EngineRunner("env:DIGEST_KEY", spark=spark), tmp_path / "look", znodes())
    assert same.engine == "local"
    await spark.close()


TALKS_TO_SPARK = "spark.session.running"
"""Ours, which other tests of this run may have imported without harm; PySpark's own modules are not to be had twice."""


class NotWhole:
    """An importer that cannot give what talks to Spark, and knows who has asked for it."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def find_spec(self, name: str, *_: object) -> None:
        if name == TALKS_TO_SPARK:
            self.threads.append(threading.current_thread())
            raise ImportError("libgrpc.so: file too short")


class NoServer:
    """A provider whose server cannot be started."""

    def endpoint(self) -> Endpoint:
        raise OSError(errno.ENOSPC, "No space left on device")

    def close(self) -> None:
        pass


async def test_a_spark_that_is_half_installed_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    half = NotWhole()
    monkeypatch.setattr(sys, "meta_path", [half, *sys.meta_path])
    monkeypatch.delitem(sys.modules, TALKS_TO_SPARK, raising=False)
    runner = EngineRunner("env:DIGEST_KEY", spark=ConnectedSpark(NoServer))
    await runner.interrupt(SESSION)
    _, same = await compared(runner, tmp_path / "look", znodes())
    assert same.engine == "local"
    assert len(half.threads) == 2
    assert threading.main_thread() not in half.threads, "an import of seconds would stop heartbeats"


async def test_a_spark_that_cannot_be_started_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connected_spark, "USED", ())
    runner = EngineRunner("env:DIGEST_KEY", spark=ConnectedSpark(NoServer))
    _, same = await compared(runner, tmp_path / "look", znodes())
    assert same.engine == "local"


class Sessions:
    """Those that are open, by name. Work fails when told to."""

    def __init__(self) -> None:
        self.open = set[str]()
        self.fails = False

    async def run(self, _: object, session: str, work: object, tag: str = "") -> None:
        await asyncio.sleep(0)
        self.open.add(session)
        if self.fails and tag != "warm-up":
            raise Transient("an input cannot be read now")

    def close(self, session: str) -> None:
        self.open.discard(session)


class Started:
    """A provider whose server runs."""

    def endpoint(self) -> Endpoint:
        return Endpoint(url="sc://127.0.0.1:1")

    def close(self) -> None:
        pass


@pytest.fixture
async def shared(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[ConnectedSpark, Sessions]]:
    monkeypatch.setattr(connected_spark, "USED", ())
    spark, sessions = ConnectedSpark(Started), Sessions()
    spark._open = cast("Any", sessions)
    yield spark, sessions
    await spark.close()


async def settled() -> None:
    """What was begun beside has ended."""
    await asyncio.sleep(0.2)


async def test_a_session_in_which_work_has_failed_is_closed_and_used_no_more(
    shared: tuple[ConnectedSpark, Sessions],
) -> None:
    spark, sessions = shared
    name = spark.session_of("migration")
    await settled()
    assert spark.is_ready(name)
    sessions.fails = True
    with pytest.raises(Transient):
        await spark.run_with(lambda _: None, name, "check")
    await settled()
    assert not sessions.open
    assert spark.session_of("migration") != name


async def test_a_session_that_is_left_while_it_is_opened_is_closed_once_it_is(
    shared: tuple[ConnectedSpark, Sessions],
) -> None:
    spark, sessions = shared
    spark.session_of("migration")
    spark.leave("migration")
    await settled()
    assert not sessions.open


async def test_sessions_that_nobody_has_used_for_long_are_closed(
    shared: tuple[ConnectedSpark, Sessions], monkeypatch: pytest.MonkeyPatch
) -> None:
    spark, sessions = shared
    spark.session_of("reverted")
    await settled()
    monkeypatch.setattr(connected_spark, "KEPT_SECONDS", -1.0)
    other = spark.session_of("another")
    await settled()
    assert sessions.open == {other}


async def test_a_damaged_log_is_permanent(runner: EngineRunner, tmp_path: Path) -> None:
    write_log(tmp_path / "log", CLUSTER)
    segment = next((tmp_path / "log").glob("*.log"))
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    await runner.stage(captured(znodes()), tmp_path / "zookeeper")
    asked = Comparison("check-1", tmp_path / "zookeeper", tmp_path / "log", 30, 30, tmp_path / "out")
    with pytest.raises(Permanent):
        await runner.compare(asked, SESSION, ignore)


async def test_a_cancelled_capture_ends_and_leaves_no_rows(runner: EngineRunner, tmp_path: Path) -> None:
    is_reading = asyncio.Event()

    async def endless() -> AsyncIterator[tuple[CapturedZnode, ...]]:
        while True:
            is_reading.set()
            yield tuple(znodes())
            await asyncio.sleep(0)

    staging = asyncio.create_task(runner.stage(endless(), tmp_path / "zookeeper"))
    await is_reading.wait()
    staging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await staging
    assert not (tmp_path / "zookeeper").exists()


async def test_a_key_that_is_too_short_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIGEST_KEY", "short")
    with pytest.raises(Permanent, match="too short"):
        await EngineRunner("env:DIGEST_KEY").stage(captured(znodes()), tmp_path / "zookeeper")
