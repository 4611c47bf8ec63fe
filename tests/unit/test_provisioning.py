"""A controller is made for whatever cluster id there is: clusters of old ZooKeeper times have ids that begin with a dash."""

from domain.decisions import StepAction
from playground.fakes.cluster import FakeCluster
from playground.fakes.spec import fake_spec
from tests.unit.conftest import Point
from tests.unit.fake_walk import LedgerInMemory, Walk
from tests.unit.test_runbook import at, everything

DASHED = "-miNmXNYTOeCJyFVblAa7Q"


async def test_an_id_that_begins_with_a_dash_is_no_option() -> None:
    cluster = FakeCluster(fake_spec().model_copy(update={"cluster_id": DASHED}), boot_looks=1)
    walk = Walk(LedgerInMemory(cluster), cluster)
    await walk.to("step", {"the second": lambda s: s.action is StepAction.PROVISION_CONTROLLER and s.node_id == 3002})
    assert cluster.nodes[3001].process is not None


def test_nor_is_it_in_a_runbook() -> None:
    assert all("--cluster-id " not in text for text in everything(at(Point.BEFORE)))
