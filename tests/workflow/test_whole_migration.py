"""The whole way from ZooKeeper to KRaft, as Temporal, the ledger and a person see it."""

import itertools
import re
from collections.abc import Callable
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory

from domain.zk_to_kraft.phases import Phase

MAX_EVENTS_PER_NODE = 30

STORY = [
    ("claimed", None),
    ("phase-entered", Phase.PREFLIGHT),
    ("step-done", "controller-3001"),
    ("step-done", "controller-3002"),
    ("step-done", "controller-3003"),
    ("phase-entered", Phase.CONTROLLERS_UP),
    ("report-published", "clean"),
    ("step-done", "cluster"),
    ("step-done", "broker-2"),
    ("phase-entered", Phase.BROKERS_TO_HYBRID),
    ("step-done", "broker-3"),
    ("report-published", "clean"),
    ("step-done", "cluster"),
    ("step-done", "broker-1"),
    ("phase-entered", Phase.DUAL_WRITE),
    ("report-published", "clean"),
    ("step-done", "cluster"),
    ("step-done", "broker-1"),
    ("phase-entered", Phase.BROKERS_TO_KRAFT),
    ("step-done", "broker-2"),
    ("step-done", "broker-3"),
    ("phase-entered", Phase.SOAK),
    ("report-published", "clean"),
    ("step-done", "cluster"),
    ("report-published", "clean"),
    ("step-done", "cluster"),
    ("gate-opened", "finalize"),
    ("waiting", "approval"),
    ("approved", "finalize"),
    ("approval-consumed", "finalize"),
    ("step-done", "controller-3002"),
    ("phase-entered", Phase.FINALIZING),
    ("step-done", "controller-3003"),
    ("step-done", "controller-3001"),
    ("phase-entered", Phase.KRAFT),
    ("approval-done", "finalize"),
    ("report-published", "clean"),
    ("step-done", "cluster"),
    ("specification-revised", None),
    ("succeeded", None),
]
"""What an auditor reads a year later. Broker 1 is ZooKeeper's controller, controller 3001 leads the quorum: they go last."""

WHAT = ("phase", "node", "gate", "reason", "verdict")
PASSING = {"copy-not-complete", "controllers-not-ready", "node-not-ready", "dual-write-not-current", Phase.COPYING}
"""Waits, and a phase, that last a look or two: whether they are seen depends on the moment."""


async def test_a_cluster_goes_from_zookeeper_to_kraft(
    world: Any, keep_histories: Callable[..., None], count_events: Callable[..., dict[str, int]]
) -> None:
    await world.begin()
    await world.approve_gate()
    assert await world.result() == "succeeded"

    assert world.cluster.restarts == {f"broker-{i}": 2 for i in (1, 2, 3)} | {f"controller-{i}": 2 for i in (3001, 3002, 3003)}
    record = await world.record()
    assert (record.progress.state, record.progress.phase, record.progress.outcome) == ("succeeded", "KRAFT", "KRAFT")
    told_restarts = {node.name: node.restarts for node in record.progress.nodes}
    assert told_restarts == {f"broker-{i}": 2 for i in (1, 2, 3)} | {f"controller-{i}": 1 for i in (3001, 3002, 3003)}

    # A record goes beside the next step, so what a check publishes itself may be written before it: times give the order.
    events = sorted(await world.events(), key=lambda event: event.at)
    told = [(e.kind, next((e.data[key] for key in WHAT if e.data.get(key)), None)) for e in events]
    assert [t for t in told if t[0] != "step-started" and t[1] not in PASSING] == STORY
    assert [kind for kind, _ in told].count("step-started") == 18
    assert await world.book.verify_chain() is None

    histories = await world.histories()
    keep_histories("migration", histories)
    assert len(histories) > 4, "a run for each phase"
    per_node = [events for history in histories for events in events_of_restarts(history)]
    print(f"runs {len(histories)}, events in each {[len(h.events) for h in histories]}")
    print(f"events per restarted node {per_node}, at most {max(per_node)}; in all {sum(len(h.events) for h in histories)}")
    print(f"the longest run: {count_events(max(histories, key=lambda h: len(h.events)))}")
    assert len(per_node) == 9
    assert max(per_node) <= MAX_EVENTS_PER_NODE


def events_of_restarts(history: WorkflowHistory) -> list[int]:
    """For each `roll_node` of a run: the events from its scheduling up to the next step's, or to the run's end.

    Without the late end of what was scheduled before it: the watch that an approval cancelled.
    """
    steps = [
        (place, event.activity_task_scheduled_event_attributes.activity_type.name)
        for place, event in enumerate(history.events)
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
        and event.activity_task_scheduled_event_attributes.activity_type.name in {"roll_node", "run_check"}
    ]
    return [
        sum(scheduled_by(event) >= history.events[begin].event_id for event in history.events[begin:end])
        for (begin, name), (end, _) in itertools.pairwise([*steps, (len(history.events), "")])
        if name == "roll_node"
    ]


def scheduled_by(event: HistoryEvent) -> int:
    """The id of the event that scheduled the activity which this event is about; else the event's own."""
    attributes = getattr(event, event.WhichOneof("attributes") or "")
    is_of_activity = EventType.Name(event.event_type).startswith("EVENT_TYPE_ACTIVITY_TASK_")
    return getattr(attributes, "scheduled_event_id", event.event_id) if is_of_activity else event.event_id


async def test_runs_hand_over_all_that_matters(small: Any) -> None:
    """The new run goes on counting where the old one stopped: no step id, no event key is ever used twice."""
    await small.begin()
    await small.approve_gate()
    await small.result()
    events = await small.events()
    steps = [e.data["step"] for e in events if e.kind == "step-started"]
    assert steps == list(range(1, len(steps) + 1))
    keys = [int(re.findall(r"\d+$", e.key)[0]) for e in events if not e.key.startswith(("report/", "approval-", "migration/"))]
    assert all(a < b for a, b in itertools.pairwise(keys))
