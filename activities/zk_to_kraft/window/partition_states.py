"""The states of all partitions in ZooKeeper, made ready for a ZooKeeper controller before one is elected.

It reads them once, and needs two things of them: an epoch of its own that is as large as the largest in any state (else it does
not touch that partition, KAFKA-20488), and versions of the znodes that are no smaller than the partition epochs that brokers
know from the quorum (else they pass over what it says: `partition_epochs`). The first is told here, the second mended: each
state that lags behind is set to the very data that it has, until its version is large enough.
"""

import base64
import binascii
import json
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass

from activities.observing.epochs import TOPICS_AT_ONCE, Rule, integer_in, partitions_of
from activities.observing.zookeeper_view import TOPICS
from activities.ports.zookeeper import SetZnode, Znode, ZooKeeperTree
from domain.errors import Transient
from domain.quorum_log.partition_epochs import UUID_BYTES, PartitionEpochs

CHANGES_AT_ONCE = 1000
"""In one transaction, which must stay below a megabyte (jute.maxbuffer)."""


@dataclass(frozen=True)
class PartitionState:
    """One partition's state as it was read. `topic_id`: 16 bytes; empty where the topic has none."""

    topic_id: bytes
    partition: int
    path: str
    znode: Znode


class PartitionStates:
    """What one attempt knows of them.

    `largest_epoch`: of the controllers that wrote them; `None` before they were read. `raised`: paths of those that lagged.
    `is_unread`: a ZooKeeper controller rules, and somebody has written states since that it has not read. `sample`: a change of
    one of them, to learn whether it would be allowed.
    """

    def __init__(self, tree: ZooKeeperTree) -> None:
        self._tree = tree
        self._epochs: tuple[PartitionEpochs, ...] = ()
        self._unsettled: set[bytes] = set()
        self.largest_epoch: int | None = None
        self.raised: set[str] = set()
        self.is_unread = False
        self.sample: tuple[SetZnode, ...] = ()

    async def survey(self, epochs: Sequence[PartitionEpochs] = (), rule: Rule | None = None) -> int:
        """Read all; raise what lags behind these epochs. What is being written meanwhile is left to `follow`.

        `rule`: who rules. Returns the largest epoch.
        """
        largest, self._unsettled, self.is_unread = 0, set(), False
        async for states in states_of(self._tree):
            self.is_unread |= rule is not None and any(_is_behind_its_back(state.znode, rule) for state in states)
            self.sample = (
                tuple(SetZnode(state.path, state.znode.data, state.znode.version) for state in states[:1]) or self.sample
            )
            largest = max(largest, *(integer_in(state.znode, "controller_epoch") or 0 for state in states), 0)
            self._unsettled |= {state.topic_id for state in await self._raise(states, epochs)}
        self._epochs, self.largest_epoch = tuple(epochs), largest
        return largest

    async def follow(self, epochs: Sequence[PartitionEpochs]) -> None:
        """The same of the topics that have changed since, while nobody writes them."""
        changed = set(self._unsettled)
        for now in epochs:
            changed |= frozenset.intersection(*map(now.changed_since, (PartitionEpochs(), *self._epochs)))
        if not changed:
            return
        async for states in states_of(self._tree, changed):
            for state in await self._raise(states, epochs):
                raise Transient(f"{state.path} was written by another process while the controllers were dead")
        self._epochs, self._unsettled = tuple(epochs), set()

    def forget_raised(self) -> None:
        """Whoever is elected from here on reads them as they are."""
        self.raised, self.is_unread = set(), False

    async def _raise(self, states: Sequence[PartitionState], epochs: Sequence[PartitionEpochs]) -> list[PartitionState]:
        """Those that somebody has written meanwhile."""
        changes = [
            (state, SetZnode(state.path, state.znode.data, version))
            for state in states
            for version in range(state.znode.version, max((e.of(state.topic_id, state.partition) for e in epochs), default=0))
        ]
        missed: list[PartitionState] = []
        for start in range(0, len(changes), CHANGES_AT_ONCE):
            some = changes[start : start + CHANGES_AT_ONCE]
            if await self._tree.commit([change for _, change in some]):
                self.raised |= {state.path for state, _ in some}
            else:
                missed += [state for state, _ in some]
        return missed


async def states_of(tree: ZooKeeperTree, topic_ids: Collection[bytes] = ()) -> AsyncIterator[list[PartitionState]]:
    """The states of these topics' partitions, or of all where none is named, some topics at once.

    What does not exist is passed over.
    """
    topics = [f"{TOPICS}/{name}" for name in await tree.children(TOPICS) or ()]
    for start in range(0, len(topics), TOPICS_AT_ONCE):
        paths = topics[start : start + TOPICS_AT_ONCE]
        places = [
            (topic_id, int(number), f"{path}/partitions/{number}/state")
            for path, znode in zip(paths, await tree.get_many(paths), strict=True)
            if (topic_id := _topic_id(znode)) in topic_ids or not topic_ids
            for number in partitions_of(znode)
            if number.isdecimal()
        ]
        found = await tree.get_many([path for *_, path in places])
        yield [PartitionState(*place, znode) for place, znode in zip(places, found, strict=True) if znode is not None]


def _is_behind_its_back(state: Znode, rule: Rule) -> bool:
    """A ZooKeeper controller writes its own epoch, so one that is smaller and was written since is somebody else's."""
    ruler = rule.controller
    if ruler is None or not rule.is_zookeepers:
        return False
    return state.modified_zxid > ruler.modified_zxid and (integer_in(state, "controller_epoch") or 0) < rule.zookeeper_epoch


def _topic_id(topic: Znode | None) -> bytes:
    """Of a topic's znode (TopicZNode of kafka.zk.ZkData): base64 for URLs, without padding."""
    try:
        text = json.loads(topic.data).get("topic_id") if topic is not None else None
        found = base64.urlsafe_b64decode(f"{text}==") if isinstance(text, str) else b""
    except (ValueError, AttributeError, binascii.Error):
        return b""
    return found if len(found) == UUID_BYTES else b""
