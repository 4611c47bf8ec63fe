"""The local engine: what it does with sources, progress, processes, and what stands in the way of an answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from domain.drift.records import KINDS
from domain.drift.report import FindingKind, Verdict
from domain.drift.tolerations import Toleration
from domain.errors import Permanent
from spark.engine import sides
from spark.engine.local import LocalEngine
from spark.engine.progress import Progress
from spark.job import CheckJob, StagedRows
from spark.rows import schema_of
from spark.sources.source import Rows, Split
from spark.staging import write_rows
from tests.unit.drift_oracle import Row
from tests.unit.generated_clusters import Cluster, generate, rows_of, stage
from tests.unit.test_spark_engine_oracle import job_of, many_clusters

ORIGIN = {"segment": "", "batch": -1, "at": 16}


@dataclass(frozen=True)
class RowsSource:
    """Rows from memory, a split for each kind."""

    rows: dict[str, list[Row]]
    unread: tuple[str, ...] = ()
    journal: dict[str, list[Row]] | None = None

    def splits(self, wanted: int) -> Sequence[Split]:
        return [Split(kind) for kind in self.rows]

    def read(self, split: Split, kinds: frozenset[str]) -> Iterator[Rows]:
        if split.name in kinds:
            yield from rows_of({split.name: self.rows[split.name]})
            yield from rows_of({split.name: (self.journal or {}).get(split.name, [])}, is_journal=True)

    def not_read(self) -> tuple[str, ...]:
        return self.unread


@dataclass(frozen=True)
class DamagedSource(RowsSource):
    def read(self, split: Split, kinds: frozenset[str]) -> Iterator[Rows]:
        raise Permanent(f"{split.name} is damaged at byte 7")


@dataclass(frozen=True)
class HugeTopic:
    """One topic with half of all partitions. `late`: partitions whose leader epoch is one behind."""

    late: frozenset[int] = frozenset()
    count: int = 40_000

    def splits(self, wanted: int) -> Sequence[Split]:
        size = self.count // 4
        return [Split(f"part-{n}", "memory", n * size, (n + 1) * size) for n in range(4)]

    def read(self, split: Split, kinds: frozenset[str]) -> Iterator[Rows]:
        rows = [self._row(n) for n in range(split.begin, split.end)]
        yield Rows("partition", pa.RecordBatch.from_pylist(rows, schema_of("partition")))

    def _row(self, number: int) -> Row:
        huge = number < self.count // 2
        key = {"topic_id": b"huge".ljust(16) if huge else str(number).encode().ljust(16), "partition": number if huge else 0}
        state = {"leader": 1, "isr": [1, 2], "leader_epoch": 7 - (number in self.late), "recovery": 0}
        return {**key, "replicas": [1, 2, 3], "adding": [], "removing": [], **state, **ORIGIN}

    def not_read(self) -> tuple[str, ...]:
        return ()


def topic(name: str, topic_id: str | None = None) -> Row:
    return {"topic": name, "topic_id": topic_id, **ORIGIN}


def nothing_staged(directory: Path) -> CheckJob:
    """For jobs whose sources are given: what is staged is not looked at."""
    directory.mkdir(exist_ok=True)
    return job_of(directory)


def test_given_sources_are_staged_and_say_the_same_as_staged_rows(tmp_path: Path) -> None:
    cluster = many_clusters(Random(1), 5)  # noqa: S311
    stage(cluster, tmp_path / "a")
    staged = LocalEngine().run(job_of(tmp_path / "a"))
    sources = RowsSource(cluster.left), RowsSource(cluster.right, journal=cluster.journal)
    kinds_without_right = set(cluster.journal) - set(cluster.right)
    assert not kinds_without_right
    given = LocalEngine().run(nothing_staged(tmp_path / "b"), sources)
    assert given.model_dump(exclude={"findings", "seconds"}) == staged.model_dump(exclude={"findings", "seconds"})
    assert staged.finding_count > 0


def test_two_clean_reports_have_the_same_hash_whatever_the_rows(tmp_path: Path) -> None:
    hashes = set()
    for number in range(3):
        rows = {"topic": [topic(f"t{n}") for n in range(number * 5)]}
        result = LocalEngine().run(nothing_staged(tmp_path / str(number)), (RowsSource(rows), RowsSource(rows)))
        assert result.verdict is Verdict.CLEAN
        hashes.add(result.content_hash)
    assert len(hashes) == 1


def test_what_was_not_read_makes_a_clean_check_inconclusive_and_hides_no_drift(tmp_path: Path) -> None:
    left, right = RowsSource({"topic": [topic("a")]}, ("/kafka-acl: no permission",)), RowsSource({"topic": [topic("a")]})
    result = LocalEngine().run(nothing_staged(tmp_path / "a"), (left, right))
    assert (result.verdict, result.not_read) == (Verdict.INCONCLUSIVE, ("/kafka-acl: no permission",))
    result = LocalEngine().run(nothing_staged(tmp_path / "b"), (left, RowsSource({"topic": [topic("b")]})))
    assert result.verdict is Verdict.DRIFT


def test_a_finding_says_what_and_where(tmp_path: Path) -> None:
    id_text = "AAAAAAAAAAAAAAAAAAAAAQ"
    state: Row = {"replicas": [1, 2], "adding": [], "removing": [], "leader": 1, "leader_epoch": 4, "recovery": 0}
    row: Row = {"topic_id": bytes(15) + b"\1", "partition": 3, **state, "isr": [1, 2], **ORIGIN}
    late = {**row, "isr": [1], "segment": "00000000000000000000.log", "batch": 61, "at": 99}
    topics = {"topic": [topic("orders", id_text)]}
    sources = RowsSource({**topics, "partition": [row]}), RowsSource({**topics, "partition": [late]})
    (finding,) = LocalEngine().run(nothing_staged(tmp_path), sources).first
    assert (finding.key, finding.field, finding.left, finding.right) == ("orders-3", "isr", "[1, 2]", "[1]")
    assert finding.left_at == "/brokers/topics/orders/partitions/3/state mzxid 0x10"
    assert finding.right_at == "00000000000000000000.log at byte 61, offset 99"


def test_a_key_twice_is_told_loudly_and_nobody_tolerates_it(tmp_path: Path) -> None:
    """Also where both sides have it twice, alike."""
    rows = {"topic": [topic("a"), topic("a"), topic("b")]}
    write_rows(tmp_path / "left", rows_of(rows))
    write_rows(tmp_path / "right", rows_of(rows))
    result = LocalEngine().run(job_of(tmp_path, (Toleration(record="topic", by="somebody", reason="any"),)))
    (finding,) = result.first
    assert (result.verdict, finding.rule, finding.key) == (Verdict.DRIFT, "duplicate-key", "a")
    assert (finding.left, finding.right) == ("2 rows", "2 rows")


def test_secrets_are_redacted_also_where_one_side_only_takes_it_for_one(tmp_path: Path) -> None:
    key: Row = {"broker": "", "name": "ssl.keystore.password"}
    plain: Row = {**key, "value": "hunter2", "digest": "", **ORIGIN}
    secret: Row = {**key, "value": None, "digest": "ab" * 16, **ORIGIN}
    sources = RowsSource({"broker-config": [secret]}), RowsSource({"broker-config": [plain]})
    result = LocalEngine().run(nothing_staged(tmp_path), sources)
    assert {(one.key, one.field, one.left, one.right) for one in result.first} == {
        ("<default>/ssl.keystore.password", "value", None, "(redacted)"),
        ("<default>/ssl.keystore.password", "digest", "(redacted)", ""),
    }
    assert all(one.is_redacted for one in result.first)
    assert b"ab" * 16 not in result.findings.read_bytes()
    assert "hunter2" not in str(pq.read_table(result.findings).to_pylist())


def test_numbers_agree_to_a_millionth_and_not_further(tmp_path: Path) -> None:
    numbers = [(1e6, 1e6 + 0.9, True), (1e6, 1e6 + 1.1, False), (0.0, -0.0, True), (0.0, 1e-300, False)]
    inf, nan = float("inf"), float("nan")
    numbers += [(inf, inf, True), (inf, -inf, False), (inf, 1e308, False), (nan, nan, True), (nan, 1.0, False)]
    numbers += [(1e308, -1e308, False)]
    left, right = (
        [{"entity": '[["user",null]]', "name": str(n), "value": pair[side], **ORIGIN} for n, pair in enumerate(numbers)]
        for side in (0, 1)
    )
    result = LocalEngine().run(nothing_staged(tmp_path), (RowsSource({"quota": left}), RowsSource({"quota": right})))
    differing = {int(one.key.rpartition("/")[2]) for one in result.first}
    assert differing == {n for n, (_, _, agrees) in enumerate(numbers) if not agrees}


def test_several_processes_find_what_one_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one topic with half of all partitions and in all others."""
    late = frozenset({0, 7, 19_999, 20_000, 39_999})
    sources = HugeTopic(), HugeTopic(late)
    one = LocalEngine().run(nothing_staged(tmp_path / "one"), sources)
    monkeypatch.setattr(sides, "LARGE_BYTES", 1)
    seen: list[Progress] = []
    several = LocalEngine().run(nothing_staged(tmp_path / "several"), sources, seen.append)
    assert several.model_dump(exclude={"findings", "seconds"}) == one.model_dump(exclude={"findings", "seconds"})
    assert one.counts["partition"].differs == len(late)
    assert {(at.stage, at.total) for at in seen} == {("stage", 8), ("compare", 1), ("conclude", 1)}


@pytest.mark.parametrize("limit", [1, 1 << 30], ids=["several processes", "this process"])
def test_what_the_progress_raises_ends_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(sides, "LARGE_BYTES", limit)

    def stop(progress: Progress) -> None:
        raise InterruptedError(progress.stage)

    with pytest.raises(InterruptedError, match="stage"):
        LocalEngine().run(nothing_staged(tmp_path), (HugeTopic(), HugeTopic()), stop)
    assert not (tmp_path / "out" / "findings.parquet").exists()


@pytest.mark.parametrize("limit", [1, 1 << 30], ids=["several processes", "this process"])
def test_a_source_says_itself_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(sides, "LARGE_BYTES", limit)
    with pytest.raises(Permanent, match="acl is damaged at byte 7"):
        LocalEngine().run(nothing_staged(tmp_path), (HugeTopic(), DamagedSource({"acl": []})))


def test_a_left_side_with_a_journal_is_refused(tmp_path: Path) -> None:
    cluster = Cluster(right={"topic": [topic("a")]}, journal={"topic": [{**topic("a"), "is_deleted": True}]})
    stage(cluster, tmp_path)
    job = job_of(tmp_path).model_copy(update={"left": StagedRows(directory=tmp_path / "right")})
    with pytest.raises(Permanent, match="journal"):
        LocalEngine().run(job)


def test_an_attempt_writes_into_an_empty_directory_only(tmp_path: Path) -> None:
    stage(generate(Random(1)), tmp_path)  # noqa: S311
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "of-somebody-else").touch()
    with pytest.raises(Permanent, match="not empty"):
        LocalEngine().run(job_of(tmp_path))


def test_only_the_kinds_that_were_asked_for(tmp_path: Path) -> None:
    stage(many_clusters(Random(2), 15), tmp_path)  # noqa: S311
    job = job_of(tmp_path).model_copy(update={"kinds": ("acl", "quota")})
    result = LocalEngine().run(job)
    assert set(result.counts) == {"acl", "quota"}
    assert {one.record for one in result.first} == {"acl", "quota"}
    with pytest.raises(Permanent, match="no such kinds"):
        LocalEngine().run(job.model_copy(update={"kinds": ("acls",), "out": tmp_path / "other"}))


def test_the_gravest_come_first(tmp_path: Path) -> None:
    stage(many_clusters(Random(3), 25), tmp_path)  # noqa: S311
    tolerated = tuple(Toleration(record=kind, by="somebody", reason="known") for kind in ("acl", "topic"))
    result = LocalEngine().run(job_of(tmp_path, tolerated))
    told = pq.read_table(result.findings).to_pylist()
    graves = [_grave(one["finding"], one["severity"]) for one in told]
    assert graves == sorted(graves)
    assert set(graves) >= {0, 1, 3, 4}
    assert result.finding_count == len(told) > len(result.first) == 100
    assert set(KINDS) == set(result.counts)


def _grave(finding: str, severity: str) -> int:
    if finding in (FindingKind.UNVERIFIABLE, FindingKind.TOLERATED):
        return 3 if finding == FindingKind.UNVERIFIABLE else 4
    return ["block", "warn", "info"].index(severity)
