"""Looks at clients' data on a simulated cluster: machines that cannot look, that do not answer, and what is said of it."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from activities.adapters.message_runner import MessageEngine
from activities.adapters.nodes.local import LocalMachine
from activities.comparison.manifests import (
    capture_messages,
    compare_messages,
    compare_with_baseline,
    keep_baseline,
    manifest_of,
    walk_id,
)
from activities.comparison.segment_walks import WalkLimits, wanted_of
from activities.ports.checks import CheckAttempt
from activities.ports.nodes import Completed, FileContent
from activities.ports.ports import Ports
from activities.shipped_kinds import SHIPPED_KINDS
from domain.cluster import NodeSpec
from domain.contracts import CheckRequest
from domain.drift.explaining import verdict_in_words
from domain.drift.messages import ReplicaLog
from domain.drift.report import CheckName, DriftReport, FindingKind, Verdict
from domain.errors import Permanent, Transient
from domain.offsets import GroupOffset, PartitionOffsets
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from playground.log_bytes import raw_batch
from tests.unit.fake_walk import LedgerInMemory

SESSION = str(uuid4())


class Machine:
    """A node whose programs run here, on a directory of ours instead of its own."""

    def __init__(self, root: Path, change: Callable[[str], str]) -> None:
        self._root, self._change, self._machine = root, change, LocalMachine()
        self.requests: list[dict[str, Any]] = []

    def _here(self, path: str) -> str:
        return f"{self._root}{path}"

    async def read_file(self, path: str) -> FileContent | None:
        return await self._machine.read_file(self._here(path))

    async def write_file(self, path: str, file: FileContent) -> None:
        if path.endswith("request.json"):
            request = json.loads(file.content)
            self.requests.append(request)
            request["log_dirs"] = [self._here(one) for one in request["log_dirs"]]
            file = replace(file, content=json.dumps(request).encode())
        await self._machine.write_file(self._here(path), file)

    async def remove_tree(self, path: str) -> None:
        await self._machine.remove_tree(self._here(path))

    async def run(self, arguments: list[str], environment: dict[str, str], timeout: timedelta) -> Completed:
        words = [self._here(word) if word.startswith("/") else word for word in arguments]
        ran = await self._machine.run(words, environment, timeout)
        return replace(ran, output=self._change(ran.output))


@dataclass
class Field:
    """A simulated cluster, and brokers' disks that are real where a test puts them into `machines`."""

    fake: FakeCluster
    work: Path
    machines: dict[int, Machine] = field(default_factory=dict)
    runner: MessageEngine = field(default_factory=MessageEngine)

    def __post_init__(self) -> None:
        self.ports = Ports(LedgerInMemory(self.fake), self, self.fake, self.fake, self.fake, FakeArtefacts(), SHIPPED_KINDS)

    def driver(self, node: NodeSpec) -> Any:
        return self.machines.get(node.id) or self.fake.driver(node)

    def put(self, broker: int, log: str, content: bytes, change: Callable[[str], str] = str) -> Path:
        """A log on a broker's disk, which the broker's own machine can walk."""
        node = self.fake.spec.node(broker)
        root = self.work / f"machine-{broker}"
        folder = Path(f"{root}{node.log_dirs[0]}") / log
        folder.mkdir(parents=True)
        properties = Path(f"{root}{node.properties_file}")
        properties.parent.mkdir(parents=True, exist_ok=True)
        properties.write_text("")
        self.machines[broker] = Machine(root, change)
        path = folder / f"{0:020}.log"
        path.write_bytes(content)
        return path

    async def capture(self, since: str | None = None) -> str:
        return await capture_messages(self.ports, self.runner, self.fake.record(), since=since)

    async def report(self, before: str, after: str | None = None) -> DriftReport:
        now = after or await self.capture(before)
        return await compare_messages(self.ports, self.runner, self.check(), before, now, datetime.now(UTC))

    def check(self, check: CheckName = CheckName.MESSAGES, cluster: str | None = None) -> CheckAttempt:
        """One attempt, in a directory of its own."""
        directory = self.work / str(uuid4())
        directory.mkdir()
        request = CheckRequest(
            kind="zk-to-kraft", report_id=f"{check}", cluster=cluster or self.fake.spec.name, check=check, migration_id="m1"
        )
        return CheckAttempt(request, self.fake.record(), SESSION, directory, lambda *_: None)


@pytest.fixture
def orders(tmp_path: Path) -> Field:
    fake = FakeCluster()
    fake.log_ends = {("orders", 0): 15}
    fake.groups = (GroupOffset("billing", "orders", 0, 7),)
    return Field(fake, tmp_path)


def batches(count: int) -> bytes:
    return b"".join(raw_batch(5 * n, [(None, b"value")] * 5) for n in range(count))


async def test_a_machine_without_python_gives_offsets_only_and_the_report_says_so(orders: Field) -> None:
    before = await orders.capture()
    report = await orders.report(before)
    assert report.verdict is Verdict.CLEAN
    told = {(one.key, one.rule, one.finding) for one in report.first}
    assert told == {(f"broker-{b.id}", "offsets-only", FindingKind.UNVERIFIABLE) for b in orders.fake.spec.brokers}
    assert all("no such program" in (one.right or "") for one in report.first)
    orders.fake.groups = (GroupOffset("billing", "orders", 0, 6),)
    orders.fake.log_ends = {("orders", 0): 14}
    worse = await orders.report(before)
    assert {(one.rule, one.key, one.left, one.right) for one in worse.first if one.finding is FindingKind.DIFFERS} == {
        ("committed", "billing orders-0", "7", "6"),
        ("end", "orders-0", "15", "14"),
    }
    assert worse.verdict is Verdict.DRIFT


async def test_a_look_tells_which_machines_are_still_read(orders: Field) -> None:
    """A disk that hangs holds up the whole of it, for minutes."""
    told: list[tuple[str, int, int]] = []
    await keep_baseline(orders.ports, orders.runner, replace(orders.check(), note=lambda _, *how: told.append(how)))
    assert told[:3] == [
        ("committed offsets of groups", 0, 1),
        ("ends of partitions", 0, 1),
        ("segments of broker-1, broker-2, broker-3", 0, 3),
    ]
    assert [(done, total) for _, done, total in told[3:]] == [(1, 3), (2, 3)]


async def test_a_machine_that_does_not_answer_makes_it_inconclusive(orders: Field) -> None:
    before = await orders.capture()
    orders.fake.faults.silent_nodes = {orders.fake.spec.brokers[0].id}
    report = await orders.report(before)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert [what.partition(":")[0] for what in report.not_read] == ["now"]
    assert "broker-" in report.not_read[0]


async def test_the_second_look_reads_the_offsets_of_the_first(orders: Field) -> None:
    path = orders.put(1, "orders-0", batches(3))
    before = await orders.capture()
    path.write_bytes(batches(6))
    orders.fake.log_ends = {("orders", 0): 30}
    report = await orders.report(before)
    first, second = (request["logs"]["orders-0"] for request in orders.machines[1].requests)
    assert first == {"from": None, "until": 15, "is_bounds_only": False}
    assert second == {"from": 0, "until": 15, "is_bounds_only": False}
    assert (report.counts["batch"].left, report.counts["batch"].equal) == (3, 3)
    assert report.verdict is Verdict.CLEAN
    assert not list(orders.work.rglob("walk-*")), "nothing is left on a node"
    about = json.loads(await orders.ports.artefacts.get(report.manifest or ""))
    assert about["before"]["manifest"] == before
    assert [walk["verified"] for walk in about["after"]["walks"]] == [3]


async def test_a_byte_that_turned_is_named_with_its_place(orders: Field) -> None:
    content = bytearray(batches(3))
    path = orders.put(1, "orders-0", bytes(content))
    before = await orders.capture()
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    report = await orders.report(before)
    (found,) = [one for one in report.first if one.finding is FindingKind.DIFFERS]
    assert (found.rule, found.key) == ("checksum", "orders-0 broker-1 offset 10")
    assert found.right_at == f"{0:020}.log byte {len(content) // 3 * 2}"


async def test_checksums_that_found_no_time_are_counted(orders: Field) -> None:
    orders.put(1, "orders-0", batches(3))
    before = await orders.capture()
    limits = WalkLimits(verify_seconds=0)
    after = await capture_messages(orders.ports, orders.runner, orders.fake.record(), since=before, limits=limits)
    report = await orders.report(before, after)
    told = [(one.key, one.right) for one in report.first if one.rule == "not-verified"]
    assert told == [("broker-1", "not computed for 3 of 3 batches")]
    assert (report.verdict, report.counts["batch"].equal) == (Verdict.CLEAN, 3), "headers are the same"


async def test_an_answer_that_was_cut_counts_as_none(orders: Field) -> None:
    orders.put(1, "orders-0", batches(3), lambda output: output.splitlines()[0])
    manifest = await manifest_of(orders.ports.artefacts, await orders.capture())
    assert len(manifest.not_read) == 1
    assert "broker-1" in manifest.not_read[0]


async def test_a_disk_that_cannot_be_read_any_more_is_never_clean(orders: Field) -> None:
    path = orders.put(1, "orders-0", batches(3))
    before = await orders.capture()
    shutil.rmtree(path.parents[1])
    after = await orders.capture(before)
    manifest = await manifest_of(orders.ports.artefacts, after)
    assert "No such file" in manifest.sight.offsets_only[1]
    report = await orders.report(before, after)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert "broker-1" in report.not_read[0]


async def test_manifests_of_two_clusters_are_not_compared(orders: Field) -> None:
    before = await orders.capture()
    check = orders.check(cluster="another")
    with pytest.raises(Permanent, match="another"):
        await compare_messages(orders.ports, orders.runner, check, before, before, datetime.now(UTC))
    name = await orders.ports.artefacts.put(b"{}")
    with pytest.raises(Permanent, match=name):
        await manifest_of(orders.ports.artefacts, name)


async def test_a_baseline_is_kept_and_compared_with(orders: Field) -> None:
    path = orders.put(1, "orders-0", batches(3))
    kept = await keep_baseline(orders.ports, orders.runner, orders.check(CheckName.BASELINE))
    assert (kept.verdict, kept.findings, kept.migration_id) == (Verdict.CLEAN, None, "m1")
    assert {record: counts.left for record, counts in kept.counts.items()} == {
        "partition-log": 9,
        "replica-log": 1,
        "batch": 3,
        "group-offset": 1,
    }
    assert verdict_in_words(kept) == "Kept: 3 record batches, 1 committed offset, 9 partitions, 1 replica."
    with pytest.raises(Permanent, match="no baseline"):
        await compare_with_baseline(orders.ports, orders.runner, orders.check())
    await orders.ports.ledger.add_report(kept)
    report = await compare_with_baseline(orders.ports, orders.runner, orders.check())
    assert (report.verdict, report.baseline, report.check) == (Verdict.CLEAN, kept.baseline, CheckName.MESSAGES)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    report = await compare_with_baseline(orders.ports, orders.runner, orders.check())
    assert report.verdict is Verdict.DRIFT
    told = json.loads(await orders.ports.artefacts.get(report.manifest or ""))
    assert told["before"]["manifest"] == kept.baseline
    assert [walk["broker"] for walk in told["after"]["walks"]] == [1]


async def test_silence_makes_both_looks_inconclusive(orders: Field) -> None:
    orders.fake.faults.silent_kafka = True
    vain = await keep_baseline(orders.ports, orders.runner, orders.check(CheckName.BASELINE))
    assert (vain.verdict, vain.baseline) == (Verdict.INCONCLUSIVE, None)
    assert vain.not_read[0] in verdict_in_words(vain)
    orders.fake.faults.silent_kafka = False
    await orders.ports.ledger.add_report(await keep_baseline(orders.ports, orders.runner, orders.check(CheckName.BASELINE)))
    orders.fake.faults.silent_kafka = True
    report = await compare_with_baseline(orders.ports, orders.runner, orders.check())
    assert (report.verdict, report.check) == (Verdict.INCONCLUSIVE, CheckName.MESSAGES)


async def test_every_attempt_at_a_report_walks_under_the_same_name(orders: Field) -> None:
    assert walk_id(orders.check().request) == walk_id(orders.check().request)
    assert walk_id(orders.check().request) != walk_id(orders.check(CheckName.BASELINE).request)
    assert walk_id(orders.check().request).isalnum()


async def test_a_cluster_that_does_not_answer_gives_no_look(orders: Field) -> None:
    orders.fake.faults.silent_kafka = True
    with pytest.raises(Transient):
        await orders.capture()


async def test_spark_that_is_away_closes_no_way(orders: Field) -> None:
    class Away:
        async def run_with(self, *_: object) -> None:
            raise Transient("nobody there")

    before = await orders.capture()
    orders.runner = MessageEngine(Away())
    report = await orders.report(before)
    assert (report.verdict, report.engine) == (Verdict.CLEAN, "local")


def test_of_what_nobody_has_looked_at_the_bounds_are_asked() -> None:
    partitions = [PartitionOffsets("a", "", n, 0, 10, n == 3) for n in range(4)]
    log = ReplicaLog("a", "", 0, 1, 0, 10, 2, 8)
    wanted = wanted_of(partitions, {("a", 0): log, ("a", 1): replace(log, walked_until=2), ("a", 3): log})
    assert [wanted[f"a-{n}"]["is_bounds_only"] for n in range(4)] == [False, True, True, True]
    assert (wanted["a-0"]["from"], wanted["a-0"]["until"]) == (2, 8)
