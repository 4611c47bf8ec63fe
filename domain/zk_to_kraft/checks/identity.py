"""PF01–PF05: releases, protocol versions, and who is who."""

from collections.abc import Iterator

from domain.checks.check import NOT_TOLD, RELEASE, SUPPORTED_RELEASE, Check, Seen, Surveyed, not_read, unverifiable
from domain.configuration.provided_values import is_provided
from domain.decisions import Finding, Severity
from domain.rolling.own_file import role_and_ids
from domain.zk_to_kraft.other_clusters import CORRECT_SPEC, IDENTITY, foreign_storage

NEWEST_PATCH = 2
"""Of 3.9: the patch release that this product was proven against."""

LACKING = {
    1: "KAFKA-19480 (a /migration without content stops the driver for ever), KAFKA-19026 (alter.config.policy gets other "
    "arguments in KRaft mode: 3.9.2 has a switch)",
}
"""What a patch release up to this one lacks."""

ID_KEYS = ("broker.id", "node.id")
"""Either is the broker's id in ZooKeeper mode. If a file has both they must be equal (KafkaConfig.populateSynonyms)."""

RESERVED_IDS = 1000
"""`reserved.broker.max.id` where a file has none (KafkaConfig)."""


def _versions(seen: Seen) -> Iterator[Finding]:
    for broker in seen.spec.brokers:
        version = _running_version(seen, broker.id)
        if version is None or not version.startswith(f"{SUPPORTED_RELEASE}."):
            yield Finding(
                code="PF01",
                object=seen.name(broker.id),
                observed=f"Kafka {version or 'of a version that its metrics do not show'}",
                expected=f"Kafka {SUPPORTED_RELEASE}.x",
                fix=f"Upgrade all brokers to {SUPPORTED_RELEASE} first: it is the last release that can migrate.",
            )


def _same_version(seen: Seen) -> Iterator[Finding]:
    versions = {seen.name(b.id): _running_version(seen, b.id) or "unknown" for b in seen.spec.brokers}
    supported = {version for version in versions.values() if version.startswith(f"{SUPPORTED_RELEASE}.")}
    if len(supported) > 1:
        yield Finding(
            code="PF01",
            object="brokers",
            observed=", ".join(f"{name}: {version}" for name, version in versions.items()),
            expected="one version on all brokers",
            fix="First finish the roll to the patch release: nothing else may change during a migration.",
        )


def _advisories(seen: Seen) -> Iterator[Finding]:
    for version in sorted({_running_version(seen, b.id) or "" for b in seen.spec.brokers}):
        patch = version.removeprefix(f"{SUPPORTED_RELEASE}.").partition("-")[0].partition(".")[0]
        if version.startswith(f"{SUPPORTED_RELEASE}.") and patch.isdecimal() and int(patch) < NEWEST_PATCH:
            lacking = "; ".join(bugs for last, bugs in LACKING.items() if int(patch) <= last)
            yield Finding(
                code="PF01",
                severity=Severity.WARNING,
                object=f"Kafka {version}",
                observed=f"lacks fixes of {SUPPORTED_RELEASE}.{NEWEST_PATCH}: {lacking}",
                expected=f"Kafka {SUPPORTED_RELEASE}.{NEWEST_PATCH} or newer",
                fix=f"Upgrade to the newest {SUPPORTED_RELEASE}.x first.",
            )


def _installed_versions(seen: Surveyed) -> Iterator[Finding]:
    """A restart takes the jars as they are then, and controllers must be of the brokers' version."""
    running = {_running_version(seen, broker.id) for broker in seen.spec.brokers}
    for node in seen.spec.nodes:
        look = seen.node(node.id).look
        if look is None:
            yield unverifiable(
                "PF01",
                seen.name(node.id),
                seen.survey.why_missing(f"look at {seen.name(node.id)}"),
                "the jars in kafka_home have the version that runs",
                "Make python3 available to the driver on the node. Or compare the versions yourself and accept this finding.",
            )
        elif set(look.kafka_versions) != running and len(running) == 1:
            yield Finding(
                code="PF01",
                object=f"{seen.name(node.id)} {node.kafka_home}",
                observed=f"jars of Kafka {', '.join(look.kafka_versions) or 'no version: there are none in libs'}",
                expected=f"the version that all brokers run, {', '.join(map(str, running))}",
                fix="Install the running version there: otherwise the next restart is an upgrade in the middle of the "
                "migration.",
            )


def _running_version(seen: Seen, broker_id: int) -> str | None:
    metrics = seen.observation.node(broker_id).metrics
    return metrics.kafka_version if metrics is not None else None


def _protocol_versions(seen: Seen) -> Iterator[Finding]:
    versions = {broker.id: seen.release_of(broker.id) for broker in seen.spec.brokers}
    known = [version for version in versions.values() if not is_provided(version)]
    for broker in seen.spec.brokers:
        yield from not_read(seen, "PF02", broker.id, [RELEASE], f"{SUPPORTED_RELEASE} on every broker")
    if len(set(known)) > 1 or not all(v.startswith(SUPPORTED_RELEASE) for v in known):
        yield Finding(
            code="PF02",
            object="inter.broker.protocol.version",
            observed=", ".join(f"{seen.name(i)}: {v}" for i, v in versions.items()),
            expected=f"{SUPPORTED_RELEASE} on every broker",
            fix="Finish the upgrade of the protocol version: a broker can register only at the controllers' metadata.version.",
        )


def _cluster_ids(seen: Seen) -> Iterator[Finding]:
    claims = {"/cluster/id": seen.zookeeper.cluster_id, "the brokers' answer": seen.kafka.cluster_id}
    for broker in seen.spec.brokers:
        claims |= {f"{seen.name(broker.id)} {d.path}": d.cluster_id for d in seen.disk(broker.id).log_dirs}
    for what, cluster_id in claims.items():
        if cluster_id != seen.spec.cluster_id:
            yield Finding(
                code=IDENTITY,
                object=what,
                observed=cluster_id or "no cluster.id",
                expected=seen.spec.cluster_id,
                fix=CORRECT_SPEC,
            )
    yield from foreign_storage(seen.observation, seen.spec)


def _controller_ids(seen: Seen) -> Iterator[Finding]:
    taken = {*seen.zookeeper.assigned_broker_ids, *seen.zookeeper.broker_ids, *seen.kafka.broker_ids}
    for controller in seen.spec.controllers:
        if controller.id in taken:
            yield Finding(
                code="PF04",
                object=seen.name(controller.id),
                observed=f"id {controller.id} belongs to a broker",
                expected="an id that no broker has and no partition is assigned to",
                fix="Give the controller another id: brokers and controllers share one id space.",
            )


def _broker_ids(seen: Seen) -> Iterator[Finding]:
    for broker in seen.spec.brokers:
        directories = seen.disk(broker.id).log_dirs
        stored = {d.node_id for d in directories}
        in_file = {key: value for key in ID_KEYS if (value := seen.properties(broker.id).get(key, "").strip())}
        unread = [key for key, value in in_file.items() if is_provided(value)]
        yield from not_read(seen, "PF05", broker.id, unread, f"broker.id={broker.id}")
        ids = {value for key, value in in_file.items() if key not in unread} | ({str(broker.id)} if unread else set())
        if stored != {broker.id} or ids != {str(broker.id)}:
            yield Finding(
                code="PF05",
                object=seen.name(broker.id),
                observed=f"its file has {role_and_ids(seen.properties(broker.id))}; meta.properties: "
                + ", ".join(f"{d.path}: {'no id' if d.node_id is None else d.node_id}" for d in directories),
                expected=f"broker.id={broker.id} in both",
                fix="Set broker.id explicitly to the id that the broker has; a generated id cannot migrate (KAFKA-17543).",
            )


def _reserved_ids(seen: Surveyed) -> Iterator[Finding]:
    """With the generation of ids left on, a broker with one from its range does not start as a hybrid (KAFKA-17543)."""
    for broker in seen.spec.brokers:
        settings, keys = seen.settings(broker.id), ("broker.id.generation.enable", "reserved.broker.max.id")
        if seen.unread(broker.id, *keys):
            yield from not_read(seen, "PF05", broker.id, keys, "false, or a reserved.broker.max.id of at least the broker's id")
            continue
        reserved = settings.get("reserved.broker.max.id", "").strip()
        most = int(reserved) if reserved.isdecimal() else RESERVED_IDS
        is_generating = settings.get("broker.id.generation.enable", "true").strip().lower() == "true"
        if is_generating and broker.id > most:
            yield Finding(
                code="PF05",
                object=f"{seen.name(broker.id)} broker.id.generation.enable",
                observed=f"true, with reserved.broker.max.id={most}",
                expected=f"false, or a reserved.broker.max.id of at least {broker.id}",
                fix="Set broker.id.generation.enable=false: otherwise the broker does not start as a hybrid.",
            )


CHECKS = (
    Check(
        code="PF01",
        holds=f"every broker runs the same Kafka {SUPPORTED_RELEASE}.x, and every node has its jars installed",
        because="it is the only release on which this migration is proven, and the last one that can migrate. A restart "
        "with other jars is an upgrade in the middle of the migration. Older patch releases have known bugs: a "
        "warning",
        source="the version in the brokers' metrics; names of the jars in `kafka_home`",
        unverifiable="python3 cannot be run on the node, so the version of its next start is unknown",
        of_look=(_versions, _same_version, _advisories),
        of_survey=(_installed_versions,),
    ),
    Check(
        code="PF02",
        holds=f"`inter.broker.protocol.version` is {SUPPORTED_RELEASE} on every broker",
        because="a broker can register with the controllers only at their `metadata.version`; otherwise it serves and never "
        "registers",
        source="brokers' files",
        unverifiable=NOT_TOLD,
        of_look=(_protocol_versions,),
    ),
    Check(
        code="PF03",
        holds="`/cluster/id`, the brokers' answer and every `meta.properties` name the specified `cluster_id`",
        because="otherwise Keeperless is connected to another cluster",
        source="ZooKeeper, a metadata request, log directories",
        of_look=(_cluster_ids,),
    ),
    Check(
        code="PF04",
        holds="no controller has the id of a broker, live or assigned to a partition",
        because="brokers and controllers share one id space",
        source="`/brokers/ids`, `/brokers/topics`, a metadata request",
        of_look=(_controller_ids,),
    ),
    Check(
        code="PF05",
        holds="`broker.id` (or `node.id`) is explicit, equals the one in `meta.properties`, and does not rely on generated ids",
        because="a generated id cannot migrate (KAFKA-17543)",
        source="brokers' files and log directories",
        unverifiable=NOT_TOLD,
        of_look=(_broker_ids,),
        of_survey=(_reserved_ids,),
    ),
)
