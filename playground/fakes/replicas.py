"""`ReplicaAdmin` of a simulated cluster."""

from collections.abc import Collection, Mapping
from typing import TypeVar

from activities.ports.replicas import Targets
from domain.observed.replicas import Broker, Layout, Partition, Throttles
from domain.records import ClusterRecord
from playground.fakes.cluster import FakeCluster


class FakeReplicas:
    """`throttled`: what is set now; tests may write."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster
        self.throttled = Throttles()

    async def layout(self, cluster: ClusterRecord) -> Layout:
        """A look: time passes."""
        self._cluster.answer_or_silence(cluster)
        self._cluster.advance()
        serving, in_sync = self._cluster.serving(), set(self._cluster.in_sync())
        partitions = list[Partition]()
        for topic in sorted(self._cluster.others_topics(), key=lambda found: found.name):
            for number, replicas in enumerate(topic.assignment):
                adding, removing = self._cluster.moves.parts(topic.name, number)
                leader = self._cluster.leaders.of.get(f"{topic.name}-{number}", replicas[0])
                partitions.append(
                    Partition(
                        topic=topic.name,
                        number=number,
                        replicas=replicas,
                        leader=leader if leader in serving else None,
                        in_sync=tuple(i for i in replicas if i in in_sync and i not in adding),
                        size=self._cluster.log_ends.get((topic.name, number), 0),
                        topic_id=topic.topic_id or "",
                        adding=adding,
                        removing=removing,
                    )
                )
        return Layout(tuple(Broker(i, None) for i in serving), tuple(partitions))

    async def reassign(self, cluster: ClusterRecord, targets: Targets) -> dict[tuple[str, int], str]:
        self._cluster.answer_or_silence(cluster)
        self._cluster.topics, refused = self._cluster.moves.ask(
            self._cluster.topics, targets, [broker.id for broker in self._cluster.spec.brokers]
        )
        return refused

    async def throttles(self, cluster: ClusterRecord, brokers: Collection[int], topics: Collection[str]) -> Throttles:
        self._cluster.answer_or_silence(cluster)
        known = {topic.name for topic in self._cluster.topics} & set(topics)
        return Throttles(
            {broker: dict(self.throttled.brokers.get(broker, {})) for broker in brokers},
            dict(self.throttled.default),
            {topic: dict(self.throttled.topics.get(topic, {})) for topic in sorted(known)},
        )

    async def set_throttles(self, cluster: ClusterRecord, wanted: Throttles) -> None:
        self._cluster.answer_or_silence(cluster)
        self.throttled = Throttles(
            _merged(self.throttled.brokers, wanted.brokers),
            self.throttled.default,
            _merged(self.throttled.topics, wanted.topics),
        )


K = TypeVar("K")


def _merged(before: Mapping[K, Mapping[str, str]], wanted: Mapping[K, Mapping[str, str]]) -> dict[K, dict[str, str]]:
    """An empty value removes one."""
    both = {key: {**before.get(key, {}), **wanted.get(key, {})} for key in {**before, **wanted}}
    return {key: {name: value for name, value in values.items() if value} for key, values in both.items()}
