"""Plans as their activities make them, on a simulated cluster."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from temporalio.testing import ActivityEnvironment

from activities.planning import Planning
from activities.ports.nodes import FileContent
from activities.ports.ports import Ports
from activities.shipped_kinds import SHIPPED_KINDS
from domain.decisions import Severity
from domain.plans import Plan
from domain.questions import PlanRequest
from domain.records import ClusterRecord
from domain.rehearsal import RehearsalReport
from domain.zk_to_kraft.node_config import node_file
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.rehearsal.outcome import NOT_MADE
from domain.zk_to_kraft.steps import NodeStage
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from playground.fakes.hands import original
from playground.fakes.spec import fake_spec
from playground.wanted import wanted_of
from tests.unit.fake_walk import LedgerInMemory
from tests.unit.fake_window import in_dual_write


class Shelf(LedgerInMemory):
    """Plans, too."""

    def __init__(self, cluster: FakeCluster) -> None:
        super().__init__(cluster)
        self.plans: dict[str, Plan] = {}

    async def plan(self, plan_id: str) -> Plan | None:
        return self.plans.get(plan_id)

    async def add_plan(self, plan: Plan) -> Plan:
        return self.plans.setdefault(plan.id, plan)

    async def active_migration(self, _: str) -> None:
        return None

    async def measured_steps(self, _: str) -> tuple[()]:
        return ()


REQUEST = PlanRequest(
    plan_id="p1",
    cluster="c1",
    kind="zk-to-kraft",
    policy=ZkToKraftPolicy(),
    wanted=wanted_of(fake_spec()),
    requested_by="ann",
    requested_at=datetime(2026, 3, 1, tzinfo=UTC),
)


@pytest.mark.parametrize("is_copied", [False, True])
async def test_a_copy_is_rehearsed_only_where_it_is_still_to_come(is_copied: bool) -> None:
    """In a cluster that has left ZooKeeper a rehearsal would wait for registrations that nobody writes there any more."""
    cluster = (await in_dual_write()).cluster if is_copied else FakeCluster()
    rehearsed: list[str] = []

    async def rehearse(record: ClusterRecord) -> RehearsalReport:
        rehearsed.append(record.spec.name)
        return RehearsalReport(has_passed=True)

    shelf = Shelf(cluster)
    ports = Ports(cast("Any", shelf), cluster, cluster, cluster, cluster, FakeArtefacts(), SHIPPED_KINDS)
    await ActivityEnvironment().run(Planning(ports, rehearse).rehearse_plan, REQUEST)
    findings = [finding for finding in shelf.plans["p1"].findings if finding.code == NOT_MADE]
    assert [bool(rehearsed), bool(findings)] == [not is_copied, is_copied]
    assert [(f.severity, "DUAL_WRITE" in f.observed) for f in findings] == [(Severity.INFO, True)] * is_copied


async def test_a_file_that_java_cannot_read_is_the_plans_blocker() -> None:
    cluster = FakeCluster()
    node = cluster.nodes[1]
    file = node.machine.read(node.spec.properties_file)
    assert file is not None
    node.machine.write(node.spec.properties_file, replace(file, content=file.content + b"log.dir=C:\\users\n"))
    plan = await planned(cluster)
    assert (plan.is_blocked, [finding.code for finding in plan.findings]) == (True, ["PF45"])
    assert ", line " in plan.findings[0].observed


EDITED = {NodeStage.MIGRATION: "hybrid mode", NodeStage.KRAFT: "KRaft mode"}


@pytest.mark.parametrize("stage", EDITED)
async def test_a_file_that_was_edited_and_not_restarted_silences_no_check(stage: NodeStage) -> None:
    """All of the preflight is asked, and one finding says what waits in the file of that broker."""
    whole = await planned(FakeCluster())
    cluster = FakeCluster()
    broker = cluster.spec.brokers[0]
    text = original(cluster, broker)
    for each in list(EDITED)[: list(EDITED).index(stage) + 1]:
        text = node_file(text, cluster.spec, broker, each)
    cluster.nodes[broker.id].machine.write(broker.properties_file, FileContent(text.encode(), 0o600, 0, 0))
    plan = await planned(cluster)
    assert (plan.phase, plan.is_blocked) == ("PREFLIGHT", True)
    assert {finding.code for finding in whole.findings} <= {finding.code for finding in plan.findings}
    (finding,) = (f for f in plan.findings if (f.code, f.object) == ("PF37", cluster.spec.node_name(broker.id)))
    assert finding.severity is Severity.BLOCKER
    assert f"would start it in {EDITED[stage]}" in finding.observed
    unapplied = [f.fix for f in plan.findings if (f.code, f.object) == ("PF44", finding.object)]
    assert all("Do not restart" in fix for fix in unapplied), "the same lines, and no other way out"
    assert bool(unapplied) is (stage is NodeStage.KRAFT)


async def planned(cluster: FakeCluster) -> Plan:
    shelf = Shelf(cluster)
    ports = Ports(cast("Any", shelf), cluster, cluster, cluster, cluster, FakeArtefacts(), SHIPPED_KINDS)
    await ActivityEnvironment().run(Planning(ports).make_plan, REQUEST)
    return shelf.plans["p1"]
