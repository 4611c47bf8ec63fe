"""PF34, PF35, PF37–PF40: what files say, and what has to be there beside them."""

from collections.abc import Iterator

from domain.checks.check import MOST_OBJECTS, NOT_TOLD, Check, Seen, Surveyed, not_read, some, unverifiable
from domain.cluster import BrokerSpec, shown
from domain.configuration.kafka_properties import CLASSES_OF_CONTROLLERS
from domain.configuration.provided_values import is_provided
from domain.decisions import Finding, Severity
from domain.rolling.own_file import role_and_ids
from domain.zk_to_kraft.modes import BrokerMode, broker_mode
from domain.zk_to_kraft.node_config import ZOOKEEPER_ONLY_KEYS, stage_of
from domain.zk_to_kraft.pending_restart import fix_before_start, seen_of
from domain.zk_to_kraft.steps import NodeStage

IN_ZOOKEEPER_MODE = "runs in ZooKeeper mode, from a file with zookeeper.connect and without KRaft keys"
ALTER_POLICY = "alter.config.policy.class.name"
NOW_OF_CONTROLLERS = (
    "auto.leader.rebalance.enable",
    "default.replication.factor",
    "leader.imbalance.check.interval.seconds",
    "leader.imbalance.per.broker.percentage",
    "min.insync.replicas",
    "num.partitions",
    "unclean.leader.election.enable",
)
"""In KRaft it is controllers that apply these (ControllerServer.scala)."""

PER_BROKER = frozenset(
    {
        "advertised.host.name",
        "advertised.listeners",
        "advertised.port",
        "broker.id",
        "broker.rack",
        "host.name",
        "inter.broker.protocol.version",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "port",
        "zookeeper.connect",
    }
)
PER_BROKER_PREFIXES = ("listener.name.", "ssl.keystore.", "ssl.key.")
"""Each broker has its own address, directories and identity; `inter.broker.protocol.version` is PF02's, `zookeeper.connect`
PF20's."""
AGENT = "-javaagent"
LEAST_ARCHIVE = 16 * 1024 * 1024


def _classes(seen: Surveyed) -> Iterator[Finding]:
    for node in (seen.spec.brokers[0], *seen.spec.controllers):
        yield from not_read(seen, "PF34", node.id, CLASSES_OF_CONTROLLERS, "a class that every controller can load")
    for controller in seen.spec.controllers:
        look, name = seen.node(controller.id).look, seen.name(controller.id)
        if look is None:
            yield unverifiable(
                "PF34",
                name,
                seen.survey.why_missing(f"look at {name}"),
                "every class that it has to load is there",
                "Make python3 available to the driver on the node. Or check it yourself and accept this finding.",
            )
        for wanted in look.absent_classes if look is not None else ():
            yield Finding(
                code="PF34",
                object=f"{name} {wanted}",
                observed=f"neither in a jar of {controller.kafka_home}/libs nor on its class path",
                expected="a class that the controller can load",
                fix="Put the jar there, as on the brokers: controllers apply policies from now on, and one that cannot load "
                "its policy does not start.",
            )


def _alter_policy(seen: Surveyed) -> Iterator[Finding]:
    policy = seen.controller_settings.get(ALTER_POLICY, "").strip()
    if policy:
        yield Finding(
            code="PF34",
            severity=Severity.WARNING,
            object=ALTER_POLICY,
            observed=policy,
            expected="a policy that is known to work with KRaft",
            fix="Read KAFKA-19026: in KRaft this policy gets other configs than in ZooKeeper mode; 3.9.2 has a switch for it.",
        )


def _defaults(seen: Surveyed) -> Iterator[Finding]:
    """Controllers get the first broker's, or their base file's."""
    nodes = [*seen.spec.brokers, *(c for c in seen.spec.controllers if seen.node(c.id).settings)]
    for key in NOW_OF_CONTROLLERS:
        values = {seen.name(n.id): seen.settings(n.id).get(key, "").strip() for n in seen.spec.brokers}
        values |= {seen.name(n.id): v for n in nodes if (v := seen.node(n.id).settings.get(key, "").strip())}
        if len(set(values.values())) > 1:
            yield Finding(
                code="PF35",
                severity=Severity.WARNING,
                is_unverifiable=any(map(is_provided, values.values())),
                object=key,
                observed=", ".join(f"{name}: {value or 'not set'}" for name, value in values.items()),
                expected="one value on all nodes",
                fix="Set the same value everywhere: controllers apply it from now on, and take it from the first broker's "
                "file.",
            )


def _modes(seen: Seen) -> Iterator[Finding]:
    for broker in seen.spec.brokers:
        stage = stage_of(seen.properties(broker.id), seen.spec.role(broker.id))
        mode = broker_mode(seen.observation.node(broker.id))
        if mode is BrokerMode.ZOOKEEPER and stage is not NodeStage.ZOOKEEPER:
            yield _edited(seen, broker, stage)
        elif mode is not BrokerMode.ZOOKEEPER:
            yield Finding(
                code="PF37",
                object=seen.name(broker.id),
                observed=f"runs in mode {mode}, its file fits {stage or 'no known stage'} and has "
                f"{role_and_ids(seen.properties(broker.id))}",
                expected=IN_ZOOKEEPER_MODE,
                fix='If this migration was begun by hand, change nothing: POST /migrations with "hold": true adopts it. '
                "Otherwise remove half-made migration settings from the file that the specification names, and restart "
                "the broker from it.",
            )


def _edited(seen: Seen, broker: BrokerSpec, stage: NodeStage | None) -> Finding:
    """Its process is as it should be; its file would end that at the next restart."""
    name, path = seen.name(broker.id), broker.properties_file
    return Finding(
        code="PF37",
        object=name,
        observed=seen_of(name, path, seen.properties(broker.id), NodeStage.ZOOKEEPER, stage),
        expected=IN_ZOOKEEPER_MODE,
        fix=fix_before_start(name, path, stage),
    )


def _dropped(seen: Surveyed) -> Iterator[Finding]:
    """Keys that are taken out are shown in each file's diff; these two are worth a word."""
    for broker in seen.spec.brokers:
        settings = seen.settings(broker.id)
        for key, what in (
            ("control.plane.listener.name", "kept while the broker is hybrid, removed in KRaft mode: controllers then use "
                                            "the inter-broker listener"),
            ("log.message.format.version", "ignored since Kafka 3.0, and refused by some later release"),
        ):  # fmt: skip
            if settings.get(key, "").strip():
                yield Finding(
                    code="PF37",
                    severity=Severity.WARNING,
                    object=f"{seen.name(broker.id)} {key}",
                    observed=settings[key].strip(),
                    expected="not set",
                    fix=f"It is {what}. Check whether anything else relies on it, and remove it in time.",
                )


NEEDED_NUMBERS = ("migration_gauge", "active_controller_count", "under_replicated_partitions")
"""Texts are not among them: the Prometheus exporter tells numbers only."""


def _needed_gauges(seen: Surveyed) -> Iterator[Finding]:
    for broker in seen.spec.brokers:
        metrics = seen.observation.node(broker.id).metrics
        if metrics is None or broker_mode(seen.observation.node(broker.id)) is not BrokerMode.ZOOKEEPER:
            continue
        absent = [name for name in NEEDED_NUMBERS if getattr(metrics, name) is None]
        if absent:
            yield Finding(
                code="PF38",
                object=seen.name(broker.id),
                observed=f"its metrics lack {', '.join(absent)}",
                expected="all MBeans that the migration needs to judge it",
                fix="Let the agent show all MBeans of kafka.controller, kafka.server and kafka.cluster: no rules, no access "
                "list.",
            )


def _agents(seen: Surveyed) -> Iterator[Finding]:
    """Controllers do not run yet: what can be seen is whether anything would answer at the address that is given."""
    for controller in seen.spec.controllers:
        texts = (*controller.driver.service.start_command, *controller.environment.values())
        if not any(AGENT in text for text in texts):
            yield unverifiable(
                "PF38",
                seen.name(controller.id),
                f"neither start command nor environment names a metrics agent ({AGENT}), and the controller does not run yet",
                f"metrics at {shown(controller.metrics.url)} once it runs",
                "Give it the agent of Jolokia or of the Prometheus exporter, unless its start script does so.",
                Severity.WARNING,
            )


def _differences(seen: Surveyed) -> Iterator[Finding]:
    """By values where they are kept, by digests everywhere else."""
    files = {seen.name(b.id): {**seen.settings(b.id), **seen.node(b.id).digests} for b in seen.spec.brokers}
    keys = sorted({key for file in files.values() for key in file} - PER_BROKER - set(NOW_OF_CONTROLLERS))
    different = [
        key for key in keys if not key.startswith(PER_BROKER_PREFIXES) and len({f.get(key) for f in files.values()}) > 1
    ]
    for key in different[:MOST_OBJECTS]:
        groups: dict[str | None, list[str]] = {}
        for name, file in files.items():
            groups.setdefault(file.get(key), []).append(name)
        yield Finding(
            code="PF39",
            severity=Severity.WARNING,
            object=key,
            observed="; ".join(f"{some(names)}: {_told(seen, key, value)}" for value, names in groups.items()),
            expected="the same on all brokers",
            fix="Make the files the same, or find out why they differ: controllers get the first broker's value.",
        )


def _told(seen: Surveyed, key: str, value: str | None) -> str:
    if value is None:
        return "not set"
    is_digest = any(seen.node(broker.id).digests.get(key) == value for broker in seen.spec.brokers)
    return "a value of its own" if is_digest else value


def _archive(seen: Surveyed) -> Iterator[Finding]:
    for node in seen.spec.nodes:
        name, look = seen.name(node.id), seen.node(node.id).look
        place = f"{node.properties_file.rpartition('/')[0] or '/'}/.keeperless"
        expected = "a directory beside the properties file that the driver can write, to keep the original"
        if look is None or look.archive is None:
            why = seen.survey.why_missing(f"look at {name}")
            fix = "Make python3 available to the driver on the node. Or check it yourself and accept this finding."
            yield unverifiable("PF40", f"{name} {place}", why, expected, fix)
        elif not look.archive.is_writable or look.archive.free < LEAST_ARCHIVE:
            observed = "the driver may not write there" if not look.archive.is_writable else f"{look.archive.free} bytes free"
            yield Finding(
                code="PF40",
                object=f"{name} {place}",
                observed=observed,
                expected=expected,
                fix="Let the driver's user write there: every file is archived before it is changed.",
            )


ZOOKEEPER_ONLY = ", ".join(f"`{key}`" for key in sorted(ZOOKEEPER_ONLY_KEYS))

CHECKS = (
    Check(
        code="PF34",
        holds="controllers can load the classes of policies and principal builders",
        because="in KRaft mode controllers apply them, and a controller that cannot load its policy does not start. "
        "`alter.config.policy` gets other configs in KRaft mode (KAFKA-19026): a warning",
        source="brokers' and controllers' files; jars in `kafka_home/libs` and on the class path",
        unverifiable=f"python3 cannot be run on the controller's node; {NOT_TOLD}",
        of_survey=(_classes, _alter_policy),
    ),
    Check(
        code="PF35",
        severity=Severity.WARNING,
        holds="defaults of topics and elections are the same on all brokers, and in the controllers' base files",
        because="in KRaft mode controllers apply them, and take them from the first broker: "
        + ", ".join(f"`{k}`" for k in NOW_OF_CONTROLLERS),
        source="brokers' files and `base_properties`",
        of_survey=(_defaults,),
    ),
    Check(
        code="PF37",
        holds="every broker runs in ZooKeeper mode, from a file without KRaft keys",
        because="otherwise a migration has already begun. If a file was edited and its broker was not restarted, the broker "
        f"changes its mode at its next restart, also after a crash. KRaft drops some keys ({ZOOKEEPER_ONLY}): a "
        "control plane listener among them is a warning",
        source="brokers' files and MBeans",
        of_look=(_modes,),
        of_survey=(_dropped,),
    ),
    Check(
        code="PF38",
        holds="the metrics on which the migration decides can be read",
        because="a metric that cannot be read is unknown, and unknown never counts as healthy: the migration would wait for "
        "ever",
        source="each broker's metrics; the start commands of controllers",
        unverifiable="a controller does not run yet, and no metrics agent is named for it: a warning",
        of_survey=(_needed_gauges, _agents),
    ),
    Check(
        code="PF39",
        severity=Severity.WARNING,
        holds="brokers' files differ only in addresses, directories, racks and identities",
        because="any other difference is probably a change that was never completed",
        source="brokers' files: values that are not secret, otherwise keyed digests",
        of_survey=(_differences,),
    ),
    Check(
        code="PF40",
        holds="the original of every file can be kept beside it",
        because="a rollback restores it byte for byte",
        source="the directory of the properties file, on the node",
        unverifiable="python3 cannot be run on the node",
        of_survey=(_archive,),
    ),
)
