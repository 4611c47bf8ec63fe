"""A restart that makes clients wait too long holds the migration. It is not repeated: resume goes on with the next node."""

from datetime import timedelta
from typing import Any

import pytest

from domain.zk_to_kraft.phases import Phase

pytestmark = pytest.mark.chaos


async def test_a_pause_that_is_too_long_holds_after_the_node_and_resume_goes_on_with_the_next(small: Any) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    small.policy = small.policy.model_copy(update={"max_client_pause": timedelta(microseconds=1), "canaries": True})
    await small.begin()
    progress = await small.until_waiting("held")
    assert progress.state == "held"
    assert "clients waited" in progress.waiting.detail
    assert progress.waiting.for_people
    (held,) = await small.events("held")
    assert (held.data["by"], "broker-1" in held.data["reason"]) == ("keeperless", True)
    (done,) = await small.events("step-done")
    assert done.data["client_pause_seconds"] > 0
    before = small.cluster.restarts
    for _ in small.cluster.spec.brokers[1:]:
        await small.resume()
        await small.until_told("held", len(await small.events("held")) + 1)
    await small.resume()
    await small.approve_gate()
    assert await small.result() == "succeeded"
    assert small.cluster.restarts["broker-1"] == before["broker-1"], "what was too slow is not done again"
    tried = [event.data["node"] for event in await small.events("step-done") if event.data["action"] == "try-canaries"]
    assert tried == [small.cluster.spec.node_name(broker.id) for broker in small.cluster.spec.brokers]
    assert not [topic.name for topic in small.cluster.topics if topic.name.startswith("keeperless-canary-")]


async def test_a_canary_that_fails_blocks_by_its_name_and_a_rollback_does_not_wait_for_it(small: Any) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    small.policy = small.policy.model_copy(update={"canaries": True, "restart_deadline": timedelta(seconds=2)})
    small.cluster.faults.failing_canaries = {"scram"}
    await small.begin()
    blocked = await small.until_told("step-blocked", action="try-canaries")
    assert "canary scram failed at broker 1" in blocked.data["why"]
    await small.until_told("step-blocked", 2, action="try-canaries")
    assert [e.data["node"] for e in await small.events("step-done") if e.data["action"] == "roll-node"] == ["broker-1"]
    await small.roll_back()
    assert await small.result() == "reverted"
    assert not small.cluster.clients.users


async def test_a_canary_that_we_may_not_try_holds_by_its_name_and_resume_goes_on(small: Any) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    small.policy = small.policy.model_copy(update={"canaries": True, "restart_deadline": timedelta(seconds=2)})
    small.cluster.faults.forbidden_canaries = {"acl"}
    before = small.cluster.restarts
    await small.begin()
    for count, broker in enumerate(small.cluster.spec.brokers, start=1):
        held = await small.until_told("held", count)
        assert f"canary acl failed at broker {broker.id}" in held.data["reason"]
        await small.resume()
    await small.approve_gate()
    assert await small.result() == "succeeded"
    assert small.cluster.restarts["broker-1"] == before["broker-1"] + 1


async def test_a_rollback_ends_though_nothing_can_be_removed_and_names_what_is_left(small: Any) -> None:
    await small.lead_to(Phase.DUAL_WRITE)
    small.policy = small.policy.model_copy(update={"canaries": True, "restart_deadline": timedelta(seconds=2)})
    small.cluster.faults.failing_canaries = {"scram", "removal"}
    await small.begin()
    await small.until_told("step-blocked", action="try-canaries")
    left = [topic.name for topic in small.cluster.topics if topic.name.startswith("keeperless-canary-")]
    await small.roll_back()
    assert await small.result() == "reverted"
    (removed,) = [e.data for e in await small.events("step-done") if e.data["action"] == "remove-canaries"]
    assert all(any(f"left behind: topic {name}. Remove it: " in line for line in removed["changes"]) for name in left)
