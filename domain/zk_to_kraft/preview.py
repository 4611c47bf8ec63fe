"""What a rollback would do from here, told before it is done: steps, restarts, losses, and what becomes of each file.

A preview can be consented to, so its hash covers what is material and nothing that moves by itself: a roll that goes on, an
offset, or another look changes it as little as the weather.
"""

import hashlib
from collections.abc import Iterator, Sequence

from domain.cluster import ClusterSpec, Role
from domain.configuration.file_changes import changes
from domain.configuration.properties import ENCODING, parse
from domain.drift.report import DriftReport
from domain.evidence import hash_of
from domain.observed.observation import Observation, Suspect
from domain.policy import MigrationPolicy
from domain.questions import FileRestoration, Loss, PreviewStep, RollbackPreview
from domain.rolling.change import Files, Making, Sources, WantedFile
from domain.zk_to_kraft.failed_elections import MEND_FEATURE
from domain.zk_to_kraft.guards import (
    ahead,
    controllers_to_start,
    has_remains,
    in_mode,
    is_any_broker_alive,
    is_back,
    is_emergency,
    is_quorum_needed,
    is_quorum_over,
    may_finalize_by_itself,
)
from domain.zk_to_kraft.losses import drift_of, losses_of, never_written, topics_losing_ids
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.other_clusters import why_not_removed
from domain.zk_to_kraft.phases import phase_of
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.situation import BrokerSituation, Claim, ControllerSituation, DualWrite, QuorumState, Situation
from domain.zk_to_kraft.steps import NodeStage
from domain.zk_to_kraft.wanted_file import wanted_file

WINDOW_SECONDS = 0.2
"""Kill, one ZooKeeper transaction, a broker's election: 0.15 s were measured (proven-facts, section 5)."""

FLUSH_SECONDS = 5.0
"""More, where controllers must be started again to flush what ZooKeeper lacks: 4.9 s were measured."""


def preview_of(
    observation: Observation,
    spec: ClusterSpec,
    policy: MigrationPolicy,
    files: Files,
    reports: Sequence[DriftReport] = (),
    unelectable: Sequence[Suspect] = (),
    strays: Sequence[Suspect] = (),
    refused: str = "",
) -> RollbackPreview:
    """The way back as it would be taken from what was seen. Pure. `reports`: the newest comparisons of ZooKeeper with KRaft.
    `unelectable`: znodes that would keep every broker from being the controller. `strays`: what ZooKeeper cannot hold.
    `refused`: what the active controller has said of a change that it could not write there; empty for nothing.

    Where nothing was touched it has no step and loses nothing: it only ends the migration.
    """
    situation = situation_of(observation, spec, policy)
    why_not = why_no_way_back(observation, situation, spec)
    is_empty = not why_not and not has_something_to_undo(situation)
    losses = () if is_empty else losses_of(observation, situation, spec, reports, strays, refused)
    steps = () if why_not else steps_of(situation, spec)
    restarting = [step.node for step in steps if step.restarts and step.node is not None]
    return RollbackPreview(
        cluster=spec.name,
        observed_at=observation.ended_at,
        phase=phase_of(situation),
        is_possible=not why_not,
        why_not=why_not,
        steps=steps,
        restarts={name: restarting.count(name) for name in dict.fromkeys(restarting)},
        controllerless_seconds=_controllerless_seconds(situation) if steps else 0.0,
        losses=losses,
        obstacles=tuple(_obstacles(observation, situation, spec, unelectable)) if steps else (),
        files=() if is_empty else restorations_of(spec, files),
        unknown=tuple(part.what for part in observation.unanswered),
        preview_hash=_hash(
            observation,
            spec,
            losses,
            files,
            drift_of(observation, reports),
            never_written(strays),
            topics_losing_ids(observation, situation),
        ),
    )


def why_no_way_back(observation: Observation, situation: Situation, spec: ClusterSpec) -> str:
    """Why a rollback cannot be taken, or not be judged, now; empty when it can."""
    if situation.quorum is QuorumState.POST_MIGRATION:
        return (
            "The quorum's log says that the migration is final (POST_MIGRATION). ZooKeeper has not been written since, so a "
            "rollback is no longer possible. Continue forward."
        )
    if situation.claim is Claim.UNKNOWN:
        return "ZooKeeper does not answer, and a rollback needs it. Restore access to it, then ask for the preview again."
    silent = [spec.node_name(node_id) for node_id in in_mode(situation, BrokerMode.UNKNOWN, ControllerMode.UNKNOWN)]
    if silent:
        whys = "; ".join(f"{part.what}: {part.why}" for part in observation.unanswered)
        return (
            f"The state of {', '.join(silent)} is unknown ({whys}). Restore access to it, or put an empty machine in the "
            "place of a host that is lost for good (docs/rollback.md). Then ask for the preview again."
        )
    made = frozenset(c.id for c in situation.controllers if c.mode is not ControllerMode.ABSENT)
    return why_not_removed(observation, spec, made)


def has_something_to_undo(s: Situation) -> bool:
    return s.is_release_due or _has_something_but_a_release(s)


def _has_something_but_a_release(s: Situation) -> bool:
    return has_remains(s) or s.has_migration_znode or s.claim is not Claim.ZOOKEEPER or not all(map(is_back, s.brokers))


def flags_to_give_back(s: Situation) -> tuple[ControllerSituation, ...]:
    """Controllers without the migration flag, as long as the quorum may have to live: one election makes it final."""
    must_live = not is_emergency(s) and is_quorum_needed(s)
    lost = [c for c in s.controllers if may_finalize_by_itself(c, s.claim)] if must_live else []
    return tuple(sorted(lost, key=lambda c: (c.mode is not ControllerMode.FINAL, c.is_leader, c.id)))


def is_window_over(s: Situation) -> bool:
    """Where no broker lives nobody can be controller: the first that is started will be."""
    is_given_back = s.claim is Claim.ZOOKEEPER or (s.claim is Claim.NOBODY and not is_any_broker_alive(s))
    return is_quorum_over(s) and is_given_back and not ahead(s)


def brokers_to_hybrid(s: Situation) -> tuple[BrokerSituation, ...]:
    """Roll A."""
    needing = ahead(s)
    rolled = [b for b in s.brokers if b in needing or b.mode is BrokerMode.INTERRUPTED] if needing else []
    return tuple(sorted(rolled, key=_stopped_first))


def brokers_to_zookeeper(s: Situation) -> tuple[BrokerSituation, ...]:
    """Roll B. The ZooKeeper controller comes last."""
    outside = [b for b in s.brokers if not is_back(b)]
    if brokers_to_hybrid(s):
        return tuple(outside)
    return tuple(sorted(outside, key=lambda b: (_stopped_first(b), b.is_zookeeper_controller and _stopped_first(b) == RUNNING)))


RUNNING = 2


def _stopped_first(broker: BrokerSituation) -> int:
    """What is stopped is finished first, whoever stopped it; but one that is down in plain ZooKeeper mode can wait."""
    if broker.mode is BrokerMode.INTERRUPTED:
        return 0
    return 1 if broker.mode is BrokerMode.DOWN and broker.stage is not NodeStage.ZOOKEEPER else RUNNING


def steps_of(s: Situation, spec: ClusterSpec) -> tuple[PreviewStep, ...]:
    """The way back in words, in its order."""
    release = [PreviewStep(what="Resume the configuration management that was paused")] if s.is_release_due else []
    if not _has_something_but_a_release(s):
        return tuple(release)
    window = "Stop the KRaft controllers for good, and return /controller to ZooKeeper"
    steps = [_step(spec, c.id, "gets its migration flag back") for c in flags_to_give_back(s)]
    steps += [_start(spec, c.id) for c in controllers_to_start(s)]
    steps += [_step(spec, b.id, "goes back to hybrid mode, with the migration flag kept") for b in brokers_to_hybrid(s)]
    steps += [] if is_window_over(s) else [PreviewStep(what=f"{window}{_expectation(s)}")]
    steps += [_step(spec, b.id, "goes back to ZooKeeper mode, with its original file") for b in brokers_to_zookeeper(s)]
    wipe = PreviewStep(what="Remove the controllers' storage, and the brokers' copies of the quorum's log")
    return (*steps, wipe, *release)


def _step(spec: ClusterSpec, node_id: int, what: str) -> PreviewStep:
    name = spec.node_name(node_id)
    return PreviewStep(what=f"{name} {what}", node=name, restarts=True)


def _start(spec: ClusterSpec, node_id: int) -> PreviewStep:
    name = spec.node_name(node_id)
    return PreviewStep(what=f"{name} is started: brokers in KRaft mode need the quorum", node=name)


def _expectation(s: Situation) -> str:
    seconds = _controllerless_seconds(s)
    return f"; expected, as measured: {seconds:g} s without any controller" if seconds else ""


def _obstacles(observation: Observation, s: Situation, spec: ClusterSpec, unelectable: Sequence[Suspect]) -> Iterator[str]:
    """What is to be mended before the way back is asked for."""
    for suspect in unelectable if _controllerless_seconds(s) else ():
        yield f"KRaft is not left while {suspect.what} cannot be read: {suspect.why}. {MEND_FEATURE}"
    known, listed = {b.id for b in spec.brokers}, observation.kafka.broker_ids if observation.kafka is not None else ()
    for broker_id in sorted({*listed} - known):
        yield (
            f"broker {broker_id} is registered but is not in the cluster's specification. The rollback waits until it is "
            "gone, and partitions whose only replica is there are lost. Reassign its replicas to other brokers, stop it, "
            "and unregister it."
        )
    for broker_id in in_mode(s, BrokerMode.DOWN):
        yield (
            f"{spec.node_name(broker_id)} does not run. The rollback can leave KRaft without it, and its partitions then "
            "lack a replica until it runs. Start it first if you can."
        )


def _controllerless_seconds(s: Situation) -> float:
    """None while a broker is the controller: then the KRaft controllers' end is no change."""
    if s.claim is Claim.ZOOKEEPER:
        return 0.0
    is_behind = s.quorum is QuorumState.MIGRATION and s.dual_write is not DualWrite.CURRENT
    return WINDOW_SECONDS + FLUSH_SECONDS if is_behind else WINDOW_SECONDS


def sources_of(node_id: int, spec: ClusterSpec, files: Files) -> Sources | None:
    """What a node's file can be made from; `None` where it has none, or could not be read."""
    file = files.get(node_id)
    if file is None or file.current is None:
        return None
    return Sources(current=file.current, original=file.original, sibling=_sibling(node_id, spec, files))


def _sibling(node_id: int, spec: ClusterSpec, files: Files) -> str | None:
    """Another broker's file from a time when it had ZooKeeper."""
    others = [files[b.id] for b in spec.brokers if b.id != node_id and b.id in files]
    texts = [text for file in others for text in (file.original, file.current) if text is not None]
    return next((text for text in texts if "zookeeper.connect" in parse(text)), None)


def wanted_back(node_id: int, spec: ClusterSpec, files: Files, stage: NodeStage) -> WantedFile | None:
    """A node's file at a stage of the way back."""
    sources = sources_of(node_id, spec, files)
    return None if sources is None else wanted_file(sources, spec, spec.node(node_id), stage)


def restorations_of(spec: ClusterSpec, files: Files) -> tuple[FileRestoration, ...]:
    """Every file that will not be what it is now."""
    found = [_restoration(node_id, spec, files) for node_id in files]
    return tuple(restoration for restoration in found if restoration is not None)


def _restoration(node_id: int, spec: ClusterSpec, files: Files) -> FileRestoration | None:
    current, name, path = files[node_id].current, spec.node_name(node_id), spec.node(node_id).properties_file
    if current is None:
        return None
    if spec.role(node_id) is Role.CONTROLLER:
        return FileRestoration(node=name, path=path, how="removed", sha256=None, changes=changes(current, ""))
    wanted = wanted_back(node_id, spec, files, NodeStage.ZOOKEEPER)
    if wanted is None or wanted.text == current:
        return None
    how = "archive" if wanted.making is Making.ARCHIVE else "inverse-edit"
    return FileRestoration(node=name, path=path, how=how, sha256=_sha256(wanted.text), changes=changes(current, wanted.text))


def _hash(
    observation: Observation,
    spec: ClusterSpec,
    losses: tuple[Loss, ...],
    files: Files,
    drift: DriftReport | None,
    lost: tuple[str, ...],
    lacking: tuple[str, ...],
) -> str:
    """Every broker's file counts as it will be in the end, changed or not: so a roll that goes on changes nothing here.

    Of a drift what was found counts, what ZooKeeper has never got, and topics without an id: who accepts one has not accepted
    the next.
    """
    ends = {b.id: wanted_back(b.id, spec, files, NodeStage.ZOOKEEPER) for b in spec.brokers}
    return hash_of(
        {
            "cluster_id": spec.cluster_id,
            "spec_revision": observation.spec_revision,
            "losses": sorted(loss.name for loss in losses),
            "drift": drift.content_hash if drift is not None else None,
            **({"never_written": lost} if lost else {}),
            **({"topics_without_id": lacking} if lacking else {}),
            "files": {spec.node_name(i): _sha256(end.text) if end is not None else None for i, end in ends.items()},
        }
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(ENCODING)).hexdigest()
