"""`Board`: what people see of a migration: phase, wait, gate, progress; in the ledger, in Temporal's UI, in `status`."""

from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey

from domain.contracts import (
    Assessment,
    CarriedState,
    CheckOutcome,
    CompanionOutcome,
    MigrationInput,
    MigrationStatus,
    StepOutcome,
)
from domain.decisions import Done, Gate, Intent, Refuse, Step
from domain.records import (
    ACTIVE_STATES,
    ApprovalState,
    Hold,
    HoldEffect,
    InHand,
    MigrationState,
    OpenGate,
    Progress,
    Sample,
    Waiting,
)
from domain.waits import KEEPERLESS, WaitReason, means_of_hold
from workflows.orders import Orders
from workflows.outbox import Outbox
from workflows.telling import (
    APPROVAL,
    CLUSTER,
    details_of,
    details_of_error,
    end_of,
    heading_of,
    state_of,
    summary_of,
    waiting_of,
    with_restarts,
)

PHASE = SearchAttributeKey.for_keyword("Phase")
WAITING = SearchAttributeKey.for_keyword("Waiting")

CLOSED_AS = {
    ApprovalState.ARMED: ApprovalState.VOID,
    ApprovalState.EXPIRED: ApprovalState.EXPIRED,
    ApprovalState.CONSUMED: ApprovalState.DONE,
}
"""What an approval becomes that counts no more. The others are closed already."""


class Board:
    """Takes assessments in, and tells what is new in them. `restarts`: of which node how many, since the migration began."""

    def __init__(self, request: MigrationInput, orders: Orders, outbox: Outbox, carried: CarriedState) -> None:
        self._request, self._orders, self._outbox = request, orders, outbox
        self.phase = carried.phase
        self.gate = carried.gate
        self.waiting = carried.waiting
        self.hold = carried.hold
        self.alerts = carried.alerts
        self.restarts, self.restarted_at = dict(carried.restarts), dict(carried.restarted_at)
        self.is_final = carried.is_final
        self.is_way_back_closed = carried.is_way_back_closed
        self.in_hand: Step | None = None
        first = InHand.observing(workflow.now())
        self._progress = Progress(state=MigrationState.PLANNING, intent=orders.intent, phase=carried.phase, in_hand=first)
        self._is_progress_known = False

    @property
    def progress(self) -> Progress | None:
        """For the ledger; `None` as long as nothing has been seen."""
        return self._of_this_run() if self._is_progress_known else None

    @property
    def awaited(self) -> str:
        return self.waiting.reason if self.waiting is not None else "a change"

    def status(self, generation: int) -> MigrationStatus:
        return MigrationStatus(
            migration_id=self._request.migration_id,
            progress=self._of_this_run(),
            generation=generation,
            intent=self._orders.intent,
            applied_commands=tuple(self._orders.applied),
            refused_commands=dict(self._orders.refused),
        )

    def _of_this_run(self) -> Progress:
        return self._progress.model_copy(update={"run_id": workflow.info().run_id})

    def note_phase(self, assessment: Assessment) -> None:
        """At the end its approval is done. Every look is still told of it: what is consumed is not asked for again."""
        self._orders.seen, self.is_final = assessment.approvals, assessment.is_final
        if assessment.phase is None or assessment.phase == self.phase:
            return
        self._outbox.tell("phase-entered", {"phase": assessment.phase, "from": self.phase})
        self.phase = assessment.phase
        workflow.upsert_search_attributes([PHASE.value_set(assessment.phase)])
        self._progress = self._progress.model_copy(update=self._entered(assessment))
        for gate, why in assessment.ends.items():
            self._tell_closed(gate, why)

    def _entered(self, assessment: Assessment) -> dict[str, Any]:
        """What is recorded with a phase that has been entered: the run that found it may end before it notes the rest. What
        the phase before waited for is over; a hold is not."""
        seen: dict[str, Any] = {
            "phase": assessment.phase,
            "nodes": with_restarts(assessment.nodes, self.restarts, self.restarted_at),
            "steps_done": assessment.steps_done,
            "steps_total": assessment.steps_total,
        }
        if self._progress.state not in {MigrationState.WAITING, MigrationState.RUNNING}:
            return seen
        in_hand = InHand.observing(workflow.now())
        return seen | {"state": MigrationState.RUNNING, "waiting": None, "gate": None, "in_hand": in_hand}

    def note(self, assessment: Assessment) -> None:
        """Take an assessment in: what is waited for, the gate, the progress, and what Temporal's UI shows."""
        assessment = self._as_people_see(assessment)
        heading = heading_of(assessment, self._orders.intent)
        self._note_way_back(heading)
        for gate, why in assessment.withdraws.items():
            self._close(gate, why)
        self._note_gate(assessment.gate)
        self._note_waiting(assessment)
        self._note_alerts(assessment)
        self._show(
            Progress(
                state=state_of(assessment, heading),
                intent=heading,
                phase=self.phase,
                waiting=self.waiting,
                hold=self.hold,
                nodes=with_restarts(assessment.nodes, self.restarts, self.restarted_at),
                gate=self.gate,
                steps_done=assessment.steps_done,
                steps_total=assessment.steps_total,
                alerts=self.alerts,
                phases=assessment.phases,
                sample=Sample(at=assessment.observed_at, numbers=assessment.numbers) if assessment.numbers else None,
            )
        )
        page = details_of(self._request.cluster, assessment, self._progress.nodes, self.waiting, self.hold)
        workflow.set_current_details(page)

    def note_turn(self) -> None:
        """Shows immediately where it goes, although the step in hand is finished first. No gate of the way forward is open, no
        approval counts, and what it waited for on that way no longer matters."""
        for gate in tuple(self._orders.approvals):
            self._close(gate, "a rollback was accepted", ApprovalState.ARMED)
        self.gate = None
        update: dict[str, Any] = {"intent": self._orders.intent, "gate": None}
        if self.waiting is None or self.waiting.reason != WaitReason.HELD:
            update |= {"state": MigrationState.REVERTING, "waiting": None}
        self._progress = self._progress.model_copy(update=update)

    def note_hold(self, by: str, reason: str, after: str = "") -> HoldEffect:
        """Shows an accepted hold immediately, also if it takes effect later. `after`: the gate whose irreversible section it
        came into, as the ledger says."""
        is_later = after or any(self._orders.state_of(gate) is ApprovalState.CONSUMED for gate in self._orders.approvals)
        step = HoldEffect.AFTER_STEP if self.in_hand is not None else HoldEffect.NOW
        effect = HoldEffect.AFTER_SECTION if is_later else step
        self.hold = Hold(by=by, reason=reason, since=workflow.now(), takes_effect=effect)
        self._progress = self._progress.model_copy(update={"hold": self.hold})
        self._outbox.send_soon()
        return effect

    def note_resume(self) -> None:
        """The hold is over now, whatever is in the way: only a look tells that, and it may take long."""
        self.hold = None
        self._progress = self._progress.model_copy(update={"hold": None})
        if self.waiting is None or self.waiting.reason != WaitReason.HELD or not self._is_progress_known:
            return
        self._show_waiting(None)
        state = MigrationState.REVERTING if self._orders.intent is Intent.REVERT else MigrationState.RUNNING
        in_hand = self._progress.in_hand or InHand.observing(workflow.now())
        self._show(self._progress.model_copy(update={"state": state, "waiting": None, "in_hand": in_hand}))
        self._outbox.send_soon()

    def note_start(self, step: Step, number: int, nodes: tuple[str, ...]) -> None:
        """One event for each node, as of its end."""
        for node in nodes:
            self._outbox.tell("step-started", _of_node(step, number, node, nodes))
        told = InHand(
            action=step.action, nodes=nodes, stage=step.stage, does=summary_of(step, ", ".join(nodes)), since=workflow.now()
        )
        self.in_hand, self._progress = step, self._progress.model_copy(update={"in_hand": told})

    def note_over(self) -> None:
        """Whatever has become of it, no step is in hand any more."""
        self.in_hand, self._progress = None, self._progress.model_copy(update={"in_hand": None})

    def note_outcome(self, step: Step, number: int, nodes: tuple[str, ...], outcome: StepOutcome) -> None:
        """Notes each node's part of it. A step that touched no node reports the same for all of them.

        The approval of its gate may end with it.
        """
        if step.gate is not None and step.how.ends_approval and outcome.is_done:
            self._orders.seen = ()
            self._close(step.gate, step.how.ends_approval, ApprovalState.CONSUMED)
        spent: dict[str, Any] = {"seconds": round(outcome.seconds, 2), "attempt": outcome.attempt}
        if step.how.measures_pause:
            spent["client_pause_seconds"] = outcome.client_pause_seconds
        said = {"leadership": outcome.leadership} if outcome.leadership else {}
        self._note_part(nodes[0], outcome, _of_node(step, number, nodes[0], nodes) | spent, said)
        untouched = CompanionOutcome(node_id=-1, is_done=False, blocked=outcome.blocked)
        parts = outcome.companions or (untouched,) * len(nodes[1:])
        for node, part in zip(nodes[1:], parts, strict=True):
            self._note_part(node, part, _of_node(step, number, node, nodes) | spent, {})

    def _note_part(self, node: str, part: StepOutcome | CompanionOutcome, told: dict[str, Any], said: dict[str, str]) -> None:
        if part.did_restart:
            self.restarts[node] = self.restarts.get(node, 0) + 1
            self.restarted_at[node] = workflow.now()
        told = told | {"restarted": part.did_restart}
        if part.is_done:
            self._outbox.tell("step-done", {**told, "changes": list(part.changes), **said})
        else:
            self._outbox.tell("step-blocked", {**told, "why": part.blocked})

    def note_check(self, step: Step, number: int, outcome: CheckOutcome) -> None:
        found = {"report": outcome.report_id, "verdict": outcome.verdict, "content_hash": outcome.content_hash}
        self._outbox.tell("step-done", {**_of_step(step, number), **found, "why": outcome.why})

    def note_dropped(self, step: Step, number: int, why: str) -> None:
        """A step that had no effect yet, and never will have."""
        self._outbox.tell("step-blocked", {**_of_step(step, number), "why": why})

    def note_stop(self) -> None:
        """Nothing newer is known of the cluster than the error that stopped us."""
        waiting = Waiting(
            reason=WaitReason.HELD,
            means=means_of_hold(KEEPERLESS),
            since=workflow.now(),
            detail=self._orders.held_because,
            for_people=True,
        )
        self.gate = None
        self.hold = Hold(by=KEEPERLESS, reason=self._orders.held_because, since=workflow.now(), takes_effect=HoldEffect.NOW)
        self._show_waiting(waiting)
        stopped = {"state": MigrationState.HELD, "waiting": waiting, "gate": None, "in_hand": None, "hold": self.hold}
        self._show(self._progress.model_copy(update=stopped))
        workflow.set_current_details(details_of_error(self.phase, waiting, self._orders.seen))

    def note_cancel(self) -> None:
        """A migration that had ended before the cancellation came stays what it was."""
        if self._progress.state not in ACTIVE_STATES:
            return
        self._outbox.tell("cancelled", {"phase": self.phase, "intent": self._orders.intent})
        self._show(self._progress.ended(MigrationState.CANCELLED))

    def note_end(self, assessment: Assessment) -> MigrationState:
        """Show and tell how it ended."""
        state = end_of(assessment, heading_of(assessment, self._orders.intent))
        findings = assessment.decision.findings if isinstance(assessment.decision, Refuse) else ()
        outcome = assessment.decision.outcome if isinstance(assessment.decision, Done) else None
        self._show(self._progress.ended(state, outcome).model_copy(update={"findings": findings}))
        self._outbox.tell(state, {"outcome": outcome, "findings": [finding.model_dump() for finding in findings]})
        return state

    def _note_way_back(self, heading: Intent) -> None:
        if self._orders.intent is heading or self.is_way_back_closed:
            return
        self.is_way_back_closed = True
        self._outbox.tell("way-back-closed", {"phase": self.phase, "why": "the quorum's log says that the migration is final"})

    def _close(self, gate: str, why: str, assumed: ApprovalState | None = None) -> None:
        """The approval that was given last at a gate counts no more. `assumed`: its state, where no look has seen it yet."""
        self._tell_closed(gate, why, assumed)
        self._orders.approvals.pop(gate, None)

    def _tell_closed(self, gate: str, why: str, assumed: ApprovalState | None = None) -> None:
        """The ledger closes the approval in the transaction that takes the event. Not told where it has closed it already."""
        state = self._orders.state_of(gate) or assumed
        if gate in self._orders.approvals and state in CLOSED_AS:
            told = {"gate": gate, "command": self._orders.approvals[gate], "why": why}
            self._outbox.tell(f"approval-{CLOSED_AS[state]}", told)

    def _as_people_see(self, assessment: Assessment) -> Assessment:
        """While both sides are only compared anew, a gate stays open and a wait stays as it was, for whoever saw it before.

        An approval that comes meanwhile is bound to the same evidence; no effect follows before the new report says the same.
        """
        stands = assessment.stands
        if isinstance(stands, Gate):
            is_seen = self.gate is not None and (self.gate.name, self.gate.evidence_hash) == (stands.name, stands.evidence_hash)
        else:
            is_seen = stands is not None and self.waiting is not None and self.waiting.reason == stands.reason
        if stands is None:
            return assessment
        return assessment.model_copy(update={"decision": stands} if is_seen else {"gate": None})

    def _note_gate(self, gate: OpenGate | None) -> None:
        """A gate is another one when its evidence is; one whose cause went away is closed."""
        if gate is None:
            self.gate = None
        elif self.gate is None or (self.gate.name, self.gate.evidence_hash) != (gate.name, gate.evidence_hash):
            self.gate = gate.model_copy(update={"since": workflow.now()})
            self._outbox.tell("gate-opened", {"gate": gate.name, "evidence_hash": gate.evidence_hash})
            self._close(gate.name, "the gate asks again: the evidence has changed, or nothing was written under it")

    def _note_waiting(self, assessment: Assessment) -> None:
        """The age of a wait goes on while its reason is the same, from run to run too."""
        waiting = waiting_of(
            assessment, workflow.now(), self._orders.held_because, self.hold.by if self.hold is not None else ""
        )
        before = self.waiting
        if waiting is not None and waiting.reason == APPROVAL and self.gate is not None:
            waiting = waiting.model_copy(update={"since": self.gate.since})
        elif waiting is not None and before is not None and before.reason == waiting.reason:
            waiting = waiting.model_copy(update={"since": before.since})
        self._show_waiting(waiting)

    def _note_alerts(self, assessment: Assessment) -> None:
        """Tell an alert when it begins; its age goes on while it says the same."""
        known = {(alert.code, alert.object, alert.observed): alert for alert in self.alerts}
        self.alerts = tuple(known.get((a.code, a.object, a.observed), a) for a in assessment.alerts)
        for alert in self.alerts:
            if (alert.code, alert.object, alert.observed) not in known:
                self._outbox.tell("alert", alert.model_dump(mode="json"))

    def _show_waiting(self, waiting: Waiting | None) -> None:
        """Tell a wait when it begins. The search attribute outlives a run, so it is compared with itself."""
        before, self.waiting = self.waiting, waiting
        reason = waiting.reason if waiting is not None else None
        if reason != workflow.info().typed_search_attributes.get(WAITING):
            workflow.upsert_search_attributes([WAITING.value_set(reason) if reason is not None else WAITING.value_unset()])
        if waiting is not None and (before is None or before.reason != reason):
            self._outbox.tell("waiting", waiting.model_dump(mode="json"))

    def _show(self, progress: Progress) -> None:
        self._progress, self._is_progress_known = progress, True


def _of_node(step: Step, number: int, node: str, nodes: tuple[str, ...]) -> dict[str, Any]:
    """`together`: all nodes of a wave, where there is more than one."""
    together = {"together": list(nodes)} if len(nodes) > 1 else {}
    return _of_step(step, number, node) | together


def _of_step(step: Step, number: int, node: str = CLUSTER) -> dict[str, Any]:
    told = {"step": number, "action": step.action, "node": node, "stage": step.stage, "does": summary_of(step, node)}
    return told | ({"urgent": True} if step.how.is_urgent else {})
