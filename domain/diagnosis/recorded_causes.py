"""Causes that no look at a cluster finds: what people have said, and what the ledger has written down. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from domain.approvals import in_state
from domain.clocks import is_over
from domain.decisions import ROLL_NODE
from domain.diagnosis.blocker import APPROVAL, COMMAND_PENDING, MACHINE, MOST_OBSERVED, NO_WORKER, RUN_GONE, Blocker, blocker
from domain.diagnosis.pending_tasks import UNTAKEN
from domain.records import DECIDING, HOLDING, LIFTING, ApprovalState, Command, Event, MigrationRecord, MigrationState, Waiting
from domain.restored_history import KIND, OF_A_RUN, STEP_BEGUN, STEP_OVER
from domain.waits import KEEPERLESS, WaitReason

OF_PEOPLE = frozenset({WaitReason.HELD, APPROVAL, WaitReason.CHECKS_WORKER_MISSING})
"""Waits that only the migration itself knows of; every other one a fresh look finds again, or it is over."""

TOO_LARGE = re.compile(r"exceeds (size )?limit")
"""Of Temporal, for one thing that it is given, and for all of a run: its history's size and count, its state."""

UNLIMITED = (
    "First have that limit of Temporal's dynamic configuration raised to its default, or the next run ends in the same way: "
    "limit.blobSize.error (2 MB), limit.historySize.error (50 MB), limit.historyCount.error (51200), "
    "limit.mutableStateSize.error (8 MB), each with its .warn. "
)
ASKED = "Do not send it again: the migration continues by itself. If this lasts, the other entries name the cause."
TAKEN_WITHIN = timedelta(minutes=1)
"""What a delivered order does shows in less, unless another entry says what keeps it."""
SURVEYED = ("survey", "look at ", "settings of ", "log directories")
"""Parts that only the look before the start asks for: the look that explains a wait knows nothing of them."""

TEMPORAL_SAID = "Temporal answered"
"""How an order begins to be refused that never came to the migration."""

REFUSED_LATELY = timedelta(hours=1)


@dataclass(frozen=True)
class InHand:
    """The step that the last events tell of as begun and not ended."""

    nodes: tuple[str, ...]
    began_at: datetime


def in_hand(events: Sequence[Event]) -> InHand | None:
    """The nodes that a step works on, all of a wave. A person's hold leaves it to be finished; an error of its own ends it."""
    for event in reversed(events):
        is_stopped = event.kind == "held" and "error" in event.data
        if event.kind in STEP_OVER or is_stopped:
            return None
        if event.kind == STEP_BEGUN:
            return InHand(tuple(event.data.get("together") or [event.data.get("node", "")]), event.at)
    return None


def rolled(events: Sequence[Event]) -> tuple[str, ...]:
    """The nodes whose files this migration has changed, and has told of."""
    done = (event.data for event in events if event.kind == "step-done")
    return tuple(sorted({data["node"] for data in done if data.get("action") == ROLL_NODE}))


def longest_restart(events: Sequence[Event]) -> float:
    """Seconds of the longest restart of a node so far, from its step's beginning to its proof; 0 where there was none."""
    done = (event.data for event in events if event.kind == "step-done" and event.data.get("action") == ROLL_NODE)
    return max((float(data.get("seconds", 0)) for data in done), default=0.0)


def of_refused(record: MigrationRecord) -> tuple[Blocker, ...]:
    """Why it did not start: the preflight's findings, but for those that somebody has accepted."""
    at = record.ended_at or record.created_at
    return tuple(
        blocker(f.code, f.object, observed=f.observed, expected=f.expected, fix=f.fix, since=at)
        for f in record.progress.findings
        if f.accepted is None
    )


def of_waiting(
    record: MigrationRecord,
    explained: frozenset[str] | None,
    blocked: Sequence[Event],
    now: datetime,
    commands: Sequence[Command] = (),
    *,
    is_mute: bool = False,
) -> Iterator[Blocker]:
    """The wait that the migration itself tells. `explained`: what a look has found already; `None` where there was no look.
    `commands`: what people have asked for, which it may not have told yet. `is_mute`: whether it cannot tell anything.
    """
    waiting = record.progress.waiting
    if waiting is None:
        return
    is_looked_at = explained is not None and not any(about.startswith(SURVEYED) for about in waiting.objects)
    is_known = is_looked_at and (waiting.reason not in OF_PEOPLE or waiting.reason in (explained or ()))
    if waiting.reason == APPROVAL:
        yield _approval(record, waiting, commands, now)
    elif waiting.reason == WaitReason.HELD:
        armed = in_state(commands, ApprovalState.ARMED, now)
        yield _held(waiting, blocked, _lifting(commands, waiting.since, now, is_mute=is_mute), armed[-1] if armed else None)
    elif not is_known:
        yield blocker(
            waiting.reason,
            ", ".join(waiting.objects[:5]) or "the migration",
            observed=waiting.detail or "the migration waits for it",
            expected="it is over",
            fix=waiting.means,
            since=waiting.since,
        )


def _approval(record: MigrationRecord, waiting: Waiting, commands: Sequence[Command], now: datetime) -> Blocker:
    gate = record.progress.gate
    name = gate.name if gate is not None else ", ".join(waiting.objects)
    evidence = gate.evidence_hash if gate is not None else ""
    first = gate.caution if gate is not None else ""
    asked = [one for one in commands if one.kind in DECIDING and (one.gate, one.evidence_hash) == (name, evidence)]
    if asked and _is_on_its_way(last := asked[-1], now):
        observed = f"{last.by} sent {last.kind} at {last.at:%H:%M:%S} UTC, and the migration has reported nothing since"
        fix = (
            "Do not decide again: the migration takes the decision, and continues by itself. If another entry names a "
            "fault, fix that."
        )
    else:
        observed = f"there is no decision yet on the evidence {evidence[:12]}…"
        body = f"gate {name}, a decision, a reason and evidence_hash {evidence}"
        fix = f"{first}POST /migrations/{record.id}/approvals with {body}."
    return blocker(
        APPROVAL,
        f"gate {name}",
        observed=observed,
        expected="a person approves or rejects",
        fix=fix,
        since=gate.since if gate is not None else waiting.since,
    )


def _is_on_its_way(command: Command, now: datetime) -> bool:
    """It was not refused nor closed, and has not been with the migration for so long that it has done what it does."""
    is_spent = command.delivered_at is not None and is_over(command.delivered_at, now, TAKEN_WITHIN)
    return command.refused_because is None and command.closed_as is None and not is_spent


def _lifting(commands: Sequence[Command], since: datetime, now: datetime, *, is_mute: bool) -> Command | None:
    """The order that ends a hold of then, if it is the newest. One that was delivered a while ago has done what it does: the
    clocks of the API and of Temporal differ, and the hold may be a newer one. Where nothing can be told, it counts still.
    """
    orders = [c for c in commands if c.kind in {*HOLDING, *LIFTING} and c.refused_because is None and c.at > since]
    if not orders or orders[-1].kind not in LIFTING:
        return None
    return orders[-1] if is_mute or _is_on_its_way(orders[-1], now) else None


def _held(waiting: Waiting, events: Sequence[Event], lifting: Command | None, armed: Command | None) -> Blocker:
    """The hold, with who holds, as the migration reports it: a person, or Keeperless after an error that a retry cannot fix.
    `lifting`: the command that ends the hold, and is not yet in the migration's last report. `armed`: the approval that a
    resume may begin.
    """
    is_ours = _is_held_by_us(events)
    again, stop_it = _held_again(events)
    first = "Fix what is named, then resume it, or ask for a rollback" if is_ours else "Resume it when ready"
    who = "Keeperless holds it itself: " if is_ours else ""
    asked, is_taken = "", lifting is not None and lifting.delivered_at is not None
    if lifting is not None:
        taken = "has taken that, and has not reported since" if is_taken else "has not taken that yet"
        asked = f". {lifting.by} asked for {lifting.kind} at {lifting.at:%H:%M:%S} UTC, and the migration {taken}"
    way = f"{first}: POST /migrations/{{id}}/resume or /rollback."
    waits = ""
    if armed is not None:
        until = f"until {armed.expires_at:%Y-%m-%d %H:%M:%S} UTC" if armed.expires_at is not None else "without an end"
        waits = f". The approval of {armed.gate} by {armed.by} at {armed.at:%Y-%m-%d %H:%M:%S} UTC is armed {until}"
        way = (
            f'{first}: POST /migrations/{{id}}/resume with "begin": "{armed.gate}" starts what cannot be undone. To resume '
            f"without it, reject {armed.gate} first (POST /migrations/{{id}}/approvals). Or POST /migrations/{{id}}/rollback."
        )
    return blocker(
        WaitReason.HELD,
        "the migration",
        observed=f"{who}{waiting.detail or 'it is held, without a reason'}{again}{waits}{asked}",
        expected="the migration is not held",
        fix=f"{UNLIMITED if TOO_LARGE.search(waiting.detail) else ''}{stop_it}{way if lifting is None else ASKED}",
        since=waiting.since,
    )


def _is_held_by_us(events: Sequence[Event]) -> bool:
    """After an error that another try cannot fix, or a step after which a person has to look. A rejection is a hold, too."""
    holds = [event for event in events if event.kind in {"held", "rejected"}]
    return bool(holds) and holds[-1].data.get("by") == KEEPERLESS


AGAIN_WITHIN, AT_ONCE = timedelta(seconds=30), timedelta(seconds=10)
"""Of a hold, after somebody has resumed: a program does so each time. Once may be who has changed his mind, unless it is
at once."""


def _held_again(events: Sequence[Event]) -> tuple[str, str]:
    """Where people's resumes do not last: how often so far, and what to do first. Empty where they do."""
    orders = [event for event in events if event.kind in {"held", "resumed"} and event.data.get("by") != KEEPERLESS]
    pairs = [(before, after) for before, after in pairwise(orders) if (before.kind, after.kind) == ("resumed", "held")]
    undone = [(before, after) for before, after in pairs if after.at - before.at <= AGAIN_WITHIN]
    if not undone or undone[-1][1] is not orders[-1]:
        return "", ""
    seconds, times = (undone[-1][1].at - undone[-1][0].at).total_seconds(), len(undone)
    if times == 1 and seconds > AT_ONCE.total_seconds():
        return "", ""
    often = f"; {times} times so far" if times > 1 else ""
    return (
        f". It was resumed, and held again {seconds:.0f} s later{often}",
        "If that was not you, first find who holds it again, from the given reason and the log of keeperless-api (which "
        "shows where each call came from). If a program does so each time (a change freeze, a chat bot, a script), stop it, "
        "or no resume lasts. ",
    )


def of_machines(workers: Sequence[str], looker: str, now: datetime) -> Iterator[Blocker]:
    """`workers`: one of each machine from which keeperless-activities asks for tasks, and `looker` the one that has looked. It
    looks at its own machine, so that on another one every node seems down.
    """
    if len(workers) > 1:
        looked = f". This was seen by {looker}" if looker else ""
        yield blocker(
            MACHINE,
            "keeperless-activities",
            observed=f"tasks for the nodes go to machines of several names: {', '.join(workers)}{looked}"[:MOST_OBSERVED],
            expected="keeperless-activities on the machine of the nodes only",
            fix="Stop the keeperless-activities that is not on the nodes' machine before you change a node: it sees none of "
            "them. Then ask again in a minute: a replaced worker is no longer listed then. If it belongs to another "
            "installation of Keeperless, give each installation its own namespace of Temporal (TEMPORAL_NAMESPACE). "
            "Containers of one machine that all see the nodes may continue.",
            since=now,
        )


def of_restarts(ended: Sequence[str], now: datetime) -> Iterator[Blocker]:
    """`ended`: processes of keeperless-activities that have ended of late. One may have been replaced."""
    if len(ended) > 1:
        yield blocker(
            NO_WORKER,
            "keeperless-activities",
            observed=f"{len(ended)} processes of it have ended recently ({', '.join(ended)}): it is restarted again and "
            "again, and each begins again what the one before was doing",
            expected="it runs on",
            fix="First find what ends it: a configuration tool, a script or a probe that restarts it, its unit (`systemctl "
            "status`: Restart=, WatchdogSec=, RuntimeMaxSec=), or the kernel (dmesg: oom-kill). Its log shows whether "
            "it was asked to end. Nothing is lost: the next one finishes what was begun.",
            since=now,
        )


def of_commands(commands: Sequence[Command], now: datetime, unsent: Mapping[str, str]) -> Iterator[Blocker]:
    """What was asked for, and has not been taken: a workflow that answers takes it within a moment. And the last order, where
    Temporal has not let it through. `unsent`: what Temporal has said of orders that it did not take when they were sent last.
    """
    last = commands[-1] if commands else None
    if last is not None and (last.refused_because or "").startswith(TEMPORAL_SAID) and now - last.at < REFUSED_LATELY:
        yield blocker(
            COMMAND_PENDING,
            f"{last.kind} by {last.by}",
            observed=f"it never reached the migration: {last.refused_because}"[:MOST_OBSERVED],
            expected="Temporal lets commands through",
            fix="Fix what Temporal reports, then send it again: this one is not retried.",
            since=last.at,
        )
    for command in commands:
        is_open = command.delivered_at is None and command.refused_because is None
        said = unsent.get(command.id, "")
        if is_open and is_over(command.at, now, UNTAKEN):
            yield blocker(
                COMMAND_PENDING,
                f"{command.kind} by {command.by}",
                observed=f"it has not reached the migration yet: {said}" if said else "the migration has not taken it yet",
                expected="it is taken, or refused with a reason",
                fix="Fix what Temporal reports. The command is then delivered by itself."
                if said
                else (
                    "Start keeperless-workflows. If it runs, the migration still observes the cluster before it answers. "
                    "The command is delivered by itself."
                ),
                since=command.at,
            )


def set_back(events: Sequence[Event]) -> str:
    """Why the run has ended itself, where it had forgotten what it did; else empty. An attempt at a step that was frozen, and
    wakes up when it is long over, says so too: then the run goes on, and tells more.
    """
    said = next((event for event in reversed(events) if event.kind == KIND), None)
    if said is None or any(event.at > said.at and OF_A_RUN.match(event.key) for event in events):
        return ""
    return str(said.data.get("why", ""))


ELSEWHERE = (
    "First make sure that this is the Temporal in which the migration was started: no worker has polled {0} there for five "
    "minutes. Compare TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and TEMPORAL_PROFILE of the API with those of the workers, "
    "correct what differs, and restart what had it wrong. Start no other migration of this cluster before: the run may "
    "continue elsewhere, and another one takes the cluster from it in the middle of a roll. If it is the right Temporal, "
    "and was created again or has lost the run, start keeperless-workflows and keeperless-activities with it. Then another "
    'migration, as with `"hold": true`, is accepted, and finds out where the cluster is; this one is closed.'
)
"""Of a Temporal that does not know a run, and in which nobody works for any."""


def of_run(
    is_running: bool | None, ended: str, record: MigrationRecord, now: datetime, unserved: str = ""
) -> Iterator[Blocker]:
    """`is_running`: whether Temporal has the migration's own run; `None` where that is not known. `ended`: how it has ended.
    `unserved`: of a Temporal that does not know it, the queues that nobody asks for tasks, and where.
    """
    if is_running is not False or record.progress.state is MigrationState.PLANNING:
        return
    how = ended or "it was terminated, or its history is gone"
    yield blocker(
        RUN_GONE,
        "the migration's workflow",
        observed=f"Temporal has no running workflow of this migration: {how}"[:MOST_OBSERVED],
        expected=f"a running workflow with the id {record.workflow_id}",
        fix=ELSEWHERE.format(unserved)
        if unserved
        else (UNLIMITED if TOO_LARGE.search(ended) else "")
        + (
            'The cluster stays as it is. Start another migration of it with `"hold": true`: it finds out where it is, and can '
            "be resumed or rolled back. This one is then closed."
        ),
        since=now,
    )
