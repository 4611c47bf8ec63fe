"""A migration as a person leads it: every call over HTTP, with the real workflow and the real activities behind the door."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from domain.plans import MOVED
from domain.zk_to_kraft.phases import Phase
from playground.wanted import before

WITHIN = 2.0
"""Seconds in which a migration is accepted."""


@pytest.fixture
async def served(small: Any) -> Any:
    """A world whose activity workers serve all that the product's do."""
    await small.start_product_workers()
    return small


async def test_what_was_left_half_way_is_taken_over_and_led_back(served: Any, http: httpx.AsyncClient) -> None:
    """Started held, looked at, refused on a stale preview, accepted, and at its end where it began."""
    await served.lead_to(Phase.BROKERS_TO_KRAFT)
    body = served.asked
    started = await http.post("/migrations", json=body | {"hold": True})
    assert started.status_code == 202, started.text
    links = started.json()["links"]

    async def migration() -> dict[str, Any]:
        return dict((await http.get(links["self"])).json())

    held = await served.until_answer(migration, lambda seen: seen["state"] == "held")
    assert (held["phase"], held["intent"]) == ("BROKERS_TO_KRAFT", "forward")
    preview = (await http.get(links["rollback_preview"])).json()
    print("steps:", *[step["what"] for step in preview["steps"]], sep="\n  ")
    assert preview["is_possible"]
    page = (await http.get(links["runbook"])).text
    assert page.index("## Rollback") < page.index("### 2.") < page.index("## Forward")

    stale = await http.post(links["rollback"], json={"reason": "too slow", "preview_hash": "0" * 64})
    assert stale.status_code in {409, 202}, stale.text

    async def commands() -> dict[str, Any]:
        return {item["reason"]: item for item in (await http.get(links["commands"])).json()["items"]}

    refused = (await served.until_answer(commands, lambda seen: seen["too slow"]["status"] != "pending"))["too slow"]
    assert preview["preview_hash"] in refused["refused_because"]
    assert (await migration())["state"] == "held", "a refused rollback changes nothing"

    asked = await http.post(links["rollback"], json={"reason": "enough", "preview_hash": preview["preview_hash"]})
    assert asked.status_code == 202, asked.text
    ended = await served.until_answer(migration, lambda seen: seen["ended_at"] is not None)
    assert (ended["state"], ended["intent"], ended["outcome"]) == ("reverted", "revert", "ZOOKEEPER")
    assert (await commands())["enough"]["status"] == "delivered"
    too_late = await http.post(links["rollback"], json={"reason": "again", "preview_hash": preview["preview_hash"]})
    assert too_late.json()["code"] == "migration-ended"
    assert (await http.get(links["rollback_preview"])).json()["steps"] == []


@pytest.mark.parametrize("is_bound", [True, False])
async def test_what_has_touched_nothing_is_ended_without_accepting_a_loss(
    served: Any, http: httpx.AsyncClient, is_bound: bool
) -> None:
    await served.book.put_cluster(before(served.cluster.spec), datetime.now(UTC))
    body = served.asked
    links = (await http.post("/migrations", json=body | {"hold": True})).json()["links"]

    async def migration() -> dict[str, Any]:
        return dict((await http.get(links["self"])).json())

    held = await served.until_answer(migration, lambda seen: seen["state"] == "held")
    assert held["phase"] == "PREFLIGHT"
    preview = (await http.get(links["rollback_preview"])).json()
    assert (preview["is_possible"], preview["steps"], preview["losses"], preview["files"]) == (True, [], [], [])
    bound_to = {"preview_hash": preview["preview_hash"]} if is_bound else {"accept_loss": []}
    asked = await http.post(links["rollback"], json={"reason": "not today", **bound_to})
    assert asked.status_code == 202, asked.text
    ended = await served.until_answer(migration, lambda seen: seen["ended_at"] is not None)
    assert (ended["state"], ended["outcome"]) == ("reverted", "ZOOKEEPER")


async def started(http: httpx.AsyncClient, world: Any, **more: Any) -> dict[str, Any]:
    body = world.asked if "plan_id" not in more else {"cluster": world.cluster.spec.name, "kind": "zk-to-kraft"}
    begun = time.monotonic()
    answer = await http.post("/migrations", json=body | more)
    assert time.monotonic() - begun < WITHIN
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


async def read_until(
    world: Any, http: httpx.AsyncClient, url: str, is_right: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    async def look() -> dict[str, Any]:
        return dict((await http.get(url)).json())

    return await world.until_answer(look, is_right)


async def test_a_migration_that_is_accepted_names_what_it_does_next(served: Any, http: httpx.AsyncClient) -> None:
    """Before its first observation it counts nothing."""
    plan = await served.plan()
    pause = served.kafka.pause("view")
    told = await started(http, served, plan_id=plan.id)
    first = await read_until(served, http, told["links"]["self"], lambda seen: seen["state"] == "running")
    pause.may_go_on.set()
    for seen in (told, first):
        assert (seen["in_hand"]["action"], seen["in_hand"]["nodes"]) == ("observe", ["cluster"])
        assert seen["progress"] == {"done": 0, "total": None, "percent": None}


async def test_a_cluster_that_has_moved_on_ends_as_refused(served: Any, http: httpx.AsyncClient) -> None:
    plan = await served.plan()
    node = served.cluster.spec.brokers[0]
    driver = served.drivers.driver(node)
    file = await driver.read_file(node.properties_file)
    await driver.write_file(node.properties_file, replace(file, content=file.content + b"num.partitions=7\n"))
    told = await started(http, served, plan_id=plan.id)
    ended = await read_until(served, http, told["links"]["self"], lambda seen: seen["ended_at"] is not None)
    assert (ended["state"], ended["in_hand"], ended["waiting"]) == ("refused", None, None)
    assert (MOVED, f"broker-{node.id}: properties file") in {(f["code"], f["object"]) for f in ended["findings"]}
    blockers = (await http.get(ended["links"]["blockers"])).json()
    assert {item["code"] for item in blockers["items"]} >= {MOVED}
    assert await served.events("step-started") == []
