"""A controller is made for whatever cluster id there is: clusters of old ZooKeeper times have ids that begin with a dash."""

from collections.abc import Sequence

import pytest

from activities.node_files import read_mark
from activities.ports.nodes import Completed
from domain.decisions import Step
from domain.zk_to_kraft.steps import StepAction
from playground.fakes.cluster import FakeCluster
from playground.fakes.machine import FakeMachine
from playground.fakes.spec import fake_spec
from playground.fakes.storage_tool import format_storage
from tests.unit.conftest import Point
from tests.unit.fake_walk import LedgerInMemory, Walk
from tests.unit.test_runbook import at, everything

DASHED = "-miNmXNYTOeCJyFVblAa7Q"


def is_provisioning(step: Step) -> bool:
    return step.action == StepAction.PROVISION_CONTROLLER


async def test_an_id_that_begins_with_a_dash_is_no_option() -> None:
    cluster = FakeCluster(fake_spec().model_copy(update={"cluster_id": DASHED}), boot_looks=1)
    walk = Walk(LedgerInMemory(cluster), cluster)
    await walk.to("step", {"made": is_provisioning})
    assert cluster.nodes[3001].process is not None


async def test_its_storage_is_formatted_with_the_plug_ins_that_its_file_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka's tool reads the file as a start does, and loads what it names: a policy's class may lie elsewhere."""
    spec = fake_spec()
    given = [c.model_copy(update={"environment": {"CLASSPATH": "/opt/policies/*"}}) for c in spec.controllers]
    cluster = FakeCluster(spec.with_quorum_changed(controllers=tuple(given)), boot_looks=1)
    class_paths: list[str] = []

    def formatted(machine: FakeMachine, arguments: Sequence[str]) -> Completed:
        class_paths.append(arguments[arguments.index("-cp") + 1])
        return format_storage(machine, arguments)

    monkeypatch.setattr("playground.fakes.node.format_storage", formatted)
    walk = Walk(LedgerInMemory(cluster), cluster)
    await walk.to("step", {"made": is_provisioning})
    assert set(class_paths) == {f"{given[0].kafka_home}/libs/*:/opt/policies/*"}


async def test_the_mark_that_a_way_back_by_hand_has_left_keeps_no_controller_from_being_made_again() -> None:
    """The runbook removes its storage, and puts its file aside."""
    cluster = FakeCluster(fake_spec(), boot_looks=1)
    walk = Walk(LedgerInMemory(cluster), cluster)
    await walk.to("step", {"made": is_provisioning})
    cluster.kill(3001)
    node = cluster.nodes[3001]
    for path in node.spec.log_dirs:
        node.machine.remove_tree(path)
    node.machine.remove(node.spec.properties_file)
    mark = await read_mark(cluster.driver(node.spec), node.spec.properties_file)
    assert mark is not None
    assert mark.is_proven
    await walk.to("step", {"again": lambda s: is_provisioning(s) and s.nodes == (3001,)})
    assert node.process is not None


def test_nor_is_it_in_a_runbook() -> None:
    assert all("--cluster-id " not in text for text in everything(at(Point.BEFORE)))
