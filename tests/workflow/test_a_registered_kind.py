"""A kind of migration that only this folder has (`request_timeouts`) is registered, and led over HTTP through plan, step, gate,
hold, approval and rollback, by the real workflow and the real activities. No file of the product knows it."""

from dataclasses import replace
from typing import Any

import httpx
import pytest

from domain.configuration.properties import parse
from domain.kinds import Kinds
from tests.workflow.request_timeouts import GATE, KEY, KINDS, KINDS_AT_WORK, NAME


@pytest.fixture
def kinds() -> Kinds:
    """This kind and no other."""
    return KINDS


@pytest.fixture
async def served(world: Any) -> Any:
    """A world whose activity workers are given this kind and no other."""
    world.ports = replace(world.ports, kinds=KINDS_AT_WORK)
    await world.start_product_workers()
    return world


async def timeouts(world: Any) -> dict[int, str | None]:
    """What each broker's file says now."""
    cluster = world.cluster
    files = {b.id: await cluster.driver(b).read_file(b.properties_file) for b in cluster.spec.brokers}
    return {broker_id: parse(file.content.decode()).get(KEY) for broker_id, file in files.items()}


async def test_a_kind_of_ones_own_is_planned_held_approved_and_rolled_back(served: Any, http: httpx.AsyncClient) -> None:
    name, before = served.cluster.spec.name, await timeouts(served)
    put = await http.put(f"/clusters/{name}", json=served.cluster.spec.model_dump(mode="json"))
    assert put.is_success, put.text
    refused = await http.post("/plans", json={"cluster": name, "kind": "zk-to-kraft", "wanted": {}})
    assert refused.status_code == 422, refused.text

    policy = {
        key: served.policy.model_dump(mode="json")[key] for key in ("poll_interval", "stable_samples", "restart_deadline")
    }
    asked = await http.post(
        "/plans", json={"cluster": name, "kind": NAME, "wanted": {}, "policy": policy | {"milliseconds": 45000}}
    )
    assert asked.status_code == 202, asked.text

    async def plan() -> dict[str, Any]:
        return dict((await http.get(asked.headers["Location"])).json())

    made = (await served.until_answer(plan, lambda seen: seen["plan"] is not None))["plan"]
    assert (made["kind"], made["gates"], made["restarts"]) == (NAME, [GATE], {f"broker-{i}": 1 for i in (1, 2, 3)})

    started = await http.post("/migrations", json={"cluster": name, "kind": NAME, "plan_id": made["id"]})
    assert started.status_code == 202, started.text
    links = started.json()["links"]

    async def migration() -> dict[str, Any]:
        return dict((await http.get(links["self"])).json())

    (gate,) = (await served.until_answer(migration, lambda seen: bool(seen["gates"])))["gates"]
    assert gate["name"] == GATE
    assert [value for value in (await timeouts(served)).values() if value == "45000"] == ["45000"], "the canary alone"

    held = await http.post(links["self"] + "/hold", json={"reason": "lunch"})
    assert held.is_success, held.text
    await served.until_answer(migration, lambda seen: seen["state"] == "held")
    resumed = await http.post(links["self"] + "/resume", json={"reason": "back"})
    assert resumed.is_success, resumed.text
    await served.until_answer(migration, lambda seen: seen["state"] != "held" and bool(seen["gates"]))

    body = {"gate": GATE, "decision": "approve", "reason": "the canary is well", "evidence_hash": gate["evidence_hash"]}
    approved = await http.post(links["approvals"], json=body)
    assert approved.is_success, approved.text
    await served.until_answer(migration, lambda seen: seen["progress"]["done"] == 2 and bool(seen["gates"]))
    assert [value for value in (await timeouts(served)).values() if value == "45000"] == ["45000"] * 2

    back = await http.post(links["rollback"], json={"reason": "too long for clients", "accept_loss": []})
    assert back.is_success, back.text
    ended = await served.until_answer(migration, lambda seen: seen["state"] in {"reverted", "failed", "succeeded", "refused"})
    assert ended["state"] == "reverted", ended
    assert await timeouts(served) == before

    events = (await http.get(links["events"], params={"limit": 200})).json()["items"]
    kinds = [event["kind"] for event in events]
    assert {"gate-opened", "held", "approved", "reverted"} <= set(kinds)
    done = [event["data"]["does"] for event in events if event["kind"] == "step-done"]
    assert done[0] == f"Restart broker-1, {KEY} raised"
    assert done[-1].endswith("as-found")
