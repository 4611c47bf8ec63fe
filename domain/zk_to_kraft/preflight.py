"""The preflight: what must be true before anything is touched. Each check is a function from what was seen to findings.

Asked only when every part answered: a check never passes because it could not look. Codes are stable; the numbers are
those of the catalogue in docs/checks.md.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from domain.cluster import ClusterSpec
from domain.decisions import Finding, NodeStage, Severity
from domain.observation import KafkaView, NodeDisk, Observation, StorageState, ZooKeeperView
from domain.policy import MigrationPolicy
from domain.zk_to_kraft.modes import BrokerMode, broker_mode
from domain.zk_to_kraft.node_config import AUTHORIZERS_IN_KRAFT, stage_of
from domain.zk_to_kraft.situation import partitions_needing

SUPPORTED_RELEASE = "3.9"
"""The release whose migration this product knows and was proven against, and the last one that has it."""


@dataclass(frozen=True)
class Seen:
    """A complete observation with what people told us: what every check gets."""

    spec: ClusterSpec
    policy: MigrationPolicy
    observation: Observation
    zookeeper: ZooKeeperView
    kafka: KafkaView

    def disk(self, node_id: int) -> NodeDisk:
        disk = self.observation.node(node_id).disk
        return disk if disk is not None else NodeDisk(file=None, log_dirs=())

    def properties(self, node_id: int) -> dict[str, str]:
        file = self.disk(node_id).file
        return file.properties if file is not None else {}

    def release_of(self, broker_id: int) -> str:
        """The broker's `inter.broker.protocol.version`, which is its release where the file has none."""
        return self.properties(broker_id).get("inter.broker.protocol.version", SUPPORTED_RELEASE).strip()


def preflight(observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> tuple[Finding, ...]:
    """All findings, in the order of their codes. Empty: nothing stands in the way.

    The observation must be complete: with an unanswered part nothing can be said, and `decide` waits instead.
    """
    if observation.zookeeper is None or observation.kafka is None or observation.unanswered:
        return ()
    seen = Seen(spec, policy, observation, observation.zookeeper, observation.kafka)
    return tuple(finding for check in CHECKS for finding in check(seen))


def blockers_in(findings: Iterable[Finding], policy: MigrationPolicy) -> tuple[Finding, ...]:
    """Those that keep a migration from starting: blockers that nobody has accepted."""
    return tuple(
        finding
        for finding in findings
        if finding.severity is Severity.BLOCKER
        and not any(accepted.covers(finding.code, finding.object) for accepted in policy.accepted_findings)
    )


def _versions(seen: Seen) -> Iterator[Finding]:
    for broker in seen.spec.brokers:
        metrics = seen.observation.node(broker.id).metrics
        version = metrics.kafka_version if metrics is not None else None
        if version is None or not version.startswith(f"{SUPPORTED_RELEASE}."):
            yield Finding(
                code="PF01",
                object=seen.spec.node_name(broker.id),
                observed=f"Kafka {version or 'of a version that its metrics do not tell'}",
                expected=f"Kafka {SUPPORTED_RELEASE}.x",
                fix=f"Upgrade all brokers to {SUPPORTED_RELEASE} first: it is the last release that can migrate.",
            )


def _protocol_versions(seen: Seen) -> Iterator[Finding]:
    versions = {broker.id: seen.release_of(broker.id) for broker in seen.spec.brokers}
    if len(set(versions.values())) > 1 or not all(v.startswith(SUPPORTED_RELEASE) for v in versions.values()):
        yield Finding(
            code="PF02",
            object="inter.broker.protocol.version",
            observed=", ".join(f"{seen.spec.node_name(i)}: {v}" for i, v in versions.items()),
            expected=f"{SUPPORTED_RELEASE} on every broker",
            fix="Finish the upgrade of the protocol version: a broker registers only at the controllers' metadata.version.",
        )


def _cluster_ids(seen: Seen) -> Iterator[Finding]:
    claims = {"/cluster/id": seen.zookeeper.cluster_id, "the brokers' answer": seen.kafka.cluster_id}
    for broker in seen.spec.brokers:
        claims |= {f"{seen.spec.node_name(broker.id)} {d.path}": d.cluster_id for d in seen.disk(broker.id).log_dirs}
    for what, cluster_id in claims.items():
        if cluster_id != seen.spec.cluster_id:
            yield Finding(
                code="PF03",
                object=what,
                observed=cluster_id or "no cluster.id",
                expected=seen.spec.cluster_id,
                fix="Correct cluster_id, or the addresses and directories, in the cluster's specification.",
            )


def _controller_ids(seen: Seen) -> Iterator[Finding]:
    taken = {*seen.zookeeper.assigned_broker_ids, *seen.zookeeper.broker_ids, *seen.kafka.broker_ids}
    for controller in seen.spec.controllers:
        if controller.id in taken:
            yield Finding(
                code="PF04",
                object=seen.spec.node_name(controller.id),
                observed=f"id {controller.id} is a broker's",
                expected="an id that no broker has and no partition is assigned to",
                fix="Give the controller another id: brokers and controllers share one id space.",
            )


def _broker_ids(seen: Seen) -> Iterator[Finding]:
    for broker in seen.spec.brokers:
        stored = {d.node_id for d in seen.disk(broker.id).log_dirs}
        in_file = seen.properties(broker.id).get("broker.id", "").strip()
        if in_file != str(broker.id) or stored != {broker.id}:
            yield Finding(
                code="PF05",
                object=seen.spec.node_name(broker.id),
                observed=f"broker.id={in_file or 'not set'}, meta.properties say {sorted(stored, key=str)}",
                expected=f"broker.id={broker.id} in both",
                fix="Set broker.id explicitly to the id that the broker has; a generated id cannot migrate (KAFKA-17543).",
            )


def _controller_storage(seen: Seen) -> Iterator[Finding]:
    for controller in seen.spec.controllers:
        disk = seen.disk(controller.id)
        used = [d.path for d in disk.log_dirs if d.state not in {StorageState.ABSENT, StorageState.EMPTY}]
        used += [controller.properties_file] if disk.file is not None else []
        for path in used:
            yield Finding(
                code="PF07",
                object=f"{seen.spec.node_name(controller.id)} {path}",
                observed="holds data",
                expected="absent or empty",
                fix="Name an empty directory. What is there is never overwritten; remove it yourself if it is left over.",
            )


def _migration_znode(seen: Seen) -> Iterator[Finding]:
    if seen.zookeeper.migration is not None:
        yield Finding(
            code="PF10",
            object="/migration",
            observed=f"offset {seen.zookeeper.migration.offset}",
            expected="no such znode",
            fix="It is left over from an earlier attempt, and a new one would delete metadata because of it "
            "(Strimzi 11262). Make sure that no KRaft controller runs, then delete the znode.",
        )


def _controller_znode(seen: Seen) -> Iterator[Finding]:
    controller = seen.zookeeper.controller
    if controller is None or not controller.is_ephemeral or seen.zookeeper.controller_epoch is None:
        yield Finding(
            code="PF11",
            object="/controller",
            observed="absent" if controller is None else f"owned by {controller.broker_id}, persistent",
            expected="ephemeral, owned by a live broker, with /controller_epoch beside it",
            fix="The cluster has no working ZooKeeper controller. Find out why before migrating.",
        )


def _dead_ids(seen: Seen) -> Iterator[Finding]:
    described = {broker.id for broker in seen.spec.brokers}
    for broker_id in sorted({*seen.zookeeper.assigned_broker_ids, *seen.zookeeper.broker_ids, *described}):
        is_live = broker_id in seen.zookeeper.broker_ids and broker_id in seen.kafka.broker_ids
        if not is_live or broker_id not in described:
            yield Finding(
                code="PF12",
                object=f"broker {broker_id}",
                observed="not live" if not is_live else "live, and not in the cluster's specification",
                expected="every broker that is described, registered or assigned to a partition is live and described",
                fix="Start it, describe it, or reassign its partitions: Kafka waits for it for ever otherwise.",
            )


def _pending_work(seen: Seen) -> Iterator[Finding]:
    election = ("preferred replica election",) if seen.zookeeper.is_preferred_election_pending else ()
    for code, path, pending in (
        ("PF13", "/admin/delete_topics", seen.zookeeper.pending_deletions),
        ("PF14", "/admin/reassign_partitions", seen.zookeeper.reassignments),
        ("PF14", "/admin/preferred_replica_election", election),
    ):
        if pending:
            yield Finding(
                code=code,
                object=path,
                observed=", ".join(pending[:5]) + (f" and {len(pending) - 5} more" if len(pending) > 5 else ""),
                expected="nothing pending",
                fix="Let it finish, or cancel it: it is not migrated.",
            )


def _topic_ids(seen: Seen) -> Iterator[Finding]:
    for topic in seen.zookeeper.topics_without_id[:20]:
        yield Finding(
            code="PF17",
            object=f"topic {topic}",
            observed="no topic_id that can be read",
            expected="a topic_id in /brokers/topics",
            fix="A controller of Kafka 2.8 or newer adds it when it becomes active: force an election once.",
        )


def _connect_strings(seen: Seen) -> Iterator[Finding]:
    for broker in seen.spec.brokers:
        connect = seen.properties(broker.id).get("zookeeper.connect", "").strip()
        if _chroot(connect) != _chroot(seen.spec.zookeeper.connect):
            yield Finding(
                code="PF20",
                object=seen.spec.node_name(broker.id),
                observed=f"zookeeper.connect={connect or 'not set'}",
                expected=f"the chroot of {seen.spec.zookeeper.connect}",
                fix="Use the same chroot everywhere: a controller would create another one, empty.",
            )


def _chroot(connect: str) -> str:
    return connect.partition("/")[2].strip("/")


def _listener_names(seen: Seen) -> Iterator[Finding]:
    for broker in seen.spec.brokers:
        listeners = seen.properties(broker.id).get("listeners", "")
        names = {listener.partition("://")[0].strip().upper() for listener in listeners.split(",")}
        if seen.spec.controller_listener in names:
            yield Finding(
                code="PF28",
                object=seen.spec.node_name(broker.id),
                observed=f"a listener of its own is called {seen.spec.controller_listener}",
                expected="no listener of a broker has the name of the controllers' listener",
                fix="Give the controllers' listener another name, controller_listener in the cluster's specification: "
                "a KRaft broker refuses to start with it.",
            )


def _replicas(seen: Seen) -> Iterator[Finding]:
    for fault in seen.kafka.under_replicated[:20]:
        yield Finding(
            code="PF22",
            object=f"partition {fault.partition}",
            observed=f"replicas {list(fault.missing)} out of sync",
            expected="all replicas in sync",
            fix="Let the replicas catch up before the first restart.",
        )
    for partition in seen.kafka.offline[:20]:
        yield Finding(
            code="PF22",
            object=f"partition {partition}",
            observed="no leader",
            expected="a leader",
            fix="Bring back a broker that has its data.",
        )


def _spareable(seen: Seen) -> Iterator[Finding]:
    for broker in seen.spec.brokers:
        needing = partitions_needing(seen.kafka, broker.id, seen.policy)
        if needing:
            yield Finding(
                code="PF22",
                object=seen.spec.node_name(broker.id),
                observed=f"{len(needing)} partitions cannot spare it: {', '.join(needing[:5])}{' …' if needing[5:] else ''}",
                expected="every partition keeps min.insync.replicas while one broker restarts",
                fix="Raise their replication factor, lower min.insync.replicas, or name their topics in the policy's "
                "may_be_unavailable.",
            )


def _modes(seen: Seen) -> Iterator[Finding]:
    for broker in seen.spec.brokers:
        stage = stage_of(seen.properties(broker.id), seen.spec.role(broker.id))
        mode = broker_mode(seen.observation.node(broker.id))
        if stage is not NodeStage.ZOOKEEPER or mode is not BrokerMode.ZOOKEEPER:
            yield Finding(
                code="PF37",
                object=seen.spec.node_name(broker.id),
                observed=f"runs in mode {mode}, its file fits {stage or 'no known stage'}",
                expected="runs in ZooKeeper mode from a file with zookeeper.connect and no keys of KRaft",
                fix="Start the broker from the file that the specification names, and remove half-made migration settings.",
            )


def _authorizers(seen: Seen) -> Iterator[Finding]:
    for broker in seen.spec.brokers:
        name = seen.properties(broker.id).get("authorizer.class.name", "").strip()
        if name and name not in AUTHORIZERS_IN_KRAFT:
            yield Finding(
                code="PF31",
                object=seen.spec.node_name(broker.id),
                observed=f"authorizer.class.name={name}",
                expected=f"one of {', '.join(AUTHORIZERS_IN_KRAFT)}",
                fix="This authorizer has no known counterpart in KRaft. Ask its maker, or change it first.",
            )


CHECKS: tuple[Callable[[Seen], Iterator[Finding]], ...] = (
    _versions,
    _protocol_versions,
    _cluster_ids,
    _controller_ids,
    _broker_ids,
    _controller_storage,
    _migration_znode,
    _controller_znode,
    _dead_ids,
    _pending_work,
    _topic_ids,
    _connect_strings,
    _listener_names,
    _replicas,
    _spareable,
    _authorizers,
    _modes,
)
