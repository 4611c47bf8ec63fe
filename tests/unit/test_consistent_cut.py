"""Who leads the quorum is read from the controllers themselves; where none says so, why."""

from typing import Any, cast

import pytest

from activities.ports.ports import Ports
from activities.shipped_kinds import SHIPPED_KINDS
from activities.zk_to_kraft.consistent_cut import NOBODY_LEADS, active_controller
from domain.errors import Transient
from playground.fakes.artefacts import FakeArtefacts
from playground.fakes.cluster import FakeCluster


class Silent:
    async def read(self, _: object) -> Any:
        raise Transient("http://127.0.0.1:1/metrics: refused")


async def test_of_controllers_that_give_no_metrics_it_is_told_why() -> None:
    """What answers others may not answer keeperless-checks."""
    cluster = FakeCluster()
    ports = Ports(cast("Any", None), cluster, cluster, cluster, cast("Any", Silent()), FakeArtefacts(), SHIPPED_KINDS)
    with pytest.raises(Transient) as told:
        await active_controller(cluster.record(), ports)
    whys = str(told.value).removeprefix(NOBODY_LEADS).split("; ")[1:]
    assert len(whys) == len(cluster.spec.controllers)
    assert all(why.endswith("gives this worker no metrics: http://127.0.0.1:1/metrics: refused") for why in whys)
