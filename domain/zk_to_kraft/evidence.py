"""What an approval binds to. Its hash is the same for all who approve the same."""

from typing import Any

from domain.cluster import ClusterSpec
from domain.observed.observation import Observation
from domain.policy import MigrationPolicy
from domain.rulings import NOTHING_RULED, Ruling
from domain.zk_to_kraft.comparison import (
    CopyReports,
    evidence_of_report,
    newest_of,
)
from domain.zk_to_kraft.node_config import MIGRATION_FLAG
from domain.zk_to_kraft.phases import phase_of
from domain.zk_to_kraft.situation import Situation

NO_BASELINE = "nothing to compare with"
"""What evidence says of clients' data where it was not looked at before the first broker was restarted, and of Kafka's copy
where ZooKeeper's metadata was not kept before it."""


def evidence_of(
    observation: Observation,
    spec: ClusterSpec,
    policy: MigrationPolicy,
    situation: Situation,
    ruling: Ruling = NOTHING_RULED,
) -> dict[str, Any]:
    """What an approval binds to: only what is material, so never offsets, times or counts.

    Controllers are told by their files and modes until finalisation; the approval is consumed before the first changes.
    How old the newest comparison in this dual write is, is no evidence, but a condition of the gate. `drifts`, which only
    grows: two clean reports say the same, and who approved the first knew nothing of a drift that was repaired between them.
    """
    claim = observation.zookeeper.controller if observation.zookeeper is not None else None
    return {
        "cluster": spec.name,
        "cluster_id": spec.cluster_id,
        "spec_revision": observation.spec_revision,
        "policy": policy.model_dump(mode="json"),
        "phase": phase_of(situation),
        "quorum": situation.quorum,
        "claim": {"by": situation.claim, "epoch": claim.kraft_epoch if claim is not None else None},
        "guards": {
            "dual_write": situation.dual_write,
            "registration": situation.registration,
            "replication": situation.replication,
        },
        "report": evidence_of_report(newest_of(ruling.reports, observation.zookeeper)),
        "drifts_found": ruling.drifts,
        "copy": evidence_of_report(newest) if (newest := CopyReports.of(ruling.of_copy).newest) is not None else NO_BASELINE,
        "messages": evidence_of_report(ruling.messages) if ruling.has_baseline else NO_BASELINE,
        "nodes": {
            spec.node_name(node.id): {
                "mode": node.mode,
                "stage": node.stage,
                "file": _file_hash(observation, node.id),
                "flag": _flag(observation, node.id),
            }
            for node in situation.nodes
        },
    }


def _file_hash(observation: Observation, node_id: int) -> str | None:
    disk = observation.node(node_id).disk
    return disk.file.sha256 if disk is not None and disk.file is not None else None


def _flag(observation: Observation, node_id: int) -> str | None:
    disk = observation.node(node_id).disk
    return disk.file.properties.get(MIGRATION_FLAG) if disk is not None and disk.file is not None else None
