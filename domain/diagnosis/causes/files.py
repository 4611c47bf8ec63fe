"""A node's directories that are empty, not there, or another node's. Pure."""

from collections.abc import Iterator

from domain.checks.check import some
from domain.cluster import Role
from domain.diagnosis.causes.case import Case, Cause
from domain.observed.observation import NodeView, StorageState

NO_VOLUME = (
    "Check whether the volume is mounted (`findmnt`), mount it, then restart the broker. It runs, and its "
    "data is not there. Write no meta.properties there meanwhile: it would start without its data."
)
EMPTY_OR_ABSENT = {StorageState.EMPTY: "is empty", StorageState.ABSENT: "is not there"}
NOT_WITHOUT_DATA = (
    "Do not start it as it is: its data is not where it was. Check whether the volume is mounted (`findmnt`, "
    "/etc/fstab, `systemctl --failed`), and mount it. Format nothing, and write no meta.properties there: it "
    "would start without its data. Only if the data is gone for good may the node start empty: a broker when "
    "every partition of it is in sync elsewhere, a controller when all others are caught up. Then: "
)
UNCOVER = (
    "Unmount that (`umount {path}`, if no process has it open) while {name} runs, and remove it from "
    "/etc/fstab or from what mounts it: all its data is beneath. Format nothing there, and restart {name} "
    "only after that."
)
OTHER_CLUSTER = (
    "Touch none of these files, and restart nothing: the nodes agree, so the specification is of another cluster, or has a "
    "wrong id. Terminate this migration's run in Temporal, correct the specification (PUT /clusters/{name}), and start a "
    "migration "
    'with "hold": true: it looks where the cluster stands before it does anything.'
)


def storage_causes(case: Case, view: NodeView) -> Iterator[Cause]:
    """A directory that is not this node's any more: it serves on, and does not survive its next restart (PF03)."""
    dirs = view.disk.log_dirs if view.disk is not None else ()
    if (other := case.cluster_of_all) is not None:
        yield case.cause(
            "PF03",
            "cluster_id of the specification",
            observed=f"{case.spec.cluster_id}; the log directories of all nodes say {other}",
            expected="the id of the cluster that these nodes are of",
            fix=OTHER_CLUSTER,
        )
        return
    for found in (one for one in dirs if one.state is not StorageState.OURS):
        name, told = case.name(view.id), f"cluster.id {found.cluster_id}, id {found.node_id}"
        is_gone = found.state in EMPTY_OR_ABSENT
        if is_gone and (found.is_fenced or (case.spec.role(view.id) is Role.CONTROLLER and len(dirs) > 1)):
            continue
        gone = NO_VOLUME if case.spec.role(view.id) is Role.BROKER else _reformatted(case, view)
        observed = f"{found.state}: its meta.properties says {told}" if found.cluster_id else f"{found.state}"
        signs = case.hints.signs.get(name)
        if (above := dict(signs.covered).get(found.path) if signs is not None else None) is not None:
            observed += f". {name} runs on its files, which lie beneath what was mounted over them since: {above}"
            is_gone, gone = True, UNCOVER.format(path=found.path, name=name)
        yield case.cause(
            "PF03",
            f"{name} {found.path}",
            observed=observed,
            expected=f"formatted for cluster {case.spec.cluster_id} and {name}",
            fix=gone
            if is_gone
            else f"Restore meta.properties in {found.path} before {name} restarts: it would not start with another.",
        )


def without_data(case: Case, view: NodeView) -> str:
    """Of a node that is down: which directories of its data have nothing in them, in words. Of a controller one is enough."""
    dirs = view.disk.log_dirs if view.disk is not None else ()
    gone = [found for found in dirs if found.state in EMPTY_OR_ABSENT and not found.is_fenced]
    is_spared = case.spec.role(view.id) is Role.CONTROLLER and len(gone) < len(dirs)
    return "" if is_spared else some([f"{found.path} {EMPTY_OR_ABSENT[found.state]}" for found in gone])


def _reformatted(case: Case, view: NodeView) -> str:
    """Of a controller that runs on what is not there any more: the others have all that it had (seen with 3.9)."""
    name, node = case.name(view.id), case.spec.node(view.id)
    return (
        f"{name} runs on files that are deleted. Look whether the volume is mounted. If its data is gone, and every other "
        f"controller is caught up: kill -9 its process, `kafka-storage.sh format --cluster-id {case.spec.cluster_id} "
        f"--config {node.properties_file}`, and start it: it fetches the log from the leader. One controller at a time."
    )
