"""Real servers in dual write: every kind that is changed behind Kafka's back is named, and hundreds of changes that go through
Kafka meanwhile are no alarm.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from temporalio.testing import ActivityEnvironment

from activities.adapters.check_runner import EngineRunner
from activities.adapters.message_runner import MessageEngine
from activities.comparison.checking import Checking
from domain.contracts import CheckRequest
from domain.drift.report import DriftReport, Verdict
from domain.records import ClusterRecord
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from playground.clients import admin_client
from playground.cluster import PlaygroundCluster
from playground.field import Field, is_in_dual_write
from playground.seed import seed
from playground.wire_requests import Quota, alter_quotas

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

RULE = AclBinding(
    ResourceType.TOPIC,
    "passing-",
    ResourcePatternType.PREFIXED,
    "User:passing",
    "*",
    AclOperation.READ,
    AclPermissionType.ALLOW,
)
PARTS = ("restype", "name", "resource_pattern_type", "principal", "host", "operation", "permission_type")
AS_FILTER = AclBindingFilter(*(getattr(RULE, part) for part in PARTS))
CHANGES = 300
"""So many go through Kafka while both sides are compared, again and again."""


@pytest.fixture(scope="module")
async def field_in_dual_write(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("compared")
    with PlaygroundCluster(directory / "cluster", announce=print) as cluster:
        seed(cluster.bootstrap_servers)
        found = Field(cluster, directory / "artefacts")
        await found.dual_write()
        yield found


@dataclass
class Reports:
    """Of the ledger what a check needs."""

    cluster_record: ClusterRecord
    published: dict[str, DriftReport] = field(default_factory=dict)

    async def cluster(self, name: str) -> ClusterRecord:
        return self.cluster_record

    async def active_migration(self, _: str) -> None:
        """A person asked."""

    async def report(self, report_id: str) -> DriftReport | None:
        return self.published.get(report_id)

    async def add_report(self, report: DriftReport) -> DriftReport:
        return self.published.setdefault(report.id, report)


@pytest.fixture
def compare(field_in_dual_write: Field, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    monkeypatch.setenv("DIGEST_KEY", "a key of sixteen bytes and more")
    ledger = Reports(field_in_dual_write.record)
    ports = replace(field_in_dual_write.ports, ledger=cast("Any", ledger))
    checking = Checking(ports, EngineRunner("env:DIGEST_KEY"), MessageEngine(), tmp_path)

    async def run() -> DriftReport:
        request = CheckRequest(
            kind="zk-to-kraft", report_id=str(uuid4()), cluster=ledger.cluster_record.spec.name, policy=ZkToKraftPolicy()
        )
        await ActivityEnvironment().run(checking.run_check, request)
        report = ledger.published[request.report_id]
        print(f"{report.verdict} after {report.cut.looks} looks: {sorted(found_in(report))} {report.not_read}")
        return report

    return run


def changed(data: bytes, **fields: Any) -> bytes:
    return json.dumps(json.loads(data) | fields).encode()


def with_config(name: str, value: str) -> Callable[[bytes], bytes]:
    return lambda data: changed(data, config=json.loads(data)["config"] | {name: value})


def with_fewer_iterations(data: bytes) -> bytes:
    config = json.loads(data)["config"]
    weaker = config["SCRAM-SHA-512"].replace("iterations=4096", "iterations=4095")
    return changed(data, config=config | {"SCRAM-SHA-512": weaker})


def with_one_rule_less(data: bytes) -> bytes:
    return changed(data, acls=json.loads(data)["acls"][1:])


def with_leader_alone(data: bytes) -> bytes:
    return changed(data, isr=[json.loads(data)["leader"]])


def with_replicas_turned_round(data: bytes) -> bytes:
    partitions = json.loads(data)["partitions"]
    return changed(data, partitions={number: list(reversed(replicas)) for number, replicas in partitions.items()})


def with_ids_taken(data: bytes) -> bytes:
    """No producer has asked for any yet."""
    return changed(data or b"{}", version=1, broker=1, block_start="900000", block_end="900999")


BEHIND_KAFKAS_BACK: Mapping[str, tuple[Callable[[bytes], bytes], set[tuple[str, str, str]]]] = {
    "/config/topics/orders": (with_config("retention.ms", "7"), {("topic-config", "orders/retention.ms", "")}),
    "/config/brokers/1": (with_config("log.retention.ms", "8"), {("broker-config", "1/log.retention.ms", "value")}),
    "/config/clients/batch-loader": (
        with_config("request_percentage", "51"),
        {("quota", '[["client-id","batch-loader"]]/request_percentage', "value")},
    ),
    "/config/users/bob": (with_fewer_iterations, {("scram", "bob/SCRAM-SHA-512", "iterations")}),
    "/kafka-acl/Topic/payments": (with_one_rule_less, {("acl", "", "")}),
    "/brokers/topics/payments/partitions/0/state": (with_leader_alone, {("partition", "payments-0", "isr")}),
    "/brokers/topics/defaults_only": (
        with_replicas_turned_round,
        {("partition", "defaults_only-0", "replicas"), ("partition", "defaults_only-1", "replicas")},
    ),
    "/latest_producer_id_block": (with_ids_taken, {("producer-ids", "cluster", "")}),
}


@contextmanager
def behind_kafkas_back(at: Field, *paths: str) -> Iterator[set[tuple[str, str, str]]]:
    """Znodes changed by hand, and put back; gives what has to be found."""
    before: dict[str, bytes] = {}
    with at.hand.zookeeper() as client:
        try:
            for path in paths:
                before[path] = client.get(path)[0] or b""
                client.set(path, BEHIND_KAFKAS_BACK[path][0](before[path]))
            yield set.union(*(BEHIND_KAFKAS_BACK[path][1] for path in paths))
        finally:
            for path, data in before.items():
                client.set(path, data)


def found_in(report: DriftReport) -> set[tuple[str, str, str]]:
    """An ACL's key is all of it."""
    return {(f.record, "" if f.record == "acl" else f.key, f.field) for f in report.first}


async def compared_by_one_controller(at: Field, compare: Any, *paths: str) -> tuple[set[tuple[str, str, str]], DriftReport]:
    """What has to be found of these znodes, changed by hand, and what was.

    A controller that takes over writes the quorum's state over ZooKeeper's, what was edited too: only producer ids stay as
    they are, for it has none. On a busy machine that happens at any time; then it is done again.
    """
    for _ in range(5):
        before, _ = await at.rule()
        with behind_kafkas_back(at, *paths) as expected:
            report = await compare()
        after, _ = await at.rule()
        if after.controller == before.controller:
            return expected, report
        print(f"a controller has taken over: {before.controller} before, {after.controller} now")
        await at.until(is_in_dual_write, "dual write again")
    raise AssertionError("a controller took over each time")


async def test_every_kind_that_is_changed_behind_kafkas_back_is_named(field_in_dual_write: Field, compare: Any) -> None:
    assert (await compare()).verdict is Verdict.CLEAN
    expected, report = await compared_by_one_controller(field_in_dual_write, compare, *BEHIND_KAFKAS_BACK)
    assert report.verdict is Verdict.DRIFT
    assert found_in(report) == expected
    assert all(f.left_at.startswith("/") for f in report.first if f.left is not None), "a place to look at"
    assert (await compare()).verdict is Verdict.CLEAN


@dataclass
class Traffic:
    """Changes of every kind, one after the other, through Kafka. `done`: how many."""

    servers: list[str]
    admin: AdminClient
    done: int = 0
    is_over: threading.Event = field(default_factory=threading.Event)
    failures: list[BaseException] = field(default_factory=list)

    def run(self) -> None:
        try:
            for number in count():
                if self.is_over.is_set():
                    return
                self._change(number)
        except BaseException as error:  # noqa: BLE001 - told by whoever started it
            self.failures.append(error)

    def _change(self, number: int) -> None:
        admin, name = self.admin, f"passing-{number}"
        self._wait(admin.create_topics([NewTopic(name, 3, 2, config={"retention.ms": str(number)})]))
        entry = ConfigEntry("retention.ms", str(number + 1), incremental_operation=AlterConfigOpType.SET)
        self._wait(admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])]))
        alter_quotas(self.servers, [Quota({"user": f"passing-{number % 7}"}, {"producer_byte_rate": 1000.0 + number})])
        self.done += 1
        self._wait(admin.create_acls([RULE]) if number % 2 else admin.delete_acls([AS_FILTER]))
        self._wait(admin.delete_topics([name]))

    def _wait(self, futures: Mapping[Any, Any]) -> None:
        for future in futures.values():
            future.result(60)
            self.done += 1


@contextmanager
def traffic(at: Field) -> Iterator[Traffic]:
    running = Traffic(list(at.cluster.bootstrap_servers), admin_client(at.cluster.bootstrap_servers))
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        yield running
    finally:
        running.is_over.set()
        thread.join(120)
    assert running.failures == []


@pytest.mark.chaos
async def test_hundreds_of_changes_meanwhile_are_no_alarm_and_a_lost_one_is_found(
    field_in_dual_write: Field, compare: Any
) -> None:
    verdicts: list[Verdict] = []
    with traffic(field_in_dual_write) as running:
        while running.done < CHANGES and not running.failures:
            verdicts.append((await compare()).verdict)
        print(f"{running.done} changes, compared {len(verdicts)} times: {verdicts}")
        assert Verdict.DRIFT not in verdicts
        assert Verdict.CLEAN in verdicts
        expected, report = await compared_by_one_controller(field_in_dual_write, compare, "/config/topics/orders")
    assert (report.verdict, found_in(report)) == (Verdict.DRIFT, expected)
    assert (await compare()).verdict is Verdict.CLEAN
