"""A node that was restarted is proven well only on its own data."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.contracts import StepOutcome
from playground.fakes.cluster import FakeCluster
from tests.unit.fake_walk import Scene
from tests.unit.test_startable import accepting, rolled, scene_of_a_roll


async def proven_with(scene: Scene, **place: object) -> tuple[StepOutcome, FakeCluster]:
    """What its machine says of its locks."""
    cluster = scene.copy()
    cluster.nodes[scene.request.step.node].machine.place = dict(place)
    return await rolled(cluster, scene), cluster


async def hurried() -> Scene:
    scene = await scene_of_a_roll()
    policy = scene.request.policy.model_copy(update={"restart_deadline": timedelta(seconds=0.5)})
    return replace(scene, request=scene.request.model_copy(update={"policy": policy}))


async def test_a_broker_on_another_directory_is_not_proven() -> None:
    scene = await hurried()
    outcome, cluster = await proven_with(scene, unheld=["/data/1"], elsewhere=["/var/kafka-logs"])
    assert not outcome.is_done
    assert "its process does not hold the lock of /data/1 and holds the lock of /var/kafka-logs" in (outcome.blocked or "")
    assert cluster.restarts[cluster.spec.node_name(scene.request.step.node)] == 1
    accepted, _ = await proven_with(accepting("PF47", scene), unheld=["/data/1"])
    assert not accepted.is_done, "that is known, and nobody may accept it"


async def test_what_cannot_be_seen_proves_no_broker_unless_somebody_has_accepted_it() -> None:
    scene = await hurried()
    outcome, _ = await proven_with(scene, unseen=["/data/1"])
    assert not outcome.is_done
    assert "whether its process holds the lock of /data/1 could not be seen" in (outcome.blocked or "")
    accepted, _ = await proven_with(accepting("PF47", scene), unseen=["/data/1"])
    assert accepted.is_done
    assert accepted.changes[-1].endswith("it counts as proven without that")


@pytest.mark.parametrize("place", [{"unseen": ["/data/3001"]}, {}])
async def test_a_controller_is_proven_by_its_log_and_what_is_not_seen_is_said(place: dict[str, object]) -> None:
    scene = await scene_of_a_roll(of_controller=True)
    outcome, _ = await proven_with(scene, **place)
    assert outcome.is_done
    assert any("could not be seen" in change for change in outcome.changes) is bool(place)
