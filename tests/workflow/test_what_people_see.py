"""The same words everywhere: search attributes, current details, the status query, the ledger. And no secret anywhere."""

import re
from base64 import b64decode
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.testing import WorkflowEnvironment

from domain.errors import Unsafe
from domain.zk_to_kraft.phases import Phase
from playground.seeded_secrets import REFERENCE, seeded
from playground.temporal import SEARCH_ATTRIBUTES

SECRET = "hunter2-do-not-tell"


async def test_a_waiting_migration_says_so_in_temporal_too(small: Any) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin()
    gate = await small.until_gate()
    assert await small.until(lambda: small.search_attribute("Waiting")) == "approval"
    assert await small.search_attribute("Phase") == "SOAK"
    assert await small.search_attribute("MigrationId") == small.migration_id
    details = await small.current_details()
    assert "### Cluster orders, from ZooKeeper to KRaft: SOAK" in details
    assert "**Waiting: approval**" in details
    assert gate.evidence_hash in details
    assert "| broker-2 | kraft | kraft | yes | 0 | – |" in details.replace("\u00a0", "")
    status = await small.status()
    assert status.progress == await small.progress()
    assert (status.migration_id, status.generation) == (small.migration_id, 2)
    print(details)


async def test_nothing_is_shown_as_waiting_that_goes_on(small: Any) -> None:
    """The wait ends together with a phase, and so with a run: the next run has to take the word away."""
    small.policy = small.policy.model_copy(update={"restart_deadline": timedelta(seconds=2)})
    await small.lead_to(Phase.BROKERS_TO_HYBRID)
    small.cluster.faults.never_registers = {1, 2}
    await small.begin()
    await small.until_waiting("brokers-not-registered")
    assert await small.search_attribute("Waiting") == "brokers-not-registered"
    pause = small.drivers.of[1].pause("stop")
    small.cluster.faults.never_registers = set()
    await pause.is_reached.wait()
    assert await small.search_attribute("Waiting") is None
    assert await small.search_attribute("Phase") == "DUAL_WRITE"
    assert len(await small.histories()) > 1
    small.drivers.of[1].release("stop")


async def test_no_secret_leaves_its_node(small: Any) -> None:
    """In whatever shape public files have had one, from the first look to the end."""
    secrets: dict[str, str] = {}
    for node_id in (1, 2, 3):
        one, node = seeded(f"broker{node_id}"), small.cluster.nodes[node_id]
        path = node.spec.properties_file
        file = node.machine.read(path)
        content = one.text.encode() + file.content + f"\nssl.keystore.password={SECRET}\n{one.text}{REFERENCE}\n".encode()
        node.machine.write(path, type(file)(content, file.mode, file.uid, file.gid))
        node.start()
        secrets |= {f"{node_id}: {place}": secret for place, secret in one.secrets.items()}
    small.cluster.advance(10)
    await small.begin()
    await small.approve_gate()
    assert await small.result() == "succeeded"
    assert SECRET.encode() in small.cluster.nodes[3001].machine.read("/etc/controller-3001/server.properties").content
    told = {
        "history": [text for history in await small.histories() for text in payloads_of(history.to_json())],
        "events": [event.model_dump_json() for event in await small.book.events()],
        "migrations": [migration.model_dump_json() for migration in await small.book.migrations()],
        "commands": [command.model_dump_json() for command in await small.book.commands(small.migration_id)],
        "artefacts": [content.decode() for content in small.artefacts.kept.values()],
    }
    for what, shown in CONTROLS.items():
        assert any(shown in text for text in told[what]), f"{what}: the same search finds what may be shown"
    found = {(what, place) for what, texts in told.items() for place, one in secrets.items() for text in texts if one in text}
    assert found == set()
    assert not [text for texts in told.values() for text in texts if SECRET in text]


CONTROLS = {
    "history": "roll-node",
    "events": "+ controller.quorum.voters=",
    "migrations": "zk-to-kraft",
    "commands": "finalize",
    "artefacts": "zookeeper.connect",
}


def payloads_of(history: str) -> list[str]:
    """What Temporal keeps, as it was before it was encoded."""
    return [b64decode(data).decode(errors="replace") for data in re.findall(r'"data": ?"([A-Za-z0-9+/=]+)"', history)]


# ---- a month at the gate ----


@pytest.fixture
async def skipping(temporal_path: str) -> AsyncIterator[WorkflowEnvironment]:
    """The real server with its time skipping switched on: each workflow has a clock of its own."""
    attributes = [part for name in SEARCH_ATTRIBUTES for part in ("--search-attribute", f"{name}=Keyword")]
    async with await WorkflowEnvironment.start_time_skipping_v2(
        dev_server_existing_path=temporal_path,
        dev_server_extra_args=["--dynamic-config-value", "frontend.WorkflowTimeSkippingEnabled=true", *attributes],
        dev_server_startup_timeout=timedelta(seconds=60),
        data_converter=pydantic_data_converter,
    ) as environment:
        yield environment


async def test_a_month_of_waiting_for_a_person_costs_no_history(
    skipping: WorkflowEnvironment, make_world: Callable[..., Any]
) -> None:
    """A pending activity keeps this server from skipping, and at the gate there is always one: the watch. So the month is
    spent held after an error, where nothing is pending, and the gate's own month is the next two tests' business.
    """
    world = make_world(controllers=1, client=skipping.client)
    await world.lead_to(Phase.SOAK)
    world.ledger.faults["cluster"] = Unsafe("somebody else is here")
    await world.begin()
    await world.until_waiting("held")
    await world.until(lambda: world.is_quiet(0.5))
    before = len((await world.handle.fetch_history()).events)
    assert await skipping.fast_forward(world.handle, timedelta(days=30))
    after = (await world.handle.fetch_history()).events
    print(f"a month held: {before} events before, {len(after)} after")
    assert len(after) - before <= 3
    world.ledger.faults.clear()
    await world.resume()
    held, resumed = await world.until_told("held"), await world.until_told("resumed")
    assert resumed.at - held.at >= timedelta(days=30)
    await world.approve_gate()
    assert await world.result() == "succeeded"


async def test_at_the_gate_no_timer_runs_and_attempts_cost_no_history(small: Any) -> None:
    """A watch that ends after a day, or dies with its worker, is another attempt at the same activity."""
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    small.kafka.faults["view"] = RuntimeError("an attempt ends")
    asked = small.kafka.calls.count("view")
    await small.until(lambda: small.has_asked(small.kafka, "view", asked + 1))
    await small.until(lambda: small.is_quiet(0.5))
    before = (await small.handle.fetch_history()).events
    await small.until(lambda: small.has_asked(small.kafka, "view", asked + 3))
    assert len((await small.handle.fetch_history()).events) == len(before)
    assert not [e for e in before if e.event_type == EventType.EVENT_TYPE_TIMER_STARTED]
    small.kafka.faults.clear()
    await small.approve_gate()
    assert await small.result() == "succeeded"


async def test_a_watch_costs_no_history_however_long_it_looks(small: Any) -> None:
    await small.lead_to(Phase.SOAK)
    await small.begin()
    await small.until_gate()
    await small.until(lambda: small.is_quiet(0.5))
    events, looks = len((await small.handle.fetch_history()).events), small.kafka.calls.count("view")
    await small.until(lambda: small.has_asked(small.kafka, "view", looks + 20))
    assert len((await small.handle.fetch_history()).events) == events
    print(f"20 looks at the gate, {events} events before and after")
    await small.approve_gate()
    assert await small.result() == "succeeded"


# ---- the age of a wait ----


@pytest.fixture
async def impatient(temporal_path: str) -> AsyncIterator[WorkflowEnvironment]:
    """The real server, asking for a new run after few events instead of 4,096."""
    attributes = [part for name in SEARCH_ATTRIBUTES for part in ("--search-attribute", f"{name}=Keyword")]
    async with await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_path,
        dev_server_extra_args=["--dynamic-config-value", "limit.historyCount.suggestContinueAsNew=60", *attributes],
        dev_server_startup_timeout=timedelta(seconds=60),
        data_converter=pydantic_data_converter,
    ) as environment:
        yield environment


async def test_the_age_of_a_wait_goes_on_from_run_to_run(
    impatient: WorkflowEnvironment, make_world: Callable[..., Any], make_approval: Callable[..., Any]
) -> None:
    """Messages that are ignored fill the history at the gate, until Temporal asks for a new run."""
    world = make_world(controllers=1, client=impatient.client)
    await world.lead_to(Phase.SOAK)
    await world.begin()
    first = await world.until_waiting("approval")
    for number in range(15):
        await world.handle.signal("approve", make_approval("0" * 64))
        await world.until_told("signal-ignored", number + 1)
    await world.until(lambda: world.has_runs(2))
    await world.until(lambda: world.is_quiet(0.5))
    then = await world.progress()
    print(f"events in each run {[len(run.events) for run in await world.histories()]}")
    assert (then.waiting, then.gate) == (first.waiting, first.gate)
    assert first.waiting.since == first.gate.since
    assert len(await world.events("gate-opened")) == len(await world.events("waiting")) == 1
    world.cluster.faults.silent_metrics.add(2)
    since = (await world.until_waiting("part-unknown")).waiting.since
    before = len(await world.histories())
    for number in range(15, 30):
        await world.handle.signal("approve", make_approval("0" * 64))
        await world.until_told("signal-ignored", number + 1)
    await world.until(lambda: world.has_runs(before + 1))
    assert (await world.progress()).waiting.since == since
    world.cluster.faults.silent_metrics.clear()
    await world.approve_gate()
    assert await world.result() == "succeeded"


# ---- numbers over time ----


async def test_a_wait_is_sampled_without_any_history(
    small: Any, monkeypatch: pytest.MonkeyPatch, ledger_is_down: Exception
) -> None:
    monkeypatch.setattr("activities.assessing.SAMPLE_SECONDS", 0.0)
    await small.lead_to(Phase.SOAK)
    await small.begin()
    gate = await small.until_gate()
    await small.until(lambda: small.is_quiet(0.5))
    [history] = (await small.histories())[-1:]
    small.ledger.faults["add_sample"] = ledger_is_down

    async def samples(more_than: int) -> list[Any]:
        found = await small.book.samples(small.migration_id)
        return found if len(found) > more_than else []

    calls = small.ledger.calls.count("add_sample")
    await small.until(lambda: small.has_asked(small.ledger, "add_sample", calls + 3))
    assert (await small.progress()).gate == gate, "a ledger that takes no sample stops no wait"
    del small.ledger.faults["add_sample"]
    before = len(await small.book.samples(small.migration_id))
    found = await small.until(lambda: samples(before + 3))
    names = {number.name for sample in found for number in sample.numbers}
    assert names == {"ZkMigrationState", "ZkWriteBehindLag"}
    assert {number.says for sample in found[-3:] for number in sample.numbers} == {"MIGRATION", ""}
    assert len((await small.histories())[-1].events) == len(history.events)


async def test_a_node_is_told_with_its_last_restart(small: Any) -> None:
    await small.lead_to(Phase.BROKERS_TO_KRAFT)
    await small.begin()
    await small.until_gate()
    restarted = [node for node in (await small.progress()).nodes if node.restarts]
    done = {event.data["node"]: event.at for event in await small.events("step-done") if event.data.get("restarted")}
    assert restarted
    assert {node.name: node.last_restart for node in restarted} == done
    assert f"{restarted[0].last_restart:%Y-%m-%d %H:%M:%S}" in await small.current_details()
