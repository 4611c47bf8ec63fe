"""What is looked for when something is wrong: what forbids a failover, and what kills a copy, which may cost no time."""

import asyncio
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest
from temporalio.testing import ActivityEnvironment

from activities.adapters.nodes.drivers import SpecDrivers
from activities.assessing import Assessing
from activities.diagnosis.machine_notes import MachineNotes
from activities.observing.observe import observe_for
from activities.ports.ports import Ports
from activities.shipped_kinds import SHIPPED_KINDS
from domain.contracts import Assessment, AssessRequest, RevertOrder
from domain.decisions import Revert, Step, Wait
from domain.errors import Transient
from domain.observed.observation import Observation
from domain.waits import WaitReason
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.probed import probed
from domain.zk_to_kraft.steps import StepAction
from domain.zk_to_kraft.waits import ZkWait
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster
from playground.fakes.hands import in_dual_write, provision
from playground.fakes.metadata_log import FakeLog
from playground.fakes.znodes import state_path
from tests.unit.fake_walk import LedgerInMemory
from tests.unit.fake_window import WatchedTrees

POLICY = ZkToKraftPolicy()


class FullDisk(FakeArtefacts):
    """Keeps nothing."""

    async def put(self, content: bytes) -> str:
        raise Transient("no space left on device")


def ports_of(cluster: FakeCluster, **others: Any) -> Ports:
    parts = {"ledger": LedgerInMemory(cluster), "drivers": cluster, "zookeepers": cluster}
    parts |= {"kafka": cluster, "metrics": cluster, "artefacts": FakeArtefacts(), "kinds": SHIPPED_KINDS}
    return Ports(**(parts | others))


@pytest.fixture
async def dead() -> FakeCluster:
    """Dual write has died."""
    cluster = await in_dual_write()
    cluster.metadata_log = FakeLog(cluster)
    cluster.faults.is_dual_write_stuck = True
    cluster.advance(20)
    return cluster


@pytest.fixture
async def dying() -> FakeCluster:
    """A copy kills the controllers."""
    cluster = FakeCluster()
    cluster.faults.poisoned_copy = True
    return await in_dual_write(cluster)


async def test_a_controller_whose_registration_got_lost_is_waited_for_before_any_broker_restarts() -> None:
    cluster = FakeCluster()
    cluster.faults.never_registers = {3002}
    await provision(cluster)
    seen = await observe_for("zk-to-kraft", cluster.record(), ports_of(cluster))
    assert probed(seen).unregistered == (3002,)
    decision = (await assessed(cluster, ports_of(cluster))).decision
    assert isinstance(decision, Wait)
    assert (decision.reason, decision.objects) == (WaitReason.CONTROLLERS_NOT_READY, ("controller-3002",))
    cluster.faults.never_registers.clear()
    cluster.advance(2)
    assert probed(await observe_for("zk-to-kraft", cluster.record(), ports_of(cluster))).unregistered == ()
    assert isinstance((await assessed(cluster, ports_of(cluster))).decision, Step)


async def test_registrations_that_cannot_be_read_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "activities.zk_to_kraft.suspects.registered_controllers", AsyncMock(side_effect=Transient("may not be read"))
    )
    cluster = FakeCluster()
    await provision(cluster)
    seen = await observe_for("zk-to-kraft", cluster.record(), ports_of(cluster))
    assert probed(seen).unregistered is None
    (missing,) = [part for part in seen.unanswered if part.what == "registrations"]
    assert "may not be read" in missing.why


async def test_nothing_forbids_a_failover_where_zookeeper_has_every_state(dead: FakeCluster) -> None:
    assert probed(await observe_for("zk-to-kraft", dead.record(), ports_of(dead))).failover_hazards == ()


async def test_a_topic_that_a_kill_cut_in_two_is_named(dead: FakeCluster) -> None:
    for partition in (1, 2):
        del dead.znodes[state_path("orders", partition)]
    (hazard,) = probed(await observe_for("zk-to-kraft", dead.record(), ports_of(dead))).failover_hazards or ()
    assert hazard.what == f"topic orders without {state_path('orders', 1)}"
    assert hazard.is_mended_by_window


async def assessed(cluster: FakeCluster, ports: Ports, revert: RevertOrder | None = None) -> Assessment:
    request = AssessRequest(
        kind="zk-to-kraft", cluster=cluster.spec.name, migration_id="m1", generation=1, policy=POLICY, revert=revert
    )
    assessment: Assessment = await ActivityEnvironment().run(
        Assessing(ports, MachineNotes(ports, SpecDrivers())).assess, request
    )
    return assessment


async def test_what_turns_us_round_needs_no_store(dying: FakeCluster) -> None:
    assessment = await assessed(dying, ports_of(dying, artefacts=FullDisk()))
    assert isinstance(assessment.decision, Revert)
    assert assessment.decision.reason == ZkWait.COPY_CANNOT_FINISH


async def test_what_does_not_turn_us_round_needs_one(dead: FakeCluster) -> None:
    with pytest.raises(Transient, match="no space left"):
        await assessed(dead, ports_of(dead, artefacts=FullDisk()))


class Poison:
    """Counts the folders of znodes that are read, of which a search reads many; and takes its time."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.calls = seconds, 0

    async def __call__(self, call: str) -> None:
        if call == "zookeeper children":
            self.calls += 1
            await asyncio.sleep(self.seconds)


async def look(cluster: FakeCluster, search: Poison, poison_seconds: float) -> Observation:
    ports = ports_of(cluster, zookeepers=cast("Any", WatchedTrees(cluster, search)))
    return await observe_for("zk-to-kraft", cluster.record(), ports, POLICY, poison_seconds)


async def test_a_search_for_poison_that_takes_too_long_is_given_up_and_said(dying: FakeCluster) -> None:
    seen = await look(dying, Poison(0.2), poison_seconds=0.05)
    assert probed(seen).poisoned_znodes is None
    (missing,) = [part for part in seen.unanswered if part.what == "suspects"]
    assert "took longer than 0.05 s" in missing.why


async def test_who_goes_back_already_does_not_search(dying: FakeCluster) -> None:
    searching, not_searching = Poison(0), Poison(0)
    assert probed(await look(dying, searching, poison_seconds=10)).poisoned_znodes is not None
    assert probed(await look(dying, not_searching, poison_seconds=0)).poisoned_znodes is None
    assert not_searching.calls < searching.calls


async def test_the_way_back_s_own_look_does_not_search(dying: FakeCluster) -> None:
    search = Poison(0)
    ports = ports_of(dying, zookeepers=cast("Any", WatchedTrees(dying, search)))
    order = RevertOrder(command_id=None, because="the copy cannot finish", cluster=dying.record())
    decision = (await assessed(dying, ports, order)).decision
    assert isinstance(decision, Step)
    assert decision.action == StepAction.LEAVE_KRAFT
    back = search.calls
    assert isinstance((await assessed(dying, ports)).decision, Revert)
    assert search.calls - back > back
