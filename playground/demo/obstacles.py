"""What stands in the way of the demo's migration: put there by hand, named by a plan, mended as the plan says."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from kazoo.exceptions import NoNodeError

from playground.by_hand import MIGRATION, ByHand

LEFT_OVER = {
    "version": 0,
    "kraft_controller_id": 3001,
    "kraft_controller_epoch": 3,
    "kraft_metadata_offset": 105,
    "kraft_metadata_epoch": 3,
}
"""As a way back by hand leaves it that has forgotten it."""
TOPIC, DEAD = "/brokers/topics/defaults_only", 9
POISONED = "/config/users/carol"
POISON = {"version": 1, "config": {"producer_byte_rate": "fast"}}


@dataclass(frozen=True)
class Obstacle:
    """`code` and `object`: of the finding that names it; of an object its beginning. `put` and `mend` say what they did."""

    code: str
    object: str
    put: Callable[[ByHand], str]
    mend: Callable[[ByHand], str]


def _leave_migration(by_hand: ByHand) -> str:
    by_hand.put_znode(MIGRATION, LEFT_OVER)
    return f"somebody has left {MIGRATION} of an earlier attempt in ZooKeeper"


def _delete_migration(by_hand: ByHand) -> str:
    by_hand.delete_znode(MIGRATION)
    return f"{MIGRATION} is deleted: no KRaft controller runs"


def _assign_to_the_dead(by_hand: ByHand) -> str:
    topic = by_hand.znode(TOPIC) or {}
    assigned = {number: [*replicas, DEAD] for number, replicas in topic["partitions"].items()}
    by_hand.put_znode(TOPIC, topic | {"partitions": assigned})
    return f"broker {DEAD} was switched off for good, and still has replicas of a topic"


def _take_from_the_dead(by_hand: ByHand) -> str:
    topic = by_hand.znode(TOPIC) or {}
    assigned = {number: [r for r in replicas if r != DEAD] for number, replicas in topic["partitions"].items()}
    by_hand.put_znode(TOPIC, topic | {"partitions": assigned})
    return f"the replicas of broker {DEAD} are taken out of the assignment"


def _poison(by_hand: ByHand) -> str:
    by_hand.put_znode(POISONED, POISON)
    return f"a script has written a quota that is no number into {POISONED}"


def _cure(by_hand: ByHand) -> str:
    with by_hand.zookeeper() as client:
        try:
            client.delete(POISONED)
        except NoNodeError:
            return f"{POISONED} is gone already"
    return f"{POISONED} is deleted: {json.dumps(POISON['config'])} never worked"


FOUND_BY_LOOKING = (
    Obstacle("PF10", MIGRATION, _leave_migration, _delete_migration),
    Obstacle("PF12", f"broker {DEAD}", _assign_to_the_dead, _take_from_the_dead),
)
FOUND_BY_REHEARSAL = (Obstacle("RH01", POISONED, _poison, _cure),)
