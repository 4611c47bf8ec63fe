"""Whether replicas lag because what their leader sends does not get away from its machine. Pure.

Nothing is refused and nothing is lost: small requests are quick, and the logs of both sides say that the other one is slow.
"""

from collections.abc import Sequence

from domain.checks.seen import some
from domain.cluster import host_of
from domain.diagnosis.machines.network_signs import MANY_UNREAD, queues_to
from domain.zk_to_kraft.causes.case import Looked
from domain.zk_to_kraft.causes.owners import listening

WIDEN = (
    "Look again: where they are only catching up, the number falls. Where it does not, look at the link of its machine: "
    "its speed and duplex (`ethtool DEVICE`: a port that has fallen back), what shapes it (`tc -s qdisc`), what else sends "
    "there (`ip -s link`, a backup, a reassignment), and what the hypervisor or the network allows it; `ss -tino` there "
    "shows delivery_rate, and whether the receiver is the limit (rwnd_limited). Replicas catch up by themselves once more "
    "gets through than is written. Restart none of them: all that it missed meanwhile would have to come over the same "
    "link. To give another broker the leadership (kafka-leader-election.sh, or a reassignment) takes its load away from "
    "it."
)


def of_slow_link(looked: Looked, leaders: Sequence[int], missing: Sequence[int]) -> tuple[str, str, str] | None:
    """Of one leader: its name, what is seen, and the fix. Where a follower reads nothing, the link is not to blame."""
    if len(leaders) != 1:
        return None
    name = looked.broker_name(leaders[0])
    theirs = [looked.hints.signs[other] for i in missing if (other := looked.broker_name(i)) in looked.hints.signs]
    queues = queues_of(looked, leaders[0])
    if not queues or any(one.unread >= MANY_UNREAD for one in theirs):
        return None
    return (
        name,
        f"{name} leads them, and what it sends to {some(queues)} waits in its machine's queues all the time, while they read "
        "what comes: its link may carry less than is written",
        WIDEN,
    )


def queues_of(looked: Looked, broker_id: int) -> list[str]:
    """Where much of what it sends to machines of the cluster waits all the time."""
    signs = looked.hints.signs.get(looked.broker_name(broker_id))
    hosts = {host_of(address) for address, _ in listening(looked)}
    return queues_to(hosts, signs) if signs is not None else []
