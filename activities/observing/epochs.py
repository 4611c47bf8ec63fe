"""Who rules, and since which epoch, as ZooKeeper keeps it: `/controller`, `/controller_epoch`, `/migration`; and what a topic's
znode says.
"""

from dataclasses import dataclass

from activities.observing.zookeeper_view import CONTROLLER, CONTROLLER_EPOCH, MIGRATION
from activities.ports.zookeeper import Znode, ZooKeeperTree, object_in

TOPICS_AT_ONCE = 200
"""How many topics are asked for at once."""


@dataclass(frozen=True)
class Rule:
    """The three znodes at one moment. `None`: does not exist."""

    controller: Znode | None
    epoch: Znode | None
    migration: Znode | None

    @property
    def is_krafts(self) -> bool:
        """KRaft's claim outlives its session."""
        return self.controller is not None and self.controller.ephemeral_owner == 0

    @property
    def is_zookeepers(self) -> bool:
        return self.controller is not None and self.controller.ephemeral_owner != 0

    @property
    def leader(self) -> int | None:
        """Whose claim it is."""
        return integer_in(self.controller, "brokerid")

    @property
    def offset(self) -> int | None:
        """Up to here ZooKeeper has all that the quorum has. `None`: there is no copy, or nothing says so."""
        found = integer_in(self.migration, "kraft_metadata_offset")
        return found if found is not None and found > 0 else None

    @property
    def known_epoch(self) -> int:
        """The larger of ZooKeeper's epoch and the one of KRaft's claim."""
        return max(self.zookeeper_epoch, integer_in(self.controller, "kraftControllerEpoch") or 0)

    @property
    def zookeeper_epoch(self) -> int:
        text = self.epoch.data if self.epoch is not None else b""
        return int(text) if text.strip().isdigit() else 0


async def rule_of(tree: ZooKeeperTree) -> Rule:
    return Rule(*await tree.get_many((CONTROLLER, CONTROLLER_EPOCH, MIGRATION)))


def partitions_of(topic: Znode | None) -> tuple[str, ...]:
    """Numbers of the partitions that a topic's znode names."""
    partitions = object_in(topic).get("partitions")
    return tuple(partitions) if isinstance(partitions, dict) else ()


def replicas_in(topic: Znode | None, partition: str) -> tuple[int, ...]:
    """The replicas of a partition, as the topic's znode assigns them; empty where they cannot be parsed."""
    partitions = object_in(topic).get("partitions")
    replicas = partitions.get(partition) if isinstance(partitions, dict) else None
    is_parsed = isinstance(replicas, list) and all(isinstance(replica, int) for replica in replicas)
    return tuple(replicas) if isinstance(replicas, list) and is_parsed else ()


def integer_in(znode: Znode | None, key: str) -> int | None:
    """An integer of the JSON object in a znode; `None` where there is none."""
    value = object_in(znode).get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
