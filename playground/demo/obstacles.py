"""What stands in the way of the demo's migration: put there by hand, named by a plan, mended as the plan says."""

from collections.abc import Callable
from dataclasses import dataclass

from playground.by_hand import MIGRATION, ByHand
from playground.passwords import encrypted

LEFT_OVER = {
    "version": 0,
    "kraft_controller_id": 3001,
    "kraft_controller_epoch": 3,
    "kraft_metadata_offset": 105,
    "kraft_metadata_epoch": 3,
}
"""As a way back by hand leaves it that has forgotten it."""
TOPIC, DEAD = "/brokers/topics/defaults_only", 9
PAYMENTS, PAYMENTS_ZNODE, CONTROLLER = "payments", "/brokers/topics/payments", "/controller"
POISONED, KEY = "/config/brokers/2", "listener.name.internal.ssl.keystore.password"
SECRET, OLDER_SECRET = "not-a-real-secret", "not-the-secret-of-today"
"""Of the encoder: what the brokers' files say, and what was there when the password was set."""


@dataclass(frozen=True)
class Obstacle:
    """`code` and `object`: of the finding that names it; of an object its beginning. `put` and `mend` say what they did."""

    code: str
    object: str
    put: Callable[[ByHand], str]
    mend: Callable[[ByHand], str]


def _leave_migration(by_hand: ByHand) -> str:
    by_hand.put_znode(MIGRATION, LEFT_OVER)
    return f"{MIGRATION} of an earlier attempt was left in ZooKeeper"


def _delete_migration(by_hand: ByHand) -> str:
    by_hand.delete_znode(MIGRATION)
    return f"as the fix says, the demo deletes {MIGRATION}: no KRaft controller runs"


def _assign_to_the_dead(by_hand: ByHand) -> str:
    topic = by_hand.znode(TOPIC) or {}
    assigned = {number: [*replicas, DEAD] for number, replicas in topic["partitions"].items()}
    by_hand.put_znode(TOPIC, topic | {"partitions": assigned})
    return f"broker {DEAD} was switched off for good, and still has replicas of a topic"


def _take_from_the_dead(by_hand: ByHand) -> str:
    topic = by_hand.znode(TOPIC) or {}
    assigned = {number: [r for r in replicas if r != DEAD] for number, replicas in topic["partitions"].items()}
    by_hand.put_znode(TOPIC, topic | {"partitions": assigned})
    return f"as the fix says, the demo reassigns the partitions of broker {DEAD}: the others' replicas are enough"


def _lose_the_topic_id(by_hand: ByHand) -> str:
    topic = by_hand.znode(PAYMENTS_ZNODE) or {}
    by_hand.put_znode(PAYMENTS_ZNODE, {key: value for key, value in topic.items() if key != "topic_id"})
    return f"an old tool has written {PAYMENTS_ZNODE} again, without its topic_id"


def _put_the_topic_id_back(by_hand: ByHand) -> str:
    topic = by_hand.znode(PAYMENTS_ZNODE) or {}
    by_hand.put_znode(PAYMENTS_ZNODE, topic | {"topic_id": by_hand.topic_id_on_disk(PAYMENTS)})
    by_hand.delete_znode(CONTROLLER)
    return "as the fix says, the demo puts the id of partition.metadata back, and elects a controller afterwards"


def _forget_the_secret(by_hand: ByHand) -> str:
    """Nobody has noticed: a broker that cannot open it says so in its log, and goes on. The brokers run with the secret: an
    edit that waits for a restart would be what a plan names."""
    for broker in by_hand.broker_ids:
        by_hand.put_into_force(broker, {"password.encoder.secret": SECRET})
    znode = by_hand.znode(POISONED) or {}
    hidden = {KEY: encrypted("not-a-real-password", OLDER_SECRET)}
    by_hand.put_znode(POISONED, znode | {"config": znode["config"] | hidden})
    return "password.encoder.secret was changed once, and a password of broker 2 is still encrypted with the older one"


def _remove_the_password(by_hand: ByHand) -> str:
    znode = by_hand.znode(POISONED) or {}
    kept = {key: value for key, value in znode["config"].items() if key != KEY}
    by_hand.put_znode(POISONED, znode | {"config": kept})
    return f"instead of setting it again the demo removes {KEY} of broker 2: no listener needs it any more"


FOUND_BY_LOOKING = (
    Obstacle("PF10", MIGRATION, _leave_migration, _delete_migration),
    Obstacle("PF12", f"broker {DEAD}", _assign_to_the_dead, _take_from_the_dead),
    # Last: the controller that is elected reads the assignments, and must not find the dead broker in them.
    Obstacle("PF17", f"topic {PAYMENTS}", _lose_the_topic_id, _put_the_topic_id_back),
)
FOUND_BY_REHEARSAL = (Obstacle("RH01", POISONED, _forget_the_secret, _remove_the_password),)
