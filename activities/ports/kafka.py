"""Brokers, through the Kafka protocol, their gauges and their listeners."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from domain.cluster import MetricsEndpoint
from domain.observed.observation import KafkaView, NodeMetrics
from domain.observed.survey import BrokerLogDir, StartedWith
from domain.offsets import GroupOffset, PartitionOffsets
from domain.records import ClusterRecord


@dataclass(frozen=True)
class Led:
    """A topic as one broker knows it: the leader of each partition, `None` where there is none, and its replicas in order."""

    leaders: dict[int, int | None]
    replicas: dict[int, tuple[int, ...]]


class KafkaClient(Protocol):
    """Does what clients do. Each call asks the broker with this id; what only the controller may do goes to whom that broker
    names as controller. `Transient` also where a broker refuses it, with the error's name; `Permanent` where we have no right
    to it, or where no topic may be deleted; `Absent` where there is no such topic. Close it."""

    async def alive(self) -> tuple[int, ...]:
        """Brokers that are registered, in order."""

    async def topics(self, broker: int) -> tuple[str, ...]:
        """Names of all topics that this broker knows, reserved ones included."""

    async def led(self, topic: str, broker: int | None = None) -> Led | None:
        """`None` where this broker, or without one any, does not know the topic."""

    async def create_topic(
        self,
        broker: int,
        topic: str,
        assignment: Sequence[Sequence[int]],
        configs: Mapping[str, str],
        *,
        is_trial: bool = False,
    ) -> None:
        """There already is fine. Brokers learn of it later. `is_trial`: see only whether it would be made."""

    async def delete_topic(self, broker: int, topic: str) -> None:
        """Not there is fine. It is gone later."""

    async def set_topic_config(self, broker: int, topic: str, name: str, value: str) -> None: ...

    async def topic_config(self, broker: int, topic: str, name: str) -> str | None: ...

    async def broker_config(self, broker: int, name: str) -> str | None:
        """As the broker runs with it."""

    async def produce(self, broker: int, topic: str, partition: int, value: bytes) -> int:
        """Write one message to the partition's leader, acks=all: its offset."""

    async def fetch(self, broker: int, topic: str, partition: int, offset: int) -> tuple[bytes, ...]:
        """Values from this offset on, as far as the leader has them committed."""

    async def denied_groups(self, broker: int) -> tuple[str, ...] | None:
        """Groups that an ACL of the kind of `deny_group` is about; `None` where the broker has no authorizer."""

    async def deny_group(self, broker: int, group: str) -> None:
        """Add an ACL: the principal of this name may not read the group of this name. There already is fine."""

    async def forget_group(self, broker: int, group: str) -> None:
        """Remove that ACL. Not there is fine."""

    async def scram_users(self, broker: int) -> tuple[str, ...]:
        """Users with a SCRAM credential."""

    async def give_scram(self, broker: int, user: str) -> None:
        """Give a user a SCRAM-SHA-512 credential of random bytes that nobody keeps."""

    async def take_scram(self, broker: int, user: str) -> None:
        """Remove it. Not there is fine."""

    async def close(self) -> None: ...


class KafkaAdmin(Protocol):
    """What brokers say through the Kafka protocol, reserved topics (`domain.canaries`) left out."""

    async def open_client(self, cluster: ClusterRecord) -> KafkaClient:
        """A client with connections of its own."""

    async def view(self, cluster: ClusterRecord) -> KafkaView: ...

    async def ask_broker(self, cluster: ClusterRecord, broker_id: int, address: str, seconds: float) -> None:
        """Ask who is at this address, and nobody else, for the least that a broker answers, and whether it is that one.
        `Transient` where no answer comes in so many seconds, or another broker's (`Obstacle.ANOTHERS`), with what it does
        instead, as a clause. Who does not let us ask for his settings is taken for whom he should be."""

    async def log_dirs(self, cluster: ClusterRecord) -> tuple[BrokerLogDir, ...]:
        """Those of every broker that is alive, with whether the broker has given one up."""

    async def sizes(self, cluster: ClusterRecord, partitions: Mapping[int, Sequence[str]]) -> dict[str, int]:
        """Bytes of these partitions, such as `orders-3`, at the brokers that they are given by; none of what is not there."""

    async def started_with(self, cluster: ClusterRecord, brokers: Sequence[int]) -> dict[int, StartedWith]:
        """What each of these brokers runs with of its file. `Permanent` where we may not ask."""

    async def offsets(self, cluster: ClusterRecord) -> tuple[PartitionOffsets, ...]:
        """Of every partition, as its leader says. `Transient` while one has none."""

    async def group_offsets(self, cluster: ClusterRecord) -> tuple[GroupOffset, ...]:
        """All that consumer groups have committed. `Transient` while a group's coordinator cannot tell."""

    async def elect_preferred(self, cluster: ClusterRecord) -> int:
        """Make the preferred replica of each partition lead that is in sync and does not: of how many it does now."""


class ClusterMetrics(Protocol):
    """Reads one node's gauges. `Transient` when the endpoint does not answer: unknown, never zero."""

    async def read(self, endpoint: MetricsEndpoint) -> NodeMetrics: ...


@dataclass(frozen=True)
class LookedUp:
    """A name's numbers. `why_not`: in words why this host does not resolve it, or not in time; `None` also where nobody was
    free to ask."""

    numbers: tuple[str, ...] = ()
    why_not: str | None = None


class Listeners(Protocol):
    """Looks at a node from outside: a process that somebody started another way is in no pid file, and answers all the same."""

    async def is_answering(self, host: str, port: int) -> bool:
        """Whether anybody accepts connections there. False also when nothing comes back within a second or two. Raises
        `Transient` where this host cannot even ask."""

    async def is_cut_off(self, host: str, port: int) -> bool:
        """Whether connections are reset there as soon as they are made, as no Kafka does. Takes a part of a second."""

    async def look_up(self, host: str) -> LookedUp: ...
