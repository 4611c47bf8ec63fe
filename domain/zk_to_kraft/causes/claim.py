"""Who holds `/controller` as long as ZooKeeper has the metadata: nobody, nobody's process, or a broker that is not there."""

from collections.abc import Iterator

from domain.decisions import WaitReason
from domain.zk_to_kraft.causes.case import Cause, Looked, cause, complaints
from domain.zk_to_kraft.logs.failed_elections import FEATURE, MEND_FEATURE, MEND_OTHER, unread_znode
from domain.zk_to_kraft.situation import QuorumState
from domain.zk_to_kraft.topic_ids import IDS_FIRST

OF_ZOOKEEPER = frozenset({QuorumState.ABSENT, QuorumState.PRE_MIGRATION, QuorumState.UNKNOWN})
NO_CLAIM = -1
"""Of a ZooKeeper controller in `kraftControllerEpoch`, where it has that."""


def claim_causes(looked: Looked) -> Iterator[Cause]:
    """One at the most. While a step works on brokers a moment without a controller is its own affair."""
    zookeeper = looked.observation.zookeeper
    if zookeeper is None or looked.situation.quorum not in OF_ZOOKEEPER:
        return
    znode, brokers = zookeeper.controller, [b.id for b in looked.spec.brokers]
    if znode is None and zookeeper.broker_ids and not looked.in_hand:
        yield _unreadable(looked, brokers) or _nobody(looked, brokers)
    elif znode is not None and not znode.is_ephemeral and znode.kraft_epoch in {None, NO_CLAIM}:
        yield _of(
            looked,
            observed=f"it names broker {znode.broker_id}, and is persistent: no process holds it, somebody has written it, "
            "or put it back from a backup. As long as it is there nobody can become the controller, and brokers hear of no "
            "change",
            fix=f"{IDS_FIRST}In zkCli.sh: delete /controller. The brokers elect a controller at once.",
        )
    elif znode is not None and znode.is_ephemeral and znode.broker_id not in {*zookeeper.broker_ids, *brokers}:
        yield _of(
            looked,
            observed=f"it names broker {znode.broker_id}, which is not registered: somebody else's session has made it, or "
            "that broker has lost its registration",
            fix="`stat /controller` says by ephemeralOwner which session holds it, `cons` and `dump` at the members whose "
            f"that is: end who is no broker of this cluster. {IDS_FIRST}Then delete /controller: the brokers elect a "
            "controller at once.",
        )


def _unreadable(looked: Looked, brokers: list[int]) -> Cause | None:
    told = {name: path for i in brokers if (path := unread_znode(looked.hints.logs.get(i, ()))) for name in [looked.name(i)]}
    if not told:
        return None
    who, path = next(iter(told.items()))
    return _of(
        looked,
        observed=f"it does not exist: brokers are elected, and fail before they are the controller, because {path} is not as "
        f"Kafka writes it (trace below `Error while electing or becoming controller` in the log of {who})",
        fix=MEND_FEATURE if path == FEATURE else MEND_OTHER,
    )


def _nobody(looked: Looked, brokers: list[int]) -> Cause:
    return _of(
        looked,
        observed="it does not exist: no broker is the controller, though brokers are registered" + complaints(looked, *brokers),
        fix="One is elected within seconds. If it lasts, no broker can create it: look at the ACL of / in ZooKeeper "
        "(getAcl /), and at the brokers' logs for `Error while electing or becoming controller`.",
    )


def _of(looked: Looked, *, observed: str, fix: str) -> Cause:
    return cause(
        looked,
        "GF11",
        "/controller",
        WaitReason.NO_CONTROLLER,
        WaitReason.STATE_NOT_UNDERSTOOD,
        WaitReason.PREFLIGHT_BLOCKERS,
        observed=observed,
        expected="an ephemeral znode of the broker that is the controller",
        fix=fix,
    )
