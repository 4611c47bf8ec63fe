"""What is called and what is there are the same: names and types, on both sides of every call."""

import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel
from temporalio import activity, workflow

from activities.checks_worker import checks_activities
from activities.diagnosis.machine_notes import MachineNotes
from activities.ports.checks import CheckRunner, MessageRunner
from activities.ports.ports import Ports
from activities.settings import ActivitySettings
from activities.shipped_kinds import SHIPPED_KINDS
from activities.worker import cluster_activities, watch_activities
from activities.zk_to_kraft.rehearsal.rehearsing import RehearsalPorts
from domain import contracts
from domain.contracts import (
    WORKFLOW_TYPE,
    ActivityName,
    AdoptRequest,
    ApprovalMessage,
    Assessment,
    AssessRequest,
    CheckOutcome,
    CheckRequest,
    Claim,
    ClaimRequest,
    HoldMessage,
    MigrationInput,
    MigrationStatus,
    RecordRequest,
    RollbackAnswer,
    RollbackMessage,
    RollbackRequest,
    StepOutcome,
    StepRequest,
)
from domain.decisions import Step
from domain.policy import MigrationPolicy
from domain.questions import (
    BlockersRequest,
    BlockersSeen,
    ClusterSight,
    ObserveRequest,
    PlanOutcome,
    PlanRequest,
    PreviewRequest,
    RollbackPreview,
    Runbook,
)
from domain.records import CommandKind
from domain.zk_to_kraft.described import CHECKS, EFFECTS, described
from domain.zk_to_kraft.steps import NodeStage, StepAction, ZkActivity
from workflows.migration import Migration
from workflows.telling import summary_of

PORTS = Ports(*[cast("Any", None)] * 6, kinds=SHIPPED_KINDS)
NOTES = cast("MachineNotes", None)
WATCHING = {
    ActivityName.WATCH,
    ActivityName.OBSERVE,
    ActivityName.PREVIEW,
    ActivityName.RUNBOOK,
    ActivityName.FIND_BLOCKERS,
    ActivityName.MAKE_PLAN,
}
CALLS: dict[str, tuple[type, Any]] = {
    ActivityName.CLAIM: (ClaimRequest, Claim),
    ActivityName.FIND_BLOCKERS: (BlockersRequest, BlockersSeen),
    ActivityName.ASSESS: (AssessRequest, Assessment),
    ActivityName.WATCH: (AssessRequest, Assessment),
    ZkActivity.PROVISION_CONTROLLER: (StepRequest, StepOutcome),
    ActivityName.ROLL_NODE: (StepRequest, StepOutcome),
    ActivityName.RECORD: (RecordRequest, None),
    ActivityName.OBSERVE: (ObserveRequest, ClusterSight),
    ActivityName.ADOPT: (AdoptRequest, str | None),
    ActivityName.ACCEPT_ROLLBACK: (RollbackRequest, RollbackAnswer),
    ActivityName.PREVIEW: (PreviewRequest, RollbackPreview),
    ActivityName.RUNBOOK: (PreviewRequest, Runbook),
    ActivityName.TRY_CANARIES: (StepRequest, StepOutcome),
    ActivityName.REMOVE_CANARIES: (StepRequest, StepOutcome),
    ZkActivity.START_NODE: (StepRequest, StepOutcome),
    ZkActivity.FAIL_OVER: (StepRequest, StepOutcome),
    ZkActivity.LEAVE_KRAFT: (StepRequest, StepOutcome),
    ZkActivity.WIPE: (StepRequest, StepOutcome),
    ActivityName.RELEASE_CONFIGURATION: (StepRequest, StepOutcome),
    ActivityName.RUN_CHECK: (CheckRequest, CheckOutcome),
    ActivityName.MAKE_PLAN: (PlanRequest, PlanOutcome),
    ActivityName.REHEARSE_PLAN: (PlanRequest, PlanOutcome),
}


def registered() -> dict[str, Callable[..., Any]]:
    checks = checks_activities(
        PORTS, cast("CheckRunner", None), cast("MessageRunner", None), cast("RehearsalPorts", None), Path()
    )
    functions = [*cluster_activities(PORTS, ActivitySettings(), NOTES), *watch_activities(PORTS, NOTES), *checks]
    names = [activity._Definition.must_from_callable(function).name or "" for function in functions]
    assert len(names) == len(set(names)), "an activity is served by one queue"
    return dict(zip(names, functions, strict=True))


def test_every_activity_that_is_named_is_registered_and_no_other() -> None:
    assert registered().keys() == {*ActivityName, *ZkActivity} == CALLS.keys()


@pytest.mark.parametrize("name", [*ActivityName, *ZkActivity])
def test_an_activity_takes_and_gives_what_the_contract_says(name: str) -> None:
    hints = typing.get_type_hints(registered()[name])
    result = hints.pop("return")
    takes, gives = CALLS[name]
    assert list(hints.values()) == [takes]
    assert result in {gives, type(gives)}


def test_what_people_wait_for_and_what_is_long_has_a_queue_of_its_own() -> None:
    watching = {activity._Definition.must_from_callable(f).name for f in watch_activities(PORTS, NOTES)}
    assert watching == WATCHING


def test_every_action_has_its_activity() -> None:
    assert EFFECTS.keys() == set(StepAction) - CHECKS.keys(), "those have no effect, and a queue of their own"
    activities = {activity for activity, _ in EFFECTS.values()}
    assert {CALLS[name] for name in activities} == {(StepRequest, StepOutcome)}
    assert len(EFFECTS) == len(activities)


def test_the_workflow_takes_and_gives_what_the_contract_says() -> None:
    definition = workflow._Definition.must_from_class(Migration)
    assert definition.name == WORKFLOW_TYPE
    assert definition.arg_types == [MigrationInput]
    assert definition.ret_type is str
    messages = {"approve": ApprovalMessage, "reject": ApprovalMessage, "hold": HoldMessage, "resume": HoldMessage}
    messages |= {"rollback": RollbackMessage}
    assert {name: update.arg_types for name, update in definition.updates.items()} == {n: [t] for n, t in messages.items()}
    assert all(update.validator is not None for update in definition.updates.values())
    assert {kind.value for kind in CommandKind} == messages.keys(), "the API sends a command as the update of its name"
    whatever_comes = {"approve": None, "resume": None, "rollback": None}
    assert {name: signal.arg_types for name, signal in definition.signals.items()} == whatever_comes
    assert {name: query.ret_type for name, query in definition.queries.items()} == {"status": MigrationStatus}


PAYLOADS = [
    model
    for model in vars(contracts).values()
    if isinstance(model, type) and issubclass(model, contracts.Payload) and model is not contracts.Payload
]


def test_there_are_payloads() -> None:
    assert len(PAYLOADS) > 12


@pytest.mark.parametrize("model", PAYLOADS, ids=lambda model: model.__name__)
def test_a_payload_tolerates_what_a_newer_program_adds(model: type[BaseModel]) -> None:
    assert model.model_config.get("extra", "ignore") == "ignore"


FIRST_FIELDS: dict[str, set[str]] = {
    "AdoptRequest": {"migration_id", "command_id"},
    "ApprovalMessage": set(),
    "AssessRequest": {"kind", "migration_id", "cluster", "generation"},
    "BlockersRequest": {"kind", "migration_id", "cluster"},
    "BlockersSeen": {"observed_at", "phase", "blockers"},
    "Assessment": {"phase", "decision", "digest", "observation", "observed_at"},
    "CarriedState": {"generation"},
    "CheckOutcome": {"report_id", "verdict", "content_hash"},
    "CheckRequest": {"kind", "report_id", "cluster"},
    "Claim": {"is_ours", "generation"},
    "ClaimRequest": {"migration_id", "first_run_id"},
    "ClusterSight": {"cluster", "observed_at", "phase", "nodes", "gauges", "unknown"},
    "CompanionOutcome": {"node_id", "is_done"},
    "FileRestoration": {"node", "path", "how", "sha256"},
    "Gauges": set(),
    "HoldMessage": set(),
    "Loss": {"name", "what"},
    "MigrationInput": {"kind", "migration_id", "cluster"},
    "MigrationStatus": {"migration_id", "progress", "generation"},
    "ObserveRequest": {"cluster"},
    "PlanOutcome": {"plan_id", "plan_hash", "is_blocked"},
    "PlanRequest": {"plan_id", "cluster", "kind", "requested_by", "requested_at"},
    "PreviewRequest": {"kind", "cluster"},
    "PreviewStep": {"what"},
    "RecordRequest": {"migration_id", "cluster", "generation"},
    "RevertOrder": {"command_id", "because", "cluster"},
    "RollbackAnswer": set(),
    "RollbackMessage": set(),
    "RollbackPreview": {"cluster", "observed_at", "phase", "is_possible"},
    "RollbackRequest": {"kind", "migration_id", "cluster", "generation", "command_id"},
    "Runbook": {"cluster", "observed_at", "phase", "forward", "back"},
    "RunbookAction": {"title", "node", "host", "commands"},
    "StepOutcome": {"is_done"},
    "RunContext": {"kind", "migration_id", "cluster", "generation"},
    "StepRequest": {"kind", "migration_id", "cluster", "generation", "step_id", "step"},
}
"""Fields that were there from the first day. Every later one needs a default: histories without it are still read."""


@pytest.mark.parametrize("model", PAYLOADS, ids=lambda model: model.__name__)
def test_a_payload_can_be_read_without_what_came_later(model: type[BaseModel]) -> None:
    required = {name for name, field in model.model_fields.items() if field.is_required()}
    assert required == FIRST_FIELDS[model.__name__], f"give the new field of {model.__name__} a default"


def test_a_payload_with_a_field_too_many_is_read() -> None:
    message = ApprovalMessage.model_validate_json('{"gate": "finalize", "by": "anna", "signature": "of a later release"}')
    assert (message.gate, message.by, message.command_id) == ("finalize", "anna", None)


def test_every_step_has_a_line_for_temporals_page() -> None:
    """One without would end the workflow's task again and again."""
    steps = [Step(action=action, node_id=1, stage=NodeStage.KRAFT) for action in StepAction]
    named = {step.action: summary_of(described(step, MigrationPolicy()), "broker-1") for step in steps}
    assert len(set(named.values())) == len(named)
