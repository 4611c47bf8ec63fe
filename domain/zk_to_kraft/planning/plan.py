"""The plan of a migration to KRaft: findings, rolls, files at every stage, restarts, what cannot be undone, what it will take.

Made from one look. Where a migration has begun already it tells of what is left. Pure.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from domain.canaries import announced
from domain.checks.acceptance import blockers_in, marked
from domain.cluster import ClusterSpec, ControllerSpec, NodeSpec, Role
from domain.configuration.file_changes import unified
from domain.configuration.properties import ENCODING
from domain.decisions import Finding, Severity
from domain.errors import Malformed
from domain.evidence import hash_of
from domain.observed.observation import Observation
from domain.plans import (
    Asked,
    FileAtStage,
    Plan,
    PlannedNode,
    PlannedRoll,
    PlannedWave,
    PointOfNoReturn,
    in_the_way,
    nothing_answers,
)
from domain.policy import MigrationPolicy
from domain.rolling.change import Files
from domain.rolling.configuration_management import planned
from domain.rolling.waves import Wave
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.node_config import controller_file, node_file
from domain.zk_to_kraft.pending_restart import edits_in_flight
from domain.zk_to_kraft.phases import COPY_BEGUN, Phase, phase_of
from domain.zk_to_kraft.planning.basis import basis_of
from domain.zk_to_kraft.planning.estimate import copy_seconds, estimate_of
from domain.zk_to_kraft.planning.texts import CHANGES_FOR_PEOPLE, NOT_MIGRATED, changes_here, dropped_keys
from domain.zk_to_kraft.preflight import MET_BY_CONTROLLERS, preflight
from domain.zk_to_kraft.preview import FLUSH_SECONDS, WINDOW_SECONDS
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.rehearsal.outcome import not_made, too_late
from domain.zk_to_kraft.roll_waves import planned_waves
from domain.zk_to_kraft.situation import ControllerSituation, Situation
from domain.zk_to_kraft.steps import GateName, NodeStage

FINALIZE = PointOfNoReturn(
    what="The first controller that becomes active without the migration flag writes POST_MIGRATION into the quorum's log. "
    "From then on a rollback to ZooKeeper is impossible.",
    gate=GateName.FINALIZE,
)

TOGETHER = "all at the same time: none of them serves yet"
STANDBY = "a standby: one at a time, before the leader, which keeps the migration flag and so the possibility of a rollback"
LEADER = (
    "the quorum's leader at that moment: when it stops, a controller without the flag takes over, and writes POST_MIGRATION"
)
GRAVEST_FIRST = tuple(Severity)
DONE_PHASES = frozenset({Phase.KRAFT})
BEFORE_BROKERS = frozenset({Phase.PREFLIGHT, Phase.CONTROLLERS_UP})


def plan_of(observation: Observation, spec: ClusterSpec, files: Files, asked: Asked, observation_name: str) -> Plan:
    """All that the migration would do from what was seen. `observation_name`: the artefact that holds it."""
    situation = situation_of(observation, spec, asked.policy)
    is_silent = _is_silent(observation, situation)
    rehearsed = marked(_found_by(asked), asked.policy)
    beside = () if asked.migration is None else (in_the_way(asked.migration),)
    silent = (nothing_answers(),) if is_silent else ()
    findings = _gravest_first((*beside, *silent, *findings_of(observation, spec, asked.policy), *rehearsed))
    rolls = () if is_silent else rolls_of(situation, observation, spec, asked.policy)
    nodes = () if is_silent else tuple(_node(node, spec, files, rolls) for node in spec.nodes)
    basis = basis_of(observation, spec, situation)
    irreversible = () if is_silent or phase_of(situation) in DONE_PHASES else (FINALIZE,)
    return Plan(
        id=asked.id,
        cluster=spec.name,
        cluster_id=spec.cluster_id,
        kind=asked.kind,
        policy=asked.policy,
        wanted=asked.wanted,
        spec_revision=observation.spec_revision,
        requested_by=asked.requested_by,
        requested_at=asked.requested_at,
        made_at=observation.ended_at,
        observation=observation_name,
        phase=phase_of(situation),
        is_blocked=bool(blockers_in(findings, asked.policy) or observation.unanswered),
        findings=findings,
        rolls=rolls,
        nodes=nodes,
        restarts={node.name: node.restarts for node in nodes},
        irreversible=irreversible,
        gates=tuple(dict.fromkeys(point.gate for point in irreversible)),
        controllerless_seconds=WINDOW_SECONDS + FLUSH_SECONDS,
        estimate=estimate_of(rolls, asked.measured, copy_seconds(phase_of(situation), asked.rehearsal) if rolls else None),
        not_migrated=NOT_MIGRATED,
        changes_for_people=(*CHANGES_FOR_PEOPLE, *changes_here(observation.survey, findings)),
        basis=basis,
        rehearsal=asked.rehearsal,
        unknown=tuple(f"{part.what}: {part.why}" for part in observation.unanswered),
        canaries=announced(asked.policy, spec),
        plan_hash=_hash(spec, asked, findings, nodes, basis),
    )


def why_not_rehearsed(observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> str | None:
    """The phase in which no copy is to come any more; `None` where it still is, or nobody knows."""
    phase = phase_of(situation_of(observation, spec, policy))
    return phase if phase in COPY_BEGUN else None


def _is_silent(observation: Observation, situation: Situation) -> bool:
    """Nothing of the cluster answers: what there is to do nobody can say."""
    is_none_running = all(broker.mode in {BrokerMode.UNKNOWN, BrokerMode.DOWN} for broker in situation.brokers)
    return observation.zookeeper is None and observation.kafka is None and is_none_running


def findings_of(observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> tuple[Finding, ...]:
    """Of all checks that still say something where the cluster is; the gravest first."""
    situation = situation_of(observation, spec, policy)
    phase = phase_of(situation)
    if phase not in BEFORE_BROKERS:
        return edits_in_flight(situation, observation, spec)
    met = MET_BY_CONTROLLERS if phase is Phase.CONTROLLERS_UP else frozenset()
    found = [finding for finding in preflight(observation, spec, policy) if finding.code not in met]
    return _gravest_first(found)


def _gravest_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """What is accepted comes after what blocks."""
    return tuple(sorted(findings, key=lambda f: (GRAVEST_FIRST.index(f.severity), f.accepted is not None, f.code)))


def _found_by(asked: Asked) -> tuple[Finding, ...]:
    rehearsal = asked.rehearsal
    if rehearsal is None:
        return () if asked.is_copied_in is None else (too_late(asked.is_copied_in),)
    return (not_made(rehearsal.refused),) if rehearsal.refused else rehearsal.findings


def rolls_of(
    situation: Situation, observation: Observation, spec: ClusterSpec, policy: MigrationPolicy
) -> tuple[PlannedRoll, ...]:
    """What is left of the way: controllers are started, brokers rolled twice, controllers rolled once."""
    to_start = [c for c in situation.controllers if c.mode is ControllerMode.ABSENT]
    to_finalize = [c for c in situation.controllers if c.mode is not ControllerMode.FINAL]
    hybrid, kraft = (
        _told(planned_waves(stage, observation, spec, policy), spec) for stage in (NodeStage.MIGRATION, NodeStage.KRAFT)
    )
    rolls = (
        PlannedRoll(what="Start the controllers", stage=NodeStage.MIGRATION, waves=_all_together(to_start, spec)),
        PlannedRoll(what="Roll 1: brokers into hybrid mode", stage=NodeStage.MIGRATION, waves=hybrid),
        PlannedRoll(what="Roll 2: brokers into KRaft mode", stage=NodeStage.KRAFT, waves=kraft),
        PlannedRoll(what="Finalize: controllers without ZooKeeper", stage=NodeStage.KRAFT, waves=_last(to_finalize, spec)),
    )
    return tuple(roll for roll in rolls if roll.waves)


def _all_together(controllers: Iterable[ControllerSituation], spec: ClusterSpec) -> tuple[PlannedWave, ...]:
    names = tuple(spec.node_name(c.id) for c in controllers)
    return (PlannedWave(nodes=names, reason=TOGETHER),) if names else ()


def _told(waves: Iterable[Wave], spec: ClusterSpec) -> tuple[PlannedWave, ...]:
    return tuple(
        PlannedWave(
            nodes=tuple(spec.node_name(node_id) for node_id in wave.node_ids),
            reason=wave.reason,
            cannot_spare=wave.cannot_spare,
            without=wave.without,
        )
        for wave in waves
    )


def _last(controllers: Sequence[ControllerSituation], spec: ClusterSpec) -> tuple[PlannedWave, ...]:
    """Standbys first. Who leads then nobody knows today."""
    ordered = sorted(controllers, key=lambda controller: controller.is_leader)
    return tuple(PlannedWave(nodes=(spec.node_name(c.id),), reason=LEADER if c is ordered[-1] else STANDBY) for c in ordered)


def _node(node: NodeSpec, spec: ClusterSpec, files: Files, rolls: Sequence[PlannedRoll]) -> PlannedNode:
    name, role = spec.node_name(node.id), spec.role(node.id)
    goes = [roll for roll in rolls if any(name in wave.nodes for wave in roll.waves)]
    is_created = role is Role.CONTROLLER and any(roll.stage == NodeStage.MIGRATION for roll in goes)
    texts = _texts(node, spec, files, [NodeStage(roll.stage) for roll in goes])
    current, base = (files[node.id].current, files[node.id].base) if node.id in files else (None, None)
    return PlannedNode(
        name=name,
        role=role,
        path=node.properties_file,
        restarts=len(goes) - is_created,
        files=_files(current, texts),
        configuration_management=planned(node, is_written=bool(goes)),
        dropped=dropped_keys(base, texts) if is_created and texts and base is not None else (),
    )


def _texts(node: NodeSpec, spec: ClusterSpec, files: Files, stages: Sequence[NodeStage]) -> dict[NodeStage, str]:
    """Every text that will be written. Empty where the file could not be read."""
    found: dict[NodeStage, str] = {}
    text = files[node.id].current if node.id in files else None
    for stage in stages:
        try:
            text = _text_at(node, spec, files, text, stage)
        except Malformed:  # A finding says so.
            return {}
        if text is None:
            return {}
        found[stage] = text
    return found


def _files(current: str | None, texts: Mapping[NodeStage, str]) -> tuple[FileAtStage, ...]:
    """Each with the difference to the one before."""
    before = [current or "", *texts.values()]
    return tuple(
        FileAtStage(stage=stage, sha256=hashlib.sha256(text.encode(ENCODING)).hexdigest(), diff=unified(old, text))
        for old, (stage, text) in zip(before, texts.items(), strict=False)
    )


def _text_at(node: NodeSpec, spec: ClusterSpec, files: Files, text: str | None, stage: NodeStage) -> str | None:
    """As the roll will make it: a controller's first file from the first broker's."""
    if text is not None:
        return node_file(text, spec, node, stage)
    source = files.get(spec.brokers[0].id)
    if not isinstance(node, ControllerSpec) or node.id not in files or source is None or source.current is None:
        return None
    return controller_file(spec, node, files[node.id].base, source.original or source.current)


def _hash(
    spec: ClusterSpec,
    asked: Asked,
    findings: Sequence[Finding],
    nodes: Sequence[PlannedNode],
    basis: Mapping[str, str],
) -> str:
    """Of what is material: what would be written, what was found and lasts, what it rests on. Neither times nor estimates."""
    return hash_of(
        {
            "cluster_id": spec.cluster_id,
            "kind": asked.kind,
            "policy": asked.policy.model_dump(mode="json"),
            "basis": dict(basis),
            "findings": [f"{finding.code} {finding.object}" for finding in findings if not finding.is_momentary],
            "files": {node.name: [file.sha256 for file in node.files] for node in nodes},
        }
    )
