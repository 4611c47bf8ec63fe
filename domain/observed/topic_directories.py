"""`TopicOnDisk`: a topic's znode beside the directories of its partitions, so that the ids in both can be compared."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from domain.observed.parts import ObservedPart

PRESENT_VERSION = 3
"""Version of the JSON in `/brokers/topics/NAME` since topics have ids (TopicZNode, ZkData.scala)."""


class TopicZnode(ObservedPart):
    """`/brokers/topics/NAME`. `content`: its JSON object; empty: it cannot be parsed. `version`: of the znode's data."""

    name: str
    content: str
    version: int

    @property
    def path(self) -> str:
        return f"/brokers/topics/{self.name}"

    @property
    def id(self) -> str | None:
        return self._parsed.get("topic_id") or None

    @property
    def assigned(self) -> frozenset[tuple[int, str]]:
        """Broker id and directory name of every replica."""
        partitions = self._parsed.get("partitions") or {}
        return frozenset((broker, f"{self.name}-{number}") for number, replicas in partitions.items() for broker in replicas)

    def with_id(self, topic_id: str) -> str:
        """The JSON with this id and all else as it is."""
        empty: dict[str, object] = {"partitions": {}, "adding_replicas": {}, "removing_replicas": {}}
        content = {"version": PRESENT_VERSION, "topic_id": topic_id, **empty, **self._parsed}
        return json.dumps(content | {"version": PRESENT_VERSION, "topic_id": topic_id}, separators=(",", ":"))

    @property
    def _parsed(self) -> dict[str, Any]:
        return dict(json.loads(self.content)) if self.content else {}


class DiskIds(ObservedPart):
    """What one broker has on disk. `without`: directories without an id. `ids`: by directory, where ZooKeeper has another id
    for the topic, or none."""

    without: tuple[str, ...] = ()
    ids: dict[str, str] = Field(default_factory=dict)


class TopicDirectory(ObservedPart):
    """A partition's directory. `id`: in its `partition.metadata`; `None`: there is none. `is_assigned`: by the znode."""

    broker_id: int
    path: str
    id: str | None
    is_assigned: bool


class TopicOnDisk(ObservedPart):
    """`directories`: those whose id is not the znode's. `unread`: brokers with a replica that were not looked at."""

    znode: TopicZnode
    directories: tuple[TopicDirectory, ...]
    unread: tuple[int, ...] = ()


def name_of(path: str) -> str:
    """The name of a partition's directory: `orders-0`."""
    return path.rpartition("/")[2]


def topic_of(path: str) -> str:
    """`/data/orders-0` is of `orders`."""
    return name_of(path).rpartition("-")[0]


def on_disk(znode: TopicZnode, disks: Mapping[int, DiskIds | None]) -> TopicOnDisk:
    """`disks`: by broker id; `None`: it could not be looked at."""
    directories = (
        TopicDirectory(broker_id=broker_id, path=path, id=found, is_assigned=(broker_id, name_of(path)) in znode.assigned)
        for broker_id, disk in disks.items()
        for path, found in _of_disk(disk)
        if topic_of(path) == znode.name
    )
    replicas = {broker_id for broker_id, _ in znode.assigned} or set(disks)
    unread = sorted(broker_id for broker_id in replicas if disks.get(broker_id) is None)
    return TopicOnDisk(
        znode=znode, directories=tuple(sorted(directories, key=lambda d: (d.broker_id, d.path))), unread=tuple(unread)
    )


def _of_disk(disk: DiskIds | None) -> Iterator[tuple[str, str | None]]:
    if disk is not None:
        yield from ((path, None) for path in disk.without)
        yield from disk.ids.items()
