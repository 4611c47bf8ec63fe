"""What checks look at, and what a check is."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from domain.cluster import BrokerSpec, ClusterSpec
from domain.configuration.provided_values import is_provided
from domain.decisions import Finding, Severity
from domain.observed.observation import KafkaView, NodeDisk, Observation, ZooKeeperView
from domain.observed.survey import NodeSurvey, Survey, ZooKeeperSurvey
from domain.observed.topic_directories import TopicOnDisk, on_disk
from domain.policy import MigrationPolicy

SUPPORTED_RELEASE = "3.9"
"""The release whose migration this product knows and was proven against, and the last one that has it."""

RELEASE = "inter.broker.protocol.version"

MOST_OBJECTS = 20
"""Findings of one kind; the observation has them all."""


@dataclass(frozen=True)
class Seen:
    """A complete observation with what people told us: what every check gets."""

    spec: ClusterSpec
    policy: MigrationPolicy
    observation: Observation
    zookeeper: ZooKeeperView
    kafka: KafkaView

    def name(self, node_id: int) -> str:
        return self.spec.node_name(node_id)

    def disk(self, node_id: int) -> NodeDisk:
        disk = self.observation.node(node_id).disk
        return disk if disk is not None else NodeDisk(file=None, log_dirs=())

    def properties(self, node_id: int) -> dict[str, str]:
        """Of values that a configuration provider gives what the broker runs with, where it says so."""
        file = self.disk(node_id).file
        return file.known if file is not None else {}

    def settings(self, node_id: int) -> dict[str, str]:
        """All values that are known of the node's file."""
        return self.properties(node_id)

    def unread(self, node_id: int, *keys: str) -> tuple[str, ...]:
        """Those of these keys whose values a configuration provider gives, and which were not read."""
        settings = self.settings(node_id)
        return tuple(key for key in keys if is_provided(settings.get(key, "")))

    def release_of(self, broker_id: int) -> str:
        """The broker's `inter.broker.protocol.version`, which is its release where the file has none."""
        return self.properties(broker_id).get(RELEASE, SUPPORTED_RELEASE).strip()


@dataclass(frozen=True)
class Surveyed(Seen):
    """With the survey that an assessment takes before the start."""

    survey: Survey

    def node(self, node_id: int) -> NodeSurvey:
        return self.survey.node(node_id)

    @cached_property
    def topics_on_disk(self) -> tuple[TopicOnDisk, ...]:
        """Topics whose ids in ZooKeeper and on disk are not the same."""
        looks = {broker.id: self.node(broker.id).look for broker in self.spec.brokers}
        disks = {broker_id: look.topic_ids if look is not None else None for broker_id, look in looks.items()}
        return tuple(on_disk(topic, disks) for topic in self.survey.topics)

    def settings(self, node_id: int) -> dict[str, str]:
        """All values that we keep of the node's file, and as `properties` what the broker runs with."""
        node = self.node(node_id)
        return {**self.properties(node_id), **node.settings, **node.running}

    @property
    def controller_settings(self) -> dict[str, str]:
        """What controllers take over from the first broker, as far as values are kept."""
        return self.settings(self.spec.brokers[0].id)

    def secrets_of(self, brokers: Iterable[BrokerSpec], key: str) -> dict[str, str]:
        """Digests of one key's value by node name; nodes without the key are left out."""
        found = {self.name(broker.id): self.node(broker.id).digests.get(key) for broker in brokers}
        return {name: digest for name, digest in found.items() if digest is not None}


OfLook = Callable[[Seen], Iterator[Finding]]
OfSurvey = Callable[[Surveyed], Iterator[Finding]]


@dataclass(frozen=True)
class Check:
    """An entry of the catalogue. `severity`: of its gravest finding. `source`: where it looks. `unverifiable`: what it means
    that it could not look; empty where it always can, once every part of the observation has answered.

    `of_look` needs the observation alone, and is asked again right before the first effect; `of_survey` needs the survey.
    """

    code: str
    holds: str
    because: str
    source: str
    severity: Severity = Severity.BLOCKER
    unverifiable: str = ""
    of_look: tuple[OfLook, ...] = ()
    of_survey: tuple[OfSurvey, ...] = ()


def of_zookeeper(
    code: str, check: Callable[[Surveyed, ZooKeeperSurvey], Iterator[Finding]], severity: Severity = Severity.BLOCKER
) -> OfSurvey:
    """A check of what ZooKeeper's tree holds; unverifiable where we may not read it."""

    def asked(seen: Surveyed) -> Iterator[Finding]:
        if seen.survey.zookeeper is not None:
            yield from check(seen, seen.survey.zookeeper)
        else:
            yield unverifiable(
                code,
                "ZooKeeper",
                seen.survey.why_missing("survey of zookeeper"),
                "everything that Kafka's copy reads can be read",
                "Name an identity that may read everything in digest_auth.",
                severity,
            )

    asked.__name__ = check.__name__
    return asked


def unverifiable(code: str, what: str, missing: str, expected: str, fix: str, severity: Severity = Severity.BLOCKER) -> Finding:
    """It could not be looked at, and why: never a pass."""
    return Finding(
        code=code, severity=severity, is_unverifiable=True, object=what, observed=missing, expected=expected, fix=fix
    )


NOT_READ = "given by a configuration provider, not read"
NOT_TOLD = "a configuration provider gives the value, and the broker does not report what it runs with"
READ_IT = (
    "Let the user of client_properties describe the cluster's configs (DescribeConfigs) and start the broker: it then "
    "reports the value itself. Or read the value on the node, compare it, and accept this finding."
)


def not_read(
    seen: Seen, code: str, node_id: int, keys: Iterable[str], expected: str, severity: Severity = Severity.BLOCKER
) -> Iterator[Finding]:
    """One for each of these keys whose value is not known. It is never resolved but on its node."""
    settings = seen.settings(node_id)
    for key in seen.unread(node_id, *keys):
        what, missing = f"{seen.name(node_id)} {key}", f"{key}={settings[key]}: {NOT_READ}"
        yield unverifiable(code, what, missing, expected, READ_IT, severity)


def some(names: Iterable[str], most: int = 5) -> str:
    """The first of many names, and how many more there are."""
    found = list(names)
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")
