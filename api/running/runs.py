"""A migration's run in Temporal. The workflow id names the Kafka cluster: Temporal lets one run with it exist at a time."""

from dataclasses import dataclass

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest, DescribeWorkflowExecutionResponse
from temporalio.client import Client
from temporalio.common import (
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.converter import decode_typed_search_attributes
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCStatusCode

from api.answers.links import migration_url
from api.running.temporal import Temporal, TemporalRefused
from domain.contracts import WORKFLOW_TYPE, MigrationInput, TaskQueue
from domain.errors import Permanent
from domain.records import MigrationRecord

CLUSTER = SearchAttributeKey.for_keyword("Cluster")
MIGRATION_KIND = SearchAttributeKey.for_keyword("MigrationKind")
MIGRATION_ID = SearchAttributeKey.for_keyword("MigrationId")


class ClusterHeld(Permanent):
    """Another run holds the cluster. `migration_id` is `None` where it does not say whose it is."""

    def __init__(self, migration_id: str | None) -> None:
        super().__init__(f"another run holds the cluster, of migration {migration_id}: wait for its end")
        self.migration_id = migration_id


@dataclass(frozen=True)
class Run:
    """The newest run with a workflow id. A chain of continued runs is one run here, called by its first one's id."""

    migration_id: str | None
    run_id: str
    is_running: bool


async def start_run(temporal: Temporal, record: MigrationRecord, is_held: bool = False) -> str:
    """Start a migration's run, or find that it was started: its id. Raises `ClusterHeld` where another's runs."""
    try:
        async with temporal.answering() as client:
            return await _start(client, record, is_held)
    except WorkflowAlreadyStartedError:
        run = await newest_run(temporal, record.workflow_id)
    if run is not None and run.migration_id == record.id:
        return run.run_id
    raise ClusterHeld(run.migration_id if run is not None else None)


async def newest_run(temporal: Temporal, workflow_id: str) -> Run | None:
    """The run that runs, or else the last one that Temporal remembers."""
    try:
        async with temporal.answering() as client:
            return run_of(await described(client, workflow_id))
    except TemporalRefused as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise


async def of_migration(temporal: Temporal, migration_id: str) -> str:
    """The id of the workflow of a migration that only Temporal may know; empty where it knows none. `migration_id`: a UUID.

    Raises `TemporalUnavailable` or `TemporalRefused`.
    """
    async with temporal.answering() as client:
        async for found in client.list_workflows(f"MigrationId = '{migration_id}'", page_size=1):
            return found.id
    return ""


async def described(client: Client, workflow_id: str) -> DescribeWorkflowExecutionResponse:
    """What Temporal says of the newest run. The SDK's own `describe` fails of a run that somebody has paused (1.32)."""
    execution = WorkflowExecution(workflow_id=workflow_id)
    asked = DescribeWorkflowExecutionRequest(namespace=client.namespace, execution=execution)
    return await client.workflow_service.describe_workflow_execution(asked)


def run_of(description: DescribeWorkflowExecutionResponse) -> Run:
    info = description.workflow_execution_info
    return Run(
        migration_id=decode_typed_search_attributes(info.search_attributes).get(MIGRATION_ID),
        run_id=info.first_run_id or info.execution.run_id,
        is_running=not info.HasField("close_time"),
    )


async def _start(client: Client, record: MigrationRecord, is_held: bool) -> str:
    handle = await client.start_workflow(
        WORKFLOW_TYPE,
        MigrationInput(
            migration_id=record.id,
            kind=record.kind,
            cluster=record.cluster,
            policy=record.policy,
            is_held=is_held,
            requested_by=record.requested_by,
            plan_id=record.plan_id,
        ),
        id=record.workflow_id,
        task_queue=TaskQueue.MIGRATIONS,
        id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
        id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        search_attributes=TypedSearchAttributes(
            [
                SearchAttributePair(CLUSTER, record.cluster),
                SearchAttributePair(MIGRATION_KIND, record.kind),
                SearchAttributePair(MIGRATION_ID, record.id),
            ]
        ),
        static_summary=f"{record.kind} of Kafka cluster {record.cluster}",
        static_details=_details(record),
    )
    return str(handle.first_execution_run_id)


def _details(record: MigrationRecord) -> str:
    """Markdown for whoever opens the run in Temporal's web UI and knows nothing of it."""
    return (
        f"Migration `{record.id}` ({record.kind}) of Kafka cluster **{record.cluster}** (`{record.cluster_id}`), "
        f"requested by {record.requested_by} at {record.created_at:%Y-%m-%d %H:%M:%S} UTC, on revision "
        f"{record.spec_revision} of the cluster's spec.\n\nIts state, what it waits for and what to decide: `GET "
        f"{migration_url(record.id)}` of the Keeperless API. Approve, reject, hold, resume or roll it back there. Do not "
        "terminate it here: the cluster would stay half-way."
    )
