"""PF22–PF27: what the brokers must bear: a restart each, and KRaft's ideas of a disk."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from posixpath import normpath

from domain.checks.check import (
    MOST_OBJECTS,
    NOT_TOLD,
    Check,
    Seen,
    Surveyed,
    not_read,
    of_zookeeper,
    some,
    unverifiable,
)
from domain.decisions import Finding, Severity
from domain.health.replication import partitions_needing
from domain.observed.survey import NodeLook, ZooKeeperSurvey
from domain.observed.topic_directories import TopicDirectory, TopicOnDisk, name_of, topic_of
from domain.topic_ids import cure_of_other_id

SETTLED_AFTER = timedelta(minutes=1)
"""A controller that was elected less than this ago may have been elected because something is wrong."""
LEAST_FREE = 0.05
"""Of a log directory's file system."""
MOST_USED = 0.5
"""Of open files and of memory maps: a broker that starts anew has both twice for a moment, and more logs afterwards."""
ID_OF_ZOOKEEPER = "the topic_id of /brokers/topics"
DEFAULT_LOG_DIR = "/tmp/kafka-logs"  # noqa: S108 - Kafka's own default


def _replicas(seen: Seen) -> Iterator[Finding]:
    for fault in seen.kafka.under_replicated[:MOST_OBJECTS]:
        yield Finding(
            code="PF22",
            object=f"partition {fault.partition}",
            observed=f"replicas {list(fault.missing)} out of sync",
            expected="all replicas in sync",
            fix="Let the replicas catch up before the first restart.",
        )
    for partition in seen.kafka.offline[:MOST_OBJECTS]:
        yield Finding(
            code="PF22",
            object=f"partition {partition}",
            observed="no leader",
            expected="a leader",
            fix="Start a broker that has the data of this partition.",
        )


def _spareable(seen: Seen) -> Iterator[Finding]:
    for broker in seen.spec.brokers:
        needing = partitions_needing(seen.kafka, broker.id, seen.policy)
        if needing:
            yield Finding(
                code="PF22",
                object=seen.name(broker.id),
                observed=f"{len(needing)} partitions cannot be without it: "
                f"{', '.join(needing[:5])}{' …' if needing[5:] else ''}",
                expected="every partition keeps min.insync.replicas while one broker restarts",
                fix="Raise their replication factor, lower min.insync.replicas, or name their topics in the policy's "
                "may_be_unavailable.",
            )


def _single_replicas(seen: Surveyed, tree: ZooKeeperSurvey) -> Iterator[Finding]:
    """Those that the policy gives up, too: their clients will see it."""
    for topic in tree.single_replica_topics[:MOST_OBJECTS]:
        yield Finding(
            code="PF22",
            severity=Severity.WARNING,
            object=f"topic {topic}",
            observed="partitions with one replica",
            expected="two or more",
            fix="Raise its replication factor, or warn its clients: the partition is unavailable during both restarts of "
            "its broker.",
        )


def _one_controller(seen: Surveyed) -> Iterator[Finding]:
    counts = {
        b.id: (m.active_controller_count if (m := seen.observation.node(b.id).metrics) else None) for b in seen.spec.brokers
    }
    active = [seen.name(node_id) for node_id, count in counts.items() if count]
    owner = seen.zookeeper.controller
    if len(active) != 1 or (owner is not None and owner.broker_id in counts and not counts[owner.broker_id]):
        yield Finding(
            code="PF23",
            object="controller",
            observed=f"active by their own gauges: {some(active) or 'none'}; /controller names "
            f"{owner.broker_id if owner is not None else 'no broker'}",
            expected="one active controller, the broker that /controller names",
            fix="Find out why they disagree before you migrate. If PF17 names a topic, fix that first: an election makes up "
            "topic ids. If PF11 says that /controller is persistent, delete nothing. Otherwise trigger one election: "
            "zookeeper-shell.sh delete /controller.",
        )


def _settled_controller(seen: Surveyed) -> Iterator[Finding]:
    controller = seen.zookeeper.controller
    if controller is None or controller.claimed_at is None:
        return
    age = seen.observation.ended_at - controller.claimed_at
    if age < SETTLED_AFTER:
        yield Finding(
            code="PF23",
            severity=Severity.WARNING,
            is_momentary=True,
            object="/controller",
            observed=f"broker {controller.broker_id} was elected {max(0, age.total_seconds()):.0f} s ago",
            expected=f"no election for {SETTLED_AFTER.total_seconds():.0f} s",
            fix="Check whether the controller keeps changing. Wait until one stays.",
        )


def _log_dirs(seen: Surveyed) -> Iterator[Finding]:
    if seen.survey.log_dirs is None:
        yield unverifiable(
            "PF24",
            "log directories",
            seen.survey.why_missing("log directories"),
            "every log directory is online",
            "Give the user of client_properties the operation Describe on the resource Cluster.",
        )
    for found in seen.survey.log_dirs or ():
        if found.is_offline:
            yield Finding(
                code="PF24",
                object=f"broker-{found.broker_id} {found.path}",
                observed="offline",
                expected="online",
                fix="Check that its volume is mounted (findmnt), has free space and is writable. Mount it or free space, "
                "then restart the broker. Replace the disk only if it is broken: it comes back empty, and partitions "
                "with their only replica there are lost. A hybrid broker stops when a log directory fails (KAFKA-16431).",
            )


def _described_dirs(seen: Surveyed) -> Iterator[Finding]:
    for broker in seen.spec.brokers:
        properties = seen.properties(broker.id)
        key = "log.dirs" if properties.get("log.dirs") else "log.dir"
        if seen.unread(broker.id, key):
            yield from not_read(seen, "PF24", broker.id, [key], f"those of the specification: {some(broker.log_dirs)}")
            continue
        told = properties.get(key) or DEFAULT_LOG_DIR
        in_file = {normpath(path.strip()) for path in told.split(",") if path.strip()}
        if in_file != {normpath(path) for path in broker.log_dirs}:
            yield Finding(
                code="PF24",
                object=seen.name(broker.id),
                observed=f"its file names {some(sorted(in_file))}",
                expected=f"those of the specification: {some(broker.log_dirs)}",
                fix="Correct log_dirs in the cluster's specification: a directory that is not listed there is not checked.",
            )
        elif len(in_file) > 1:
            yield Finding(
                code="PF24",
                severity=Severity.WARNING,
                object=seen.name(broker.id),
                observed=f"{len(in_file)} log directories",
                expected="to be known",
                fix="Watch its disks: a hybrid broker stops when one log directory fails (KAFKA-16431).",
            )


def _looks(seen: Surveyed, code: str, expected: str, severity: Severity) -> Iterator[Finding | tuple[str, NodeLook]]:
    """What each broker's machine told, or that it could not."""
    for broker in seen.spec.brokers:
        name, look = seen.name(broker.id), seen.node(broker.id).look
        if look is not None:
            yield name, look
        else:
            fix = "Make python3 available to the driver on the node. Or check it yourself and accept this finding."
            yield unverifiable(code, name, seen.survey.why_missing(f"look at {name}"), expected, fix, severity)


def _partition_ids(seen: Surveyed) -> Iterator[Finding]:
    """Topics without an id in ZooKeeper are PF17's, with all their directories."""
    lacking = {topic.znode.name for topic in seen.topics_on_disk if topic.znode.id is None}
    for found in _looks(seen, "PF25", "every partition directory has its topic's id", Severity.BLOCKER):
        if isinstance(found, Finding):
            yield found
            continue
        name, look = found
        without = [path for path in look.topic_ids.without if topic_of(path) not in lacking]
        yield from (_without_id(f"{name} {path}") for path in without[:MOST_OBJECTS])
    of_another = (
        _of_another_id(seen, topic, directory)
        for topic in seen.topics_on_disk
        for directory in topic.directories
        if topic.znode.id is not None and directory.id is not None
    )
    yield from islice(of_another, MOST_OBJECTS)


def _without_id(what: str) -> Finding:
    return Finding(
        code="PF25",
        object=what,
        observed="no partition.metadata with a topic_id",
        expected=ID_OF_ZOOKEEPER,
        fix="Check that no other directory of this topic has an id that differs from /brokers/topics (each is a PF25 "
        "finding of its own). Restart the broker once, in ZooKeeper mode: it writes the file for every replica assigned "
        "to it. Make a new plan. If the finding names the directory again, it belongs to no replica: stop the broker, "
        "move the directory out of the log directory, and start the broker.",
    )


def _of_another_id(seen: Surveyed, topic: TopicOnDisk, directory: TopicDirectory) -> Finding:
    partition, broker_id = name_of(directory.path), directory.broker_id
    lagging = {fault.partition for fault in seen.kafka.under_replicated if broker_id in fault.missing}
    is_in_sync = partition not in lagging.union(seen.kafka.offline)
    cure = cure_of_other_id(directory, topic, seen.spec, is_in_sync=is_in_sync)
    return Finding(
        code="PF25",
        object=f"{seen.name(broker_id)} {directory.path}",
        observed=cure.observed,
        expected=ID_OF_ZOOKEEPER,
        fix=cure.fix,
    )


def _room(seen: Surveyed) -> Iterator[Finding]:
    for found in _looks(seen, "PF26", "room for a restart", Severity.WARNING):
        if isinstance(found, Finding):
            yield found
            continue
        name, look = found
        for place in look.log_dirs:
            if place.free < place.total * LEAST_FREE:
                yield _short(f"{name} {place.path}", f"{place.free // 2**20} MiB free", f"{LEAST_FREE:.0%} of the file system")
        if look.open_files is None or look.most_open_files is None:
            yield unverifiable(
                "PF26",
                f"{name} open files",
                "the driver may not see the process's open files",
                "room for a restart",
                "Run the driver as the broker's user or as root. Or check it yourself and accept this finding.",
                Severity.WARNING,
            )
        elif look.open_files > look.most_open_files * MOST_USED:
            yield _short(f"{name} open files", f"{look.open_files} of {look.most_open_files}", "at most half of the limit")
        if look.maps is not None and look.most_maps is not None and look.maps > look.most_maps * MOST_USED:
            yield _short(f"{name} vm.max_map_count", f"{look.maps} of {look.most_maps}", "at most half of the limit")


def _short(what: str, observed: str, expected: str) -> Finding:
    fix = "Raise the limit, or free some of it, before the broker restarts."
    return Finding(code="PF26", severity=Severity.WARNING, object=what, observed=observed, expected=expected, fix=fix)


def _controlled_shutdown(seen: Surveyed) -> Iterator[Finding]:
    for broker in seen.spec.brokers:
        yield from not_read(seen, "PF27", broker.id, ["controlled.shutdown.enable"], "true")
        if seen.settings(broker.id).get("controlled.shutdown.enable", "true").strip().lower() == "false":
            yield Finding(
                code="PF27",
                object=seen.name(broker.id),
                observed="controlled.shutdown.enable=false",
                expected="true",
                fix="Remove the setting and restart the broker once, at a quiet time. During that restart its partitions "
                "have no leader until the controller notices; later restarts avoid this.",
            )


def _unmeasured(seen: Surveyed) -> Iterator[Finding]:
    """Nothing here may restart a broker: the first one that is rolled is the measurement."""
    yield Finding(
        code="PF27",
        severity=Severity.INFO,
        object="restarts",
        observed="the duration of a restart is not measured",
        expected="a measured restart",
        fix="No action is needed: the migration waits for each broker until it has caught up. To know the duration "
        "beforehand, restart one broker yourself.",
    )


CHECKS = (
    Check(
        code="PF22",
        holds="every partition has a leader and all replicas in sync, and can do without any one broker",
        because="a restart would take a partition below `min.insync.replicas`. Topics with one replica are a warning if the "
        "policy lists them in `may_be_unavailable`",
        source="a metadata request, `min.insync.replicas` of each topic, `/brokers/topics`",
        unverifiable="ZooKeeper does not let the configured identity read",
        of_look=(_replicas, _spareable),
        of_survey=(of_zookeeper("PF22", _single_replicas, Severity.WARNING),),
    ),
    Check(
        code="PF23",
        holds="exactly one broker reports that it is the controller, and `/controller` names it",
        because="two brokers that both act as controller write metadata that disagrees, and the migration copies it. An "
        "election in the last minutes is a warning",
        source="`ActiveControllerCount` of each broker; `/controller` and when it was made",
        of_survey=(_one_controller, _settled_controller),
    ),
    Check(
        code="PF24",
        holds="all log directories are online, and are those of the specification",
        because="a hybrid broker stops when one of its log directories fails (KAFKA-16431), and a directory that is not "
        "listed in the specification is not checked. Several log directories on one broker are a warning",
        source="DescribeLogDirs of each broker; `log.dirs` in its file",
        unverifiable=f"Kafka does not let the configured client describe the cluster; {NOT_TOLD}",
        of_survey=(_log_dirs, _described_dirs),
    ),
    Check(
        code="PF25",
        holds="every partition directory has a `partition.metadata` with the topic id that ZooKeeper has",
        because="a hybrid broker fails on it (KAFKA-21022), and a KRaft broker takes the directory for a stray one and "
        "deletes it",
        source="log directories of each broker, read by a program that the node driver runs once on its host",
        unverifiable="python3 cannot be run on the node",
        of_survey=(_partition_ids,),
    ),
    Check(
        code="PF26",
        severity=Severity.WARNING,
        holds="each broker has spare disk space, open files and memory maps",
        because="a broker that reaches a limit while it restarts does not come back",
        source="`statvfs`, `/proc/<pid>/fd`, `limits` and `maps`, `vm.max_map_count`",
        unverifiable="python3 cannot be run on the node, or may not inspect the broker's process",
        of_survey=(_room,),
    ),
    Check(
        code="PF27",
        holds="controlled shutdown is on, and the duration of a restart is known",
        because="every broker restarts twice, and without controlled shutdown its partitions have no leader each time. An "
        "unknown duration is for information only",
        source="brokers' files",
        unverifiable=NOT_TOLD,
        of_survey=(_controlled_shutdown, _unmeasured),
    ),
)
