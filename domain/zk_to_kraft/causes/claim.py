"""`/controller` while ZooKeeper has the metadata: it is missing, persistent, or of a broker that is not registered."""

from collections.abc import Iterator

from domain.topic_ids import IDS_FIRST
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.case import Cause, Looked, cause, complaints
from domain.zk_to_kraft.failed_elections import FEATURE, MEND_FEATURE, MEND_OTHER, unread_znode
from domain.zk_to_kraft.situation import QuorumState
from domain.zk_to_kraft.waits import ZkWait

OF_ZOOKEEPER = frozenset({QuorumState.ABSENT, QuorumState.PRE_MIGRATION, QuorumState.UNKNOWN})
NO_CLAIM = -1
"""`kraftControllerEpoch` of a ZooKeeper controller, if the znode has that field."""


def claim_causes(looked: Looked) -> Iterator[Cause]:
    """Yield one cause at most. While a step works on brokers, a moment without a controller is expected."""
    zookeeper = looked.observation.zookeeper
    if zookeeper is None or looked.situation.quorum not in OF_ZOOKEEPER:
        return
    znode, brokers = zookeeper.controller, [b.id for b in looked.spec.brokers]
    if znode is None and zookeeper.broker_ids and not looked.in_hand:
        yield _unreadable(looked, brokers) or _nobody(looked, brokers)
    elif znode is not None and not znode.is_ephemeral and znode.kraft_epoch in {None, NO_CLAIM}:
        yield _of(
            looked,
            observed=f"it names broker {znode.broker_id}, and is persistent: no session holds it, so it was written by hand or "
            "restored from a backup. While it exists, no broker can become the controller, and brokers hear of no change",
            fix=f"{IDS_FIRST}In zkCli.sh: delete /controller. The brokers elect a controller immediately.",
        )
    elif znode is not None and znode.is_ephemeral and znode.broker_id not in {*zookeeper.broker_ids, *brokers}:
        yield _of(
            looked,
            observed=f"it names broker {znode.broker_id}, which is not registered: a program that is no broker of this cluster "
            "created it, or that broker has lost its registration",
            fix="Run `stat /controller` in zkCli.sh: ephemeralOwner is the session that holds it. Run `cons` and `dump` at the "
            "members: they show which client has that session. If that client is no broker of this cluster, end it. "
            f"{IDS_FIRST}Then delete /controller. The brokers elect a controller immediately.",
        )


def _unreadable(looked: Looked, brokers: list[int]) -> Cause | None:
    told = {name: path for i in brokers if (path := unread_znode(looked.hints.logs.get(i, ()))) for name in [looked.name(i)]}
    if not told:
        return None
    who, path = next(iter(told.items()))
    return _of(
        looked,
        observed=f"it does not exist: each elected broker fails before it is the controller, because {path} is not as Kafka "
        f"writes it (stack trace below `Error while electing or becoming controller` in the log of {who})",
        fix=MEND_FEATURE if path == FEATURE else MEND_OTHER,
    )


def _nobody(looked: Looked, brokers: list[int]) -> Cause:
    return _of(
        looked,
        observed="it does not exist: no broker is the controller, though brokers are registered" + complaints(looked, *brokers),
        fix="Wait some seconds: brokers elect a controller by themselves. If the znode is still missing, no broker can create "
        "it. Then look at the ACL of / in ZooKeeper (getAcl /), and in the brokers' logs for `Error while electing or becoming "
        "controller`.",
    )


def _of(looked: Looked, *, observed: str, fix: str) -> Cause:
    return cause(
        looked,
        "GF11",
        "/controller",
        ZkWait.NO_CONTROLLER,
        WaitReason.STATE_NOT_UNDERSTOOD,
        WaitReason.PREFLIGHT_BLOCKERS,
        observed=observed,
        expected="an ephemeral znode of the broker that is the controller",
        fix=fix,
    )
