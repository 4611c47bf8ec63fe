"""Changes of replication factors, as activities see them."""

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NoReturn

from activities.observing.observe import observe_for
from activities.ports.kafka import Listeners
from activities.ports.kinds import ActivityKind
from activities.ports.ports import Ports
from activities.replication_factor.looking import with_replicas
from activities.replication_factor.moving import Moving
from domain.errors import Unsafe
from domain.evidence import hash_of
from domain.observed.observation import Observation
from domain.policy import MigrationPolicy
from domain.questions import PreviewStep, RollbackPreview, Runbook, RunbookAction
from domain.records import ClusterRecord
from domain.replication_factor.assessment import assess, ensure_allowed, planned_changes, sight_of
from domain.replication_factor.change import Change
from domain.replication_factor.cost import cost_of
from domain.replication_factor.decide import progress_to
from domain.replication_factor.kind import DIAGNOSIS, NAME, REPLICATION_FACTOR
from domain.replication_factor.planning import plan_of
from domain.replication_factor.sight import back, sight
from domain.replication_factor.window import Standing
from domain.rolling.change import Rolls


def _no_restart(*_: object, **__: object) -> NoReturn:
    raise Unsafe("a change of replication factors restarts no node")


NO_ROLLS = Rolls(
    restart=_no_restart,
    is_original=_no_restart,
    needs_sibling=_no_restart,
    make=_no_restart,
    edit=_no_restart,
    is_staged=lambda key, role: False,
    why_not_proven=_no_restart,
    dead_besides=_no_restart,
    returns_leadership=_no_restart,
)


async def preview(cluster: ClusterRecord, ports: Ports, policy: MigrationPolicy, *, for_people: bool) -> RollbackPreview:
    observation = await observe_for(NAME, cluster, ports, policy)
    seen = sight(observation)
    begun: list[Change] = []
    if seen.now is not None:
        begun = list(progress_to(planned_changes(seen), seen.now, is_back=True)[Standing.WAITING])
    cost = cost_of(begun)
    steps = [PreviewStep(what=f"{cost.copied:,} bytes are copied")] if cost.copied else []
    steps += [PreviewStep(what=f"{c.partition.name}: {list(c.partition.replicas)} → {list(c.after)}") for c in begun]
    return RollbackPreview(
        cluster=cluster.spec.name,
        observed_at=observation.ended_at,
        phase=sight_of(observation, cluster.spec, policy).phase,
        is_possible=seen.before is not None,
        why_not="" if seen.before is not None else "no migration of this kind is active, or its plan is not known",
        steps=tuple(steps),
        unknown=tuple(part.what for part in observation.unanswered),
        preview_hash=hash_of({"back": [(c.partition.name, c.after) for c in begun]}),
    )


async def runbook(cluster: ClusterRecord, ports: Ports, policy: MigrationPolicy) -> Runbook:
    """Both ways with `kafka-reassign-partitions`, for what is left of each."""
    observation = await observe_for(NAME, cluster, ports, policy)
    changes = planned_changes(sight(observation))
    servers = ",".join(cluster.spec.kafka.bootstrap_servers)
    return Runbook(
        cluster=cluster.spec.name,
        observed_at=observation.ended_at,
        phase=sight_of(observation, cluster.spec, policy).phase,
        forward=_by_hand(changes, servers, "forward"),
        back=_by_hand([back(change) for change in changes], servers, "back"),
        unknown=tuple(part.what for part in observation.unanswered),
    )


def _by_hand(changes: Sequence[Change], servers: str, way: str) -> tuple[RunbookAction, ...]:
    if not changes:
        return ()
    partitions = [{"topic": c.partition.topic, "partition": c.partition.number, "replicas": list(c.after)} for c in changes]
    text, file = json.dumps({"version": 1, "partitions": partitions}), f"reassign-{way}.json"
    tool = f"kafka-reassign-partitions.sh --bootstrap-server {servers} --reassignment-json-file {file}"
    return (
        RunbookAction(
            title="Move replicas with Kafka's own tool",
            node=None,
            host=None,
            commands=(f"cat >{file} <<'JSON'\n{text}\nJSON", f"{tool} --execute", f"{tool} --verify --preserve-throttles"),
            check="The last command says of every partition that its reassignment is completed.",
        ),
    )


def _effects(ports: Ports, listeners: Listeners) -> list[Callable[..., Any]]:
    moving = Moving(ports)
    return [moving.move_replicas, moving.restore_throttles]


async def _nothing_else(observation: Observation, *_: object) -> Observation:
    return observation


async def _no_lookups(*_: object) -> object:
    return None


REPLICATION_FACTOR_AT_WORK = ActivityKind(
    kind=REPLICATION_FACTOR,
    probe=with_replicas,
    needs_survey=lambda *_: False,
    assess=assess,
    ensure_allowed=ensure_allowed,
    sight=sight_of,
    survey=_nothing_else,
    plan=plan_of,
    why_not_rehearsed=lambda *_: "nothing of it can be rehearsed",
    preview=preview,
    runbook=runbook,
    rolls=NO_ROLLS,
    diagnosis=DIAGNOSIS,
    lookups=_no_lookups,
    checks={},
    effects=_effects,
    bounded_grace=timedelta(0),
)
