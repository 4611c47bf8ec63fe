"""GF14, the drift watch: files, versions and processes of nodes that this migration has changed, compared at every look.

What keeps a migration from going on is a wait (`file-changed`, `controller-lost-its-flag`). This is about what does not, and
what somebody should know all the same: an edit that leaves our keys alone, a node of another Kafka version, a restart that was
not ours.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import PurePosixPath

from domain.cluster import ClusterSpec, Role
from domain.diagnosis.blocker import Blocker, blocker
from domain.diagnosis.causes.case import Cause
from domain.health.files import is_file_ours
from domain.observed.observation import NodeView, Observation, RollMark
from domain.rolling.own_file import whose_else
from domain.zk_to_kraft.causes.case import MigrationCase
from domain.zk_to_kraft.modes import stage_of_disk
from domain.zk_to_kraft.situation import QuorumState
from domain.zk_to_kraft.steps import NodeStage

GF14 = "GF14"
EDITED = (
    "Undo the edit, or stop the configuration management that makes it. If the node was restarted since, the edit is in "
    "force and may be the cause of other entries: check it first. On the way forward the edit is kept, and the broker's "
    "next restart waits until it is undone or in force (PF44). A rollback loses it (see its preview)."
)
NOT_ITS_OWN = (
    "It is another node's file. Restore its own, as this migration left it (`changes` of the node's last step-done event), "
    "and stop what wrote it. {} does not survive a restart with it; this migration does not stop it before that."
)


def drifts(observation: Observation, spec: ClusterSpec, since: datetime) -> tuple[Blocker, ...]:
    """All that has moved under us. Only what can be told for certain: what did not answer is a wait of its own."""
    found = [*_edits(observation, spec, since), *_versions(observation, spec, since), *_restarts(observation, spec, since)]
    return tuple(sorted(found, key=lambda drift: drift.object))


def drift_causes(case: MigrationCase) -> Iterator[Cause]:
    """What lasts until somebody mends it. A restart is over when it is seen: it is an event, and no entry."""
    now = case.observation.ended_at
    edits, versions = _edits(case.observation, case.spec, now), _versions(case.observation, case.spec, now)
    for found in (*edits, *versions, *_originals(case, now)):
        yield Cause(found.model_copy(update={"since": case.since(found.code, found.object, frozenset())}))


def _mark(view: NodeView) -> RollMark | None:
    """Of a roll that has come to its end: while one is under way files and processes differ, as they should."""
    return view.mark if view.mark is not None and view.mark.is_proven else None


def _edits(observation: Observation, spec: ClusterSpec, since: datetime) -> Iterator[Blocker]:
    for view in observation.nodes:
        mark = _mark(view)
        is_waited_for = stage_of_disk(view.disk, spec.role(view.id)) is None
        if mark is None or view.disk is None or view.disk.file is None or is_file_ours(view.disk) or is_waited_for:
            continue
        name, node = spec.node_name(view.id), spec.node(view.id)
        others = whose_else(spec, node, view.disk.file.properties)
        has = f", and has {others}" if others is not None else ""
        yield blocker(
            GF14,
            f"file of {name}",
            observed=f"{node.properties_file} was edited since this migration wrote it{has}: "
            f"sha256 {view.disk.file.sha256[:12]}…",
            expected=f"as this migration left it: sha256 {mark.written_sha256[:12]}…",
            fix=NOT_ITS_OWN.format(name) if others is not None else EDITED,
            since=since,
        )


def _originals(case: MigrationCase, since: datetime) -> Iterator[Blocker]:
    """Of brokers that we have rolled: only those that somebody else began with need not have one."""
    has_a_way_back = case.situation.quorum is not QuorumState.POST_MIGRATION
    for node in case.spec.brokers if has_a_way_back else ():
        name, disk = case.name(node.id), case.observation.node(node.id).disk
        file = disk.file if disk is not None else None
        is_rolled = name in case.rolled and stage_of_disk(disk, Role.BROKER) in {NodeStage.MIGRATION, NodeStage.KRAFT}
        if file is None or not is_rolled or name in case.in_hand or file.original_sha256 is not None:
            continue
        folder = PurePosixPath(node.properties_file).parent / ".keeperless"
        named = file.mark.original_sha256 if file.mark is not None else None
        yield blocker(
            GF14,
            f"original of {name}",
            observed=f"its properties file from before the migration is not in {folder}, or differs from what was kept there",
            expected="the file that a rollback restores" + (f": sha256 {named[:12]}…" if named is not None else ""),
            fix="Restore that directory from a backup. Without it a rollback removes the migration's lines one by one: GET "
            f"/migrations/{{id}}/rollback-preview shows the file that {name} would get. The migration does not wait for "
            "it.",
            since=since,
        )


def _versions(observation: Observation, spec: ClusterSpec, since: datetime) -> Iterator[Blocker]:
    """The version that most nodes run is the cluster's; of two equally many the older one."""
    versions = {v.id: v.metrics.kafka_version for v in observation.nodes if v.metrics is not None and v.metrics.kafka_version}
    if len(set(versions.values())) < 2:
        return
    counts = Counter(versions.values())
    usual = min(counts, key=lambda version: (-counts[version], version or ""))
    for node_id, version in versions.items():
        if version != usual:
            yield blocker(
                GF14,
                f"version of {spec.node_name(node_id)}",
                observed=f"it runs Kafka {version}",
                expected=f"Kafka {usual}, like the others",
                fix="Restore the version and restart that node, or roll back first. Do not upgrade during a migration.",
                since=since,
            )


def _restarts(observation: Observation, spec: ClusterSpec, since: datetime) -> Iterator[Blocker]:
    for view in observation.nodes:
        mark, process = _mark(view), view.process
        if mark is None or mark.proven_identity is None or process is None or not process.is_running:
            continue
        if process.identity != mark.proven_identity:
            yield blocker(
                GF14,
                f"process of {spec.node_name(view.id)}",
                observed=f"it was restarted from outside the migration: {process.identity} runs",
                expected=f"the process that this migration proved: {mark.proven_identity}",
                fix="Find out what restarts it, and why: a supervisor, configuration management, a crash. The migration "
                "does not wait for it.",
                since=since,
            )
