"""Of a node's properties file and of its directories: changed by others, or not its own any more."""

from collections.abc import Iterator
from hashlib import sha256

from domain.checks.seen import some
from domain.cluster import Role
from domain.observed.observation import NodeView, PropertiesFile, StorageState
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.case import Cause, Looked, cause
from domain.zk_to_kraft.guards import is_edited, may_finalize_by_itself
from domain.zk_to_kraft.modes import ControllerMode
from domain.zk_to_kraft.pending_restart import edit_of
from domain.zk_to_kraft.phases import Phase, phase_of
from domain.zk_to_kraft.situation import BrokerSituation, ControllerSituation, QuorumState
from domain.zk_to_kraft.waits import ZkWait

EMPTY = sha256(b"").hexdigest()
UNTOUCHED = "the file as it was when the migration began"
ORIGINAL = "Its original lies beside it in .keeperless, if it has been changed by this migration."
WRITE_AGAIN = (
    "It is not overwritten. Put back what this migration wrote, or ask for a rollback; `changes` of the node's last step-done "
    "event says what that was, against its original, which lies beside it in .keeperless."
)
NO_VOLUME = (
    "The broker runs, and its data is not there: look whether the volume is mounted (`findmnt`), and mount it, then restart "
    "the broker. Put no meta.properties there meanwhile: it would start without its data."
)
GONE = {StorageState.EMPTY: "is empty", StorageState.ABSENT: "is not there"}
NOT_WITHOUT_DATA = (
    "Do not start it as it is: its data is not where it was. Look whether the volume is mounted (`findmnt`, /etc/fstab, "
    "`systemctl --failed`), and mount it; format nothing, and put no meta.properties there: it would start without its data. "
    "Only where that is gone for good does it begin anew: a broker once every partition of it is in sync elsewhere, a "
    "controller once all others are caught up. Then: "
)
UNCOVER = (
    "Unmount that (`umount {path}`, where nothing has it open) while {name} runs, and take it out of /etc/fstab or of whatever "
    "mounts it: all its data is beneath. Format nothing there, and restart {name} only after that."
)
OTHER_CLUSTER = (
    "Touch none of these files, and restart nothing: the nodes agree, so the specification is of another cluster, or has a "
    "wrong id. Terminate this migration's run in Temporal, correct the specification (PUT /clusters/{name}), and start a "
    "migration "
    'with "hold": true: it looks where the cluster stands before it does anything.'
)
ENDING = frozenset({Phase.FINALIZING, Phase.KRAFT, Phase.FINALIZED_EARLY})
"""Phases in which a controller without the flag is what is wanted, or can be mended no more."""


def storage_causes(looked: Looked, view: NodeView) -> Iterator[Cause]:
    """A directory that is not this node's any more: it serves on, and does not survive its next restart (PF03)."""
    dirs = view.disk.log_dirs if view.disk is not None else ()
    if (other := looked.cluster_of_all) is not None:
        yield cause(
            looked,
            "PF03",
            "cluster_id of the specification",
            observed=f"{looked.spec.cluster_id}; the log directories of all nodes say {other}",
            expected="the id of the cluster that these nodes are of",
            fix=OTHER_CLUSTER,
        )
        return
    for found in (one for one in dirs if one.state is not StorageState.OURS):
        name, told = looked.name(view.id), f"cluster.id {found.cluster_id}, id {found.node_id}"
        is_gone = found.state in GONE
        if is_gone and (found.is_fenced or (looked.spec.role(view.id) is Role.CONTROLLER and len(dirs) > 1)):
            continue
        gone = NO_VOLUME if looked.spec.role(view.id) is Role.BROKER else _reformatted(looked, view)
        observed = f"{found.state}: its meta.properties says {told}" if found.cluster_id else f"{found.state}"
        signs = looked.hints.signs.get(name)
        if (above := dict(signs.covered).get(found.path) if signs is not None else None) is not None:
            observed += f". {name} runs on its files, which lie beneath what was mounted over them since: {above}"
            is_gone, gone = True, UNCOVER.format(path=found.path, name=name)
        yield cause(
            looked,
            "PF03",
            f"{name} {found.path}",
            observed=observed,
            expected=f"formatted for cluster {looked.spec.cluster_id} and {name}",
            fix=gone
            if is_gone
            else f"Restore meta.properties in {found.path} before {name} restarts: it would not start with another.",
        )


def without_data(looked: Looked, view: NodeView) -> str:
    """Of a node that is down: which directories of its data have nothing in them, in words. Of a controller one is enough."""
    dirs = view.disk.log_dirs if view.disk is not None else ()
    gone = [found for found in dirs if found.state in GONE and not found.is_fenced]
    is_spared = looked.spec.role(view.id) is Role.CONTROLLER and len(gone) < len(dirs)
    return "" if is_spared else some([f"{found.path} {GONE[found.state]}" for found in gone])


def _reformatted(looked: Looked, view: NodeView) -> str:
    """Of a controller that runs on what is not there any more: the others have all that it had (seen with 3.9)."""
    name, node = looked.name(view.id), looked.spec.node(view.id)
    return (
        f"{name} runs on files that are deleted. Look whether the volume is mounted. If its data is gone, and every other "
        f"controller is caught up: kill -9 its process, `kafka-storage.sh format --cluster-id {looked.spec.cluster_id} "
        f"--config {node.properties_file}`, and start it: it fetches the log from the leader. One controller at a time."
    )


def file_cause(looked: Looked, node: BrokerSituation | ControllerSituation) -> Iterator[Cause]:
    name = looked.name(node.id)
    if name in looked.in_hand:
        return
    path = looked.spec.node(node.id).properties_file
    disk = looked.observation.node(node.id).disk
    if _has_lost_flag(looked, node):
        runs = "runs without it" if node.mode is ControllerMode.FINAL else "would start without it"
        yield cause(
            looked,
            ZkWait.CONTROLLER_LOST_ITS_FLAG,
            name,
            observed=f"zookeeper.metadata.migration.enable is not in force: it {runs}",
            expected="every controller has the migration flag until finalize was approved",
            fix=f"Put zookeeper.metadata.migration.enable=true back into {path} and restart {name} now: if it becomes active, "
            "the migration is final.",
        )
    elif node.stage is None and disk is not None and node.mode is not ControllerMode.ABSENT:
        observed, expected, fix = _foreign(path, disk.file)
        yield cause(looked, WaitReason.FILE_CHANGED, name, observed=observed, expected=expected, fix=fix)
    elif isinstance(node, BrokerSituation) and node.stage is not None and is_edited(node):
        edit = edit_of(node, looked.observation, looked.spec, is_copied=looked.situation.is_copy_made)
        yield cause(looked, WaitReason.FILE_CHANGED, name, observed=edit.observed, expected=edit.expected, fix=edit.fix)


def _foreign(path: str, file: PropertiesFile | None) -> tuple[str, str, str]:
    """Of a file that fits no stage: what is seen of it, what would be right, and what to do."""
    mark = file.mark if file is not None else None
    if file is None:
        missing = f"{path} does not exist, or is a link to nothing"
        return missing, "the file is there, as it was", f"Restore the file, or what it links to. {ORIGINAL}"
    expected = UNTOUCHED if mark is None else "the file as this migration left it"
    is_empty, short = file.sha256 == EMPTY, f"sha256 {file.sha256[:12]}…"
    if mark is None:
        seen = "is empty" if is_empty else f"fits neither ZooKeeper mode nor a stage of the migration: {short}"
        observed = f"{path} {seen}. This migration has not written it: somebody else has changed it"
        again = "Restore it" if is_empty else "It is not overwritten. Undo that edit, or restore the file"
        return observed, expected, f"{again} from your configuration management or a backup. {ORIGINAL}"
    seen = "is empty: somebody else has emptied it" if is_empty else f"was changed by somebody else: {short}"
    return f"{path} {seen}, this migration left {mark.written_sha256[:12]}…", expected, WRITE_AGAIN


def _has_lost_flag(looked: Looked, node: BrokerSituation | ControllerSituation) -> bool:
    if not isinstance(node, ControllerSituation) or phase_of(looked.situation) in ENDING:
        return False
    is_final = looked.situation.quorum is QuorumState.POST_MIGRATION
    return not is_final and node.mode is not ControllerMode.UNKNOWN and may_finalize_by_itself(node, looked.situation.claim)
