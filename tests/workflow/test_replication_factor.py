"""Replication factors are changed over HTTP on a simulated cluster: planned, approved, moved, held, and led back."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from activities.ports.kinds import ActivityKinds
from activities.replication_factor.kind import REPLICATION_FACTOR_AT_WORK
from domain.kinds import Kinds
from domain.observed.replicas import LISTS, RATES, Throttles
from domain.replication_factor.kind import NAME, REPLICATION_FACTOR
from playground.fakes.replicas import FakeReplicas
from playground.fakes.topics import FakeTopic

TOPICS = (
    FakeTopic("alone", ((1,), (2,), (3,)), 1),
    FakeTopic("pair", ((1, 2), (2, 3)), 1),
    FakeTopic("whole", ((1, 2, 3),), 2),
)
ENDS = {"reverted", "failed", "succeeded", "refused"}


@pytest.fixture
def kinds() -> Kinds:
    return Kinds((REPLICATION_FACTOR,))


@pytest.fixture
async def served(world: Any) -> Any:
    for topic in TOPICS:
        world.cluster.create_topic(topic)
    world.ports = replace(world.ports, kinds=ActivityKinds((REPLICATION_FACTOR_AT_WORK,)), replicas=FakeReplicas(world.cluster))
    await world.start_product_workers()
    return world


def assignment(world: Any, topic: str) -> tuple[tuple[int, ...], ...]:
    return next(one.assignment for one in world.cluster.topics if one.name == topic)


async def planned(world: Any, http: httpx.AsyncClient, wanted: dict[str, Any], **policy: Any) -> dict[str, Any]:
    name = world.cluster.spec.name
    put = await http.put(f"/clusters/{name}", json=world.cluster.spec.model_dump(mode="json"))
    assert put.is_success, put.text
    body = {"cluster": name, "kind": NAME, "wanted": wanted, "policy": {"poll_interval": "PT0.02S", **policy}}
    asked = await http.post("/plans", json=body)
    assert asked.status_code == 202, asked.text

    async def plan() -> dict[str, Any]:
        return dict((await http.get(asked.headers["Location"])).json())

    return dict((await world.until_answer(plan, lambda seen: seen["plan"] is not None))["plan"])


class Led:
    """A migration that was started with a plan, and its person."""

    def __init__(self, world: Any, http: httpx.AsyncClient, links: dict[str, str]) -> None:
        self.world, self.http, self.links = world, http, links

    async def seen(self) -> dict[str, Any]:
        return dict((await self.http.get(self.links["self"])).json())

    async def until(self, is_so: Any) -> dict[str, Any]:
        return dict(await self.world.until_answer(self.seen, is_so))

    async def approve(self) -> None:
        (gate,) = (await self.until(lambda seen: bool(seen["gates"])))["gates"]
        body = {"gate": "start", "decision": "approve", "reason": "as planned", "evidence_hash": gate["evidence_hash"]}
        approved = await self.http.post(self.links["approvals"], json=body)
        assert approved.is_success, approved.text

    async def ended(self) -> str:
        return str((await self.until(lambda seen: seen["state"] in ENDS))["state"])


async def started(world: Any, http: httpx.AsyncClient, plan: dict[str, Any]) -> Led:
    answer = await http.post("/migrations", json={"cluster": world.cluster.spec.name, "kind": NAME, "plan_id": plan["id"]})
    assert answer.status_code == 202, answer.text
    return Led(world, http, answer.json()["links"])


async def test_factors_grow_under_a_throttle_that_is_gone_at_the_end(served: Any, http: httpx.AsyncClient) -> None:
    replicas: FakeReplicas = served.ports.replicas
    replicas.throttled = Throttles({2: {RATES[0]: "7"}}, {}, {"pair": {LISTS[1]: "1:3"}})
    before = replicas.throttled
    asked = {"changes": [{"pattern": "alone|pair", "replication_factor": 3}], "throttle": "20MB/s"}
    plan = await planned(served, http, asked, batch=2)
    assert not plan["is_blocked"], plan["findings"]
    assert plan["gates"] == ["start"]
    assert any(line.startswith("pair-0: 1, 2 → 1, 2, 3 (adds 3") for line in plan["changes_for_people"])
    led = await started(served, http, plan)
    await led.until(lambda seen: bool(seen["gates"]))
    assert assignment(served, "alone") == ((1,), (2,), (3,)), "nothing moves before the approval"
    assert replicas.throttled == before
    await led.approve()
    assert await led.ended() == "succeeded"
    assert all(len(set(one)) == 3 for topic in ("alone", "pair") for one in assignment(served, topic))
    assert [one[0] for one in assignment(served, "alone")] == [1, 2, 3], "each keeps its leader"
    assert {i: dict(of) for i, of in replicas.throttled.brokers.items() if of} == {2: {RATES[0]: "7"}}
    assert {name: dict(of) for name, of in replicas.throttled.topics.items() if of} == {"pair": {LISTS[1]: "1:3"}}
    events = (await http.get(led.links["events"], params={"limit": 200})).json()["items"]
    steps = [event["data"]["action"] for event in events if event["kind"] == "step-done"]
    assert steps == ["move-replicas"] * 3 + ["restore-throttles"], "two partitions at a time"


async def test_a_rollback_in_the_middle_gives_every_partition_its_replicas_back(served: Any, http: httpx.AsyncClient) -> None:
    plan = await planned(served, http, {"changes": [{"topics": ["alone"], "replication_factor": 3}]}, batch=1)
    led = await started(served, http, plan)
    await led.approve()
    await led.until(lambda seen: seen["progress"]["done"] >= 1)
    back = await http.post(led.links["rollback"], json={"reason": "too slow", "accept_loss": []})
    assert back.is_success, back.text
    assert await led.ended() == "reverted"
    assert assignment(served, "alone") == ((1,), (2,), (3,))


async def test_what_somebody_else_changes_is_named_and_left_alone(
    served: Any, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a move, which takes for ever here."""
    monkeypatch.setattr("playground.fakes.moves.LOOKS_TO_COPY", 10**6)
    plan = await planned(served, http, {"changes": [{"topics": ["alone"], "replication_factor": 2}]})
    led = await started(served, http, plan)
    await led.approve()
    await led.until(lambda seen: (seen["waiting"] or {}).get("reason") == "replicas-copying")
    await served.ports.replicas.reassign(served.cluster.record(), {("alone", 0): (1, 2, 3)})
    seen = await led.until(lambda seen: (seen["waiting"] or {}).get("reason") == "changed-by-others")
    assert seen["waiting"]["objects"] == ["alone-0"]
    assert assignment(served, "alone")[0] == (1, 2, 3)


async def test_a_cluster_that_has_moved_away_from_the_plan_is_left_as_it_is(served: Any, http: httpx.AsyncClient) -> None:
    plan = await planned(served, http, {"changes": [{"topics": ["alone"], "replication_factor": 2}]})
    await served.ports.replicas.reassign(served.cluster.record(), {("alone", 0): (1, 3)})
    assert await (await started(served, http, plan)).ended() == "refused"
    assert assignment(served, "alone")[1:] == ((2,), (3,))


BLOCKED = {
    "RF01": {"changes": [{"pattern": "nothing", "replication_factor": 2}]},
    "RF02": {"changes": [{"topics": ["pair"], "replication_factor": 3}, {"pattern": "pa.*", "replication_factor": 1}]},
    "RF03": {"changes": [{"topics": ["alone"], "replication_factor": 4}]},
    "RF07": {"changes": [{"assignment": {"partitions": [{"topic": "alone", "partition": 0, "replicas": [2]}]}}]},
    "RF09": {"changes": [{"topics": ["whole"], "replication_factor": 3}]},
}


@pytest.mark.parametrize("code", BLOCKED)
async def test_what_cannot_be_planned_is_named_and_starts_nothing(served: Any, http: httpx.AsyncClient, code: str) -> None:
    plan = await planned(served, http, BLOCKED[code])
    assert plan["is_blocked"]
    assert code in [finding["code"] for finding in plan["findings"]]
    answer = await http.post("/migrations", json={"cluster": served.cluster.spec.name, "kind": NAME, "plan_id": plan["id"]})
    assert answer.status_code == 422, answer.text
    assert answer.json()["code"] == "plan-blocked"


async def test_without_a_plan_nothing_starts(served: Any, http: httpx.AsyncClient) -> None:
    wanted = {"changes": [{"topics": ["alone"], "replication_factor": 2}]}
    await planned(served, http, wanted)
    answer = await http.post("/migrations", json={"cluster": served.cluster.spec.name, "kind": NAME, "wanted": wanted})
    assert answer.status_code == 202, answer.text
    assert await Led(served, http, answer.json()["links"]).ended() == "refused"
    assert assignment(served, "alone") == ((1,), (2,), (3,))
