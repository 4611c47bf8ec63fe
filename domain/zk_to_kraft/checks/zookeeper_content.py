"""PF10–PF15, PF17, PF18, PF20: what the cluster keeps in ZooKeeper."""

from collections.abc import Iterator
from itertools import islice

from domain.checks.check import (
    MOST_OBJECTS,
    NOT_READ,
    NOT_TOLD,
    READ_IT,
    Check,
    Seen,
    Surveyed,
    of_zookeeper,
    some,
    unverifiable,
)
from domain.connect_string import doubts, read
from domain.decisions import Finding, Severity
from domain.observed.observation import ControllerZnode
from domain.observed.parts import Suspect
from domain.observed.survey import ZooKeeperSurvey
from domain.redaction import is_shown, shown_value
from domain.topic_ids import Cure, cure_of_no_id
from domain.zk_to_kraft.failed_elections import FEATURE, MEND_FEATURE
from domain.zk_to_kraft.znode_repairs import repair_of

BROKER_IDS, TOPICS, TOPIC_CONFIGS = "/brokers/ids", "/brokers/topics", "/config/topics"
CONNECT = "zookeeper.connect"
THROTTLES = frozenset(
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)


def _migration_znode(seen: Seen) -> Iterator[Finding]:
    migration = seen.zookeeper.migration
    if migration is not None:
        yield Finding(
            code="PF10",
            object="/migration",
            observed=(f"offset {migration.offset}" if migration.offset is not None else "content that cannot be parsed")
            + f"; {_owner(seen.zookeeper.controller)}",
            expected="no such znode",
            fix="If /controller belongs to KRaft, or a KRaft controller of this cluster runs anywhere, delete nothing: a "
            'migration is running, and POST /migrations with "hold": true adopts it. Otherwise the znode is left over, '
            "and a new quorum would delete metadata because of it (Strimzi 11262): zookeeper-shell.sh delete /migration.",
        )


def _owner(controller: ControllerZnode | None) -> str:
    if controller is None:
        return "there is no /controller"
    return (
        f"/controller is {f'of broker {controller.broker_id}' if controller.is_ephemeral else 'a KRaft controller, persistent'}"
    )


def _controller_znode(seen: Seen) -> Iterator[Finding]:
    controller = seen.zookeeper.controller
    if controller is None or not controller.is_ephemeral or seen.zookeeper.controller_epoch is None:
        yield Finding(
            code="PF11",
            object="/controller",
            observed="absent" if controller is None else f"owned by {controller.broker_id}, persistent",
            expected="ephemeral, owned by a live broker, with /controller_epoch beside it",
            fix="The cluster has no working ZooKeeper controller. Find out why before you migrate.",
        )


def _dead_ids(seen: Seen) -> Iterator[Finding]:
    described = {broker.id for broker in seen.spec.brokers}
    for broker_id in sorted({*seen.zookeeper.assigned_broker_ids, *seen.zookeeper.broker_ids, *described}):
        is_live = broker_id in seen.zookeeper.broker_ids and broker_id in seen.kafka.broker_ids
        if not is_live or broker_id not in described:
            yield Finding(
                code="PF12",
                object=f"broker {broker_id}",
                observed="not live" if not is_live else "live, but not in the cluster's specification",
                expected="every broker that is described, registered or assigned to a partition is live and described",
                fix="If it will come back, start it. If it serves, describe it in the specification. Only if it is gone for "
                "good, reassign its partitions: those without another replica are lost with it. Otherwise Kafka waits "
                "for it for ever.",
            )


def _configs_of_the_dead(seen: Surveyed, tree: ZooKeeperSurvey) -> Iterator[Finding]:
    live = set(map(str, seen.zookeeper.broker_ids))
    described = {str(broker.id) for broker in seen.spec.brokers}
    for name, keys in tree.broker_configs.items():
        if name.isdecimal() and name not in live | described and keys:
            yield Finding(
                code="PF12",
                object=f"/config/brokers/{name}",
                observed=f"configs of a broker that is not live: {some(keys)}",
                expected="dynamic configs of live brokers only",
                fix="Delete them: kafka-configs.sh --alter --entity-type brokers --entity-name "
                f"{name} --delete-config {','.join(keys)}.",
            )


def _pending_work(code: str, path: str, pending: tuple[str, ...]) -> Iterator[Finding]:
    if pending:
        yield Finding(
            code=code,
            object=path,
            observed=some(pending),
            expected="nothing pending",
            fix="Let it finish, or cancel it: a pending one is not migrated.",
        )


def _deletions(seen: Seen) -> Iterator[Finding]:
    yield from _pending_work("PF13", "/admin/delete_topics", seen.zookeeper.pending_deletions)


def _reassignments(seen: Seen) -> Iterator[Finding]:
    election = ("preferred replica election",) if seen.zookeeper.is_preferred_election_pending else ()
    yield from _pending_work("PF14", "/admin/reassign_partitions", seen.zookeeper.reassignments)
    yield from _pending_work("PF14", "/admin/preferred_replica_election", election)


def _readable(seen: Surveyed, tree: ZooKeeperSurvey) -> Iterator[Finding]:
    """Brokers that are not registered are PF12's, topics and their configs PF17's."""
    elsewhere = (BROKER_IDS, TOPICS, TOPIC_CONFIGS)
    for suspect in [s for s in tree.suspects if not s.what.startswith(elsewhere)][:MOST_OBJECTS]:
        yield _poisoned("PF15", suspect)
    for path in tree.prefixed_wildcards[:MOST_OBJECTS]:
        yield Finding(
            code="PF15",
            severity=Severity.WARNING,
            object=path,
            observed="an ACL whose prefix is the wildcard *",
            expected="the literal resource *, or a real prefix",
            fix="It applies to names that begin with an asterisk, which is hardly ever meant. Create the rule for the "
            "literal * instead.",
        )


def _poisoned(code: str, suspect: Suspect) -> Finding:
    return Finding(
        code=code,
        object=suspect.what,
        observed=suspect.why,
        expected="content as Kafka writes it",
        fix=MEND_FEATURE if suspect.what == FEATURE else repair_of(suspect.what),
    )


def _topic_ids(seen: Seen) -> Iterator[Finding]:
    """Without a survey it is unknown what is on disk: then no election is advised."""
    for topic in seen.zookeeper.topics_without_id[:MOST_OBJECTS] if seen.observation.survey is None else ():
        yield _without_id(topic, Cure("no topic_id that can be read", ELECT_NOBODY))


def _topic_ids_on_disk(seen: Surveyed) -> Iterator[Finding]:
    """A topic that is lacking in the survey has lost its id, or was made, since."""
    known = {topic.znode.name: topic for topic in seen.topics_on_disk}
    for topic in seen.zookeeper.topics_without_id[:MOST_OBJECTS]:
        found = known.get(topic)
        cure = Cure("no topic_id that can be read", ELECT_NOBODY)
        yield _without_id(topic, cure_of_no_id(found, seen.spec, is_led_by_zookeeper=True) if found is not None else cure)


def _without_id(topic: str, cure: Cure) -> Finding:
    expected = "a topic_id in /brokers/topics, the same as in partition.metadata of every replica"
    return Finding(code="PF17", object=f"topic {topic}", observed=cure.observed, expected=expected, fix=cure.fix)


ELECT_NOBODY = (
    "Do not elect a controller and do not restart a broker yet: if partition.metadata of its replicas has an id, an "
    "election makes up another one, and brokers refuse the topic. Make a new plan: its finding PF17 shows which id they "
    "have, and what to type."
)


def _topics(seen: Surveyed, tree: ZooKeeperSurvey) -> Iterator[Finding]:
    told = {f"{TOPICS}/{name}" for name in seen.zookeeper.topics_without_id}
    suspects = [s for s in tree.suspects if s.what.startswith((TOPICS, TOPIC_CONFIGS)) and s.what not in told]
    for suspect in suspects[:MOST_OBJECTS]:
        yield _poisoned("PF17", suspect)
    for name in tree.orphan_configs[:MOST_OBJECTS]:
        yield Finding(
            code="PF17",
            severity=Severity.WARNING,
            object=f"/config/topics/{name}",
            observed="configs of a topic that does not exist",
            expected="configs of topics only",
            fix="If kafka-topics.sh --list still shows the topic, its znode was deleted by hand: write it again, and delete "
            "nothing. Otherwise delete this znode: it is not copied, and a later topic of this name would have got "
            "these configs.",
        )


def _throttles(seen: Surveyed, tree: ZooKeeperSurvey) -> Iterator[Finding]:
    brokers = [f"/config/brokers/{name}" for name, keys in tree.broker_configs.items() if THROTTLES.intersection(keys)]
    topics = [f"/config/topics/{name}" for name in tree.throttled_topics]
    for path in (*brokers, *topics)[:MOST_OBJECTS]:
        yield Finding(
            code="PF18",
            severity=Severity.WARNING,
            object=path,
            observed="a replication throttle",
            expected="none",
            fix="If a reassignment is running (PF14), let it end first: without the throttle it takes bandwidth that "
            "clients need. Then remove the throttle (kafka-reassign-partitions.sh --verify, or kafka-configs.sh): every "
            "restart waits for replicas to catch up, and a throttle delays them.",
        )


def _client_metrics(seen: Surveyed, tree: ZooKeeperSurvey) -> Iterator[Finding]:
    for name in tree.client_metrics[:MOST_OBJECTS]:
        yield Finding(
            code="PF18",
            object=f"/config/client-metrics/{name}",
            observed="a subscription of client metrics",
            expected="none before finalisation",
            fix="Delete it, and create it again after the migration: dual write cannot write this kind, and stops for good "
            "after the next failover.",
        )


def _connect_strings(seen: Seen) -> Iterator[Finding]:
    """By meaning: neither the order of the servers nor a `/` for no chroot makes a difference."""
    for broker in seen.spec.brokers:
        if seen.unread(broker.id, CONNECT):
            yield _unread_connect(seen, broker.id)
            continue
        yield from _connect_string(seen, seen.name(broker.id), seen.properties(broker.id).get(CONNECT, "").strip())


def _unread_connect(seen: Seen, broker_id: int) -> Finding:
    """A broker that is registered below the specification's chroot has that chroot, whatever its file says."""
    is_registered = broker_id in seen.zookeeper.broker_ids
    told = ". It is registered in /brokers/ids of the specification's ensemble and chroot" if is_registered else ""
    what, value = f"{seen.name(broker_id)} {CONNECT}", seen.properties(broker_id)[CONNECT]
    severity = Severity.WARNING if is_registered else Severity.BLOCKER
    expected = f"the chroot and the servers of {seen.spec.ensemble.connect}"
    return unverifiable("PF20", what, f"{CONNECT}={value}: {NOT_READ}{told}", expected, READ_IT, severity)


def _connect_string(seen: Seen, name: str, connect: str) -> Iterator[Finding]:
    """Where the value has more than a connect string, as a comment behind it, none of it is quoted."""
    wanted, is_quoted = read(seen.spec.ensemble.connect), is_shown(CONNECT, connect)
    observed = f"{CONNECT}={shown_value(CONNECT, connect) or 'not set'}"
    try:
        found = read(connect)
    except ValueError as refused:
        yield Finding(
            code="PF20",
            object=name,
            observed=observed,
            expected=f"a value that ZooKeeper's client accepts, such as {wanted}",
            fix=(f"{refused} " if connect and is_quoted else "")
            + f"Write {CONNECT}={wanted}: otherwise the broker does not start.",
        )
        return
    doubt = "".join(f"{doubt} " for doubt in islice(doubts(found, connect), 1)) if is_quoted else ""
    if found.chroot != wanted.chroot:
        yield Finding(
            code="PF20",
            object=name,
            observed=observed,
            expected=f"the chroot of {wanted}",
            fix=f"{doubt}Use the same chroot everywhere: otherwise a controller creates another, empty one.",
        )
    elif found.ensemble != wanted.ensemble:
        yield Finding(
            code="PF20",
            severity=Severity.WARNING,
            object=name,
            observed=observed,
            expected=f"the servers of {wanted}",
            fix=f"{doubt}Name the same servers in the cluster's specification and in every file: controllers get those of "
            "the specification. Names alone do not show whether two of them are one server.",
        )


UNREADABLE = "ZooKeeper does not let the configured identity read"

CHECKS = (
    Check(
        code="PF10",
        holds="there is no `/migration` znode",
        because="a /migration that is left over makes a new quorum delete metadata from ZooKeeper (Strimzi 11262); one "
        "without content stops the migration for ever (KAFKA-19480)",
        source="`/migration`",
        of_look=(_migration_znode,),
    ),
    Check(
        code="PF11",
        holds="`/controller` is ephemeral, with `/controller_epoch` beside it",
        because="otherwise the cluster has no working ZooKeeper controller to take over from",
        source="`/controller`, `/controller_epoch`",
        of_look=(_controller_znode,),
    ),
    Check(
        code="PF12",
        holds="every broker described, registered, assigned to a partition, or with dynamic configs is live and described",
        because="Kafka waits for such a broker for ever before it copies",
        source="`/brokers/ids`, `/brokers/topics`, `/config/brokers`, a metadata request",
        unverifiable=UNREADABLE,
        of_look=(_dead_ids,),
        of_survey=(of_zookeeper("PF12", _configs_of_the_dead),),
    ),
    Check(
        code="PF13",
        holds="no topic deletion is pending",
        because="a pending deletion is not migrated",
        source="`/admin/delete_topics`",
        of_look=(_deletions,),
    ),
    Check(
        code="PF14",
        holds="no reassignment and no preferred replica election is pending",
        because="neither is migrated",
        source="`/admin/reassign_partitions`, `/brokers/topics`, `/admin/preferred_replica_election`",
        of_look=(_reassignments,),
    ),
    Check(
        code="PF15",
        holds="ACLs, quotas, credentials, brokers' configs, tokens and producer ids are as Kafka writes them",
        because="the copy fails on others after it has claimed the cluster, which then has no controller; or it drops them "
        "without an error",
        source="every znode that the copy reads, by strict parsers. A prefixed ACL for `*` is a warning",
        unverifiable=UNREADABLE,
        of_survey=(of_zookeeper("PF15", _readable),),
    ),
    Check(
        code="PF17",
        holds="every topic has a `topic_id`, and topics, partition states and topics' configs can be read",
        because="KRaft identifies topics by id, and uses defaults for what it cannot read. Configs without a topic are a "
        "warning",
        source="`/brokers/topics`, `/config/topics`; of a topic without `topic_id` also `partition.metadata` in the log "
        "directories of each broker",
        unverifiable=UNREADABLE,
        of_look=(_topic_ids,),
        of_survey=(_topic_ids_on_disk, of_zookeeper("PF17", _topics)),
    ),
    Check(
        code="PF18",
        holds="no replication throttle and no subscription of client metrics is set",
        because="a throttle makes every restart wait, a warning; a subscription of client metrics stops dual write after the "
        "next failover",
        source="`/config/brokers`, `/config/topics`, `/config/client-metrics`",
        unverifiable=UNREADABLE,
        of_survey=(of_zookeeper("PF18", _throttles, Severity.WARNING), of_zookeeper("PF18", _client_metrics)),
    ),
    Check(
        code="PF20",
        holds="every broker's `zookeeper.connect` has the chroot of the specification, and its servers",
        because="otherwise a controller creates another, empty tree. Other names for the servers are a warning",
        source="brokers' files",
        unverifiable=NOT_TOLD + ". A warning for a broker that is registered below that chroot",
        of_look=(_connect_strings,),
    ),
)
