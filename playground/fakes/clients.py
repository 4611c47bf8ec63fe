"""What clients do in a simulated cluster, and what becomes of it in ZooKeeper. A write is acknowledged by the partition's
leader, while enough replicas are in sync.
"""

from collections.abc import Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING

from activities.ports.kafka import Led
from domain.errors import Absent, Permanent, Transient
from playground.fakes.migration_driver import DriverState
from playground.fakes.topics import FakeTopic
from playground.fakes.znodes import encoded, kraft_epoch

if TYPE_CHECKING:
    from playground.fakes.cluster import FakeCluster

SCRAM = "SCRAM-SHA-512"


class ClientSide:
    """Configs, ACLs, users and messages of a cluster. What ZooKeeper has not got yet is `unwritten`, by path; `None`: to go."""

    def __init__(self) -> None:
        self.configs: dict[str, dict[str, str]] = {}
        self.denied: set[str] = set()
        self.users: set[str] = set()
        self.messages: dict[tuple[str, int], list[bytes]] = {}
        self.unwritten: dict[str, bytes | None] = {}
        self.has_authorizer = True

    def write_to(self, znodes: MutableMapping[str, bytes]) -> None:
        for path, data in self.unwritten.items():
            if data is not None:
                znodes[path] = data
            elif path in znodes:
                del znodes[path]
        self.unwritten.clear()


class FakeClient:
    """A `KafkaClient`."""

    def __init__(self, cluster: "FakeCluster") -> None:
        self._cluster = cluster
        self.is_closed = False

    @property
    def _side(self) -> ClientSide:
        return self._cluster.clients

    async def alive(self) -> tuple[int, ...]:
        return self._serving()

    async def topics(self, broker: int) -> tuple[str, ...]:
        self._ensure(broker)
        return tuple(sorted({topic.name for topic in self._cluster.topics} | self._cluster.faults.remembered_topics))

    async def led(self, topic: str, broker: int | None = None) -> Led | None:
        self._ensure(broker)
        found = self._find(topic)
        if found is None:
            return None
        leaders = {p: self._leader(replicas) for p, replicas in enumerate(found.assignment)}
        return Led(leaders, dict(enumerate(found.assignment)))

    async def create_topic(
        self,
        broker: int,
        topic: str,
        assignment: Sequence[Sequence[int]],
        configs: Mapping[str, str],
        *,
        is_trial: bool = False,
    ) -> None:
        self._ensure_led(broker, "topic")
        if is_trial or self._find(topic) is not None:
            return
        min_isr = int(configs.get("min.insync.replicas", "2"))
        self._cluster.create_topic(FakeTopic(topic, tuple(tuple(replicas) for replicas in assignment), min_isr))
        self._side.configs[topic] = dict(configs)
        self._write_configs(topic)

    async def delete_topic(self, broker: int, topic: str) -> None:
        self._ensure_led(broker, "removal")
        if self._find(topic) is None:
            return
        self._cluster.delete_topic(topic)
        self._side.configs.pop(topic, None)
        self._side.messages = {key: found for key, found in self._side.messages.items() if key[0] != topic}
        self._write(f"/config/topics/{topic}", None)

    async def set_topic_config(self, broker: int, topic: str, name: str, value: str) -> None:
        self._ensure_led(broker, "config")
        if self._find(topic) is None:
            raise Absent(f"{topic}: there is none")
        self._side.configs[topic][name] = value
        self._write_configs(topic)

    async def topic_config(self, broker: int, topic: str, name: str) -> str | None:
        self._ensure(broker)
        return self._side.configs.get(topic, {}).get(name)

    async def broker_config(self, broker: int, name: str) -> str | None:
        self._ensure(broker)
        is_deletable = "removal" not in self._cluster.faults.forbidden_canaries
        return {"min.insync.replicas": "2", "delete.topic.enable": str(is_deletable).lower()}.get(name)

    async def produce(self, broker: int, topic: str, partition: int, value: bytes) -> int:
        self._ensure(broker)
        found = self._find(topic)
        in_sync = self._cluster.in_sync()
        if "messages" in self._cluster.faults.forbidden_canaries:
            raise Permanent("Kafka: refused us: messages")
        if "messages" in self._cluster.faults.failing_canaries:
            raise Transient(f"{topic}-{partition}: not written")
        if found is None:
            raise Absent(f"{topic}: there is none")
        replicas = found.assignment[partition]
        if self._leader(replicas) != broker or len(set(replicas) & set(in_sync)) < found.min_isr:
            raise Transient(f"{topic}-{partition}: broker {broker} does not lead it, or too few replicas are in sync")
        messages = self._side.messages.setdefault((topic, partition), [])
        messages.append(value)
        return len(messages) - 1

    async def fetch(self, broker: int, topic: str, partition: int, offset: int) -> tuple[bytes, ...]:
        self._ensure(broker)
        if self._find(topic) is None:
            raise Absent(f"{topic}: there is none")
        return tuple(self._side.messages.get((topic, partition), ())[offset:])

    async def denied_groups(self, broker: int) -> tuple[str, ...] | None:
        self._ensure(broker)
        return tuple(sorted(self._side.denied)) if self._side.has_authorizer else None

    async def deny_group(self, broker: int, group: str) -> None:
        self._ensure_led(broker, "acl")
        self._side.denied.add(group)
        self._write(f"/kafka-acl/Group/{group}", encoded({"version": 1, "acls": []}))

    async def forget_group(self, broker: int, group: str) -> None:
        self._ensure_led(broker, "removal")
        self._side.denied.discard(group)
        self._write(f"/kafka-acl/Group/{group}", None)

    async def scram_users(self, broker: int) -> tuple[str, ...]:
        self._ensure(broker)
        return tuple(sorted(self._side.users))

    async def give_scram(self, broker: int, user: str) -> None:
        self._ensure_led(broker, "scram")
        self._side.users.add(user)
        self._write(f"/config/users/{user}", encoded({"version": 1, "config": {SCRAM: "salt=…"}}))

    async def take_scram(self, broker: int, user: str) -> None:
        """In ZooKeeper mode a znode without any config may stay."""
        self._ensure_led(broker, "removal")
        self._side.users.discard(user)
        is_known = f"/config/users/{user}" in {*self._cluster.znodes, *self._side.unwritten}
        if is_known:
            self._write(f"/config/users/{user}", encoded({"version": 1, "config": {}}))

    async def close(self) -> None:
        self.is_closed = True

    def _find(self, name: str) -> FakeTopic | None:
        return next((topic for topic in self._cluster.topics if topic.name == name), None)

    def _leader(self, replicas: Sequence[int]) -> int | None:
        in_sync = self._cluster.in_sync()
        return next((replica for replica in replicas if replica in in_sync), None)

    def _serving(self) -> tuple[int, ...]:
        serving = self._cluster.serving()
        if self.is_closed or self._cluster.faults.silent_kafka or not serving:
            raise Transient("Kafka: does not answer")
        return serving

    def _ensure(self, broker: int | None) -> None:
        if broker is not None and broker not in self._serving():
            raise Transient(f"broker {broker}: does not answer")

    def _ensure_led(self, broker: int, canary: str) -> None:
        self._ensure(broker)
        if self._cluster.side.controller is None and self._cluster.quorum.leader is None:
            raise Transient("there is no controller")
        if canary in self._cluster.faults.forbidden_canaries:
            raise Permanent(f"Kafka: refused us: {canary}")
        if canary in self._cluster.faults.failing_canaries:
            raise Transient(f"refused: {canary}")

    def _write_configs(self, topic: str) -> None:
        self._write(f"/config/topics/{topic}", encoded({"version": 1, "config": self._side.configs[topic]}))

    def _write(self, path: str, data: bytes | None) -> None:
        """At once where ZooKeeper leads; what KRaft acknowledges, ZooKeeper gets a look later."""
        self._side.unwritten[path] = data
        if kraft_epoch(self._cluster.znodes) is None:
            self._side.write_to(self._cluster.znodes)


def may_write_now(state: DriverState, is_stuck: bool) -> bool:
    return state is DriverState.DUAL_WRITE and not is_stuck
