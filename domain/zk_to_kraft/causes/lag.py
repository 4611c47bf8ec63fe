"""Replicas that lag at brokers that serve, with what the logs of those brokers and of their leaders say of it."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from domain.checks.seen import some
from domain.cluster import Role
from domain.configuration.listener_security import inter_broker_listener
from domain.diagnosis.causes import bulk_loads
from domain.diagnosis.causes.connection_limits import how_to_lift
from domain.diagnosis.causes.reassignment import UNTHROTTLE
from domain.diagnosis.logs.catalogue import Told
from domain.diagnosis.logs.connecting import NO_LISTENER, PEER_CUT, PEER_SILENT, PEER_UNREACHABLE
from domain.diagnosis.logs.lines import Found, found_in
from domain.diagnosis.logs.replication import (
    CHANNEL_DIED,
    FETCH_INVALID,
    FETCH_REFUSED,
    FETCH_STOPPED,
    FETCHER_DIED,
    LOG_DIR_FAILED,
    ROLL_LESS,
    SEGMENT_TOO_SMALL,
    UNKNOWN_TO_LEADER,
    leader_asked,
    rolled_in,
    said_by_controller,
    said_by_follower,
    said_by_leader,
    said_by_zookeepers_controller,
    with_cause,
)
from domain.diagnosis.machines.standstill_signs import of_standstill
from domain.health.quorum import quorum_leader
from domain.health.replication import partitions_needing
from domain.observed.observation import PartitionFault
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.case import UNKNOWN_MODES, Cause, Looked, cause, complaints, leaders_threads, leaders_word
from domain.zk_to_kraft.causes.failed_writes import in_words, lost_by
from domain.zk_to_kraft.causes.lacks import lack_of
from domain.zk_to_kraft.causes.proxy_headers import of_proxy_header
from domain.zk_to_kraft.causes.slow_links import of_slow_link
from domain.zk_to_kraft.causes.sparing import before_a_failover, restart_of
from domain.zk_to_kraft.modes import BrokerMode
from domain.zk_to_kraft.situation import Claim

ELECT = (
    "Bring back a broker that has their data: those that were in sync last. If all are up, elect leaders with "
    "kafka-leader-election.sh."
)
NOT_TOLD = (
    "Restart the active controller, {name}, and no broker: the next one tells brokers in migration mode all anew. Before that "
    "mend what ZooKeeper has answered it (the entry dual-write-not-current)."
)
MEND_WHAT_THEY_SAY = "Where one of the complaints explains it, mend that. Else: "
NEEDS_START = frozenset(told.name for told in (LOG_DIR_FAILED, FETCHER_DIED, FETCH_STOPPED, SEGMENT_TOO_SMALL))
"""What a follower does not get over by itself."""

UNTOLD = (
    "It tells brokers whom to follow, and does not reach that one: look at the way there from {name}, to the listener that "
    "brokers use among each other: a firewall in one direction, a name that {name} has resolved before it was changed, a "
    "certificate or a login that {name} is not let in with. Mended, it goes on by itself. A restart of the follower mends "
    "nothing; one of {name}, once all partitions can spare it, gives /controller to another broker, and may."
)
UNLESS_UNCLEAN = (
    "nothing that was acknowledged is lost, unless unclean.leader.election.enable is true there (kafka-configs.sh --describe, "
    "the brokers' files): then a follower that lags may lead, so set it to false before"
)
VAGUE = frozenset({PEER_CUT, PEER_SILENT, PEER_UNREACHABLE})
"""What follows from a link, or from a limit, where one is seen."""
OF_LEADER = frozenset({FETCH_REFUSED, FETCH_INVALID, UNKNOWN_TO_LEADER})
"""What a follower says of whom it fetches from."""


def lag_causes(looked: Looked, unheard: Collection[int], misled: Collection[int]) -> Iterator[Cause]:
    """One entry for each set of brokers at which replicas lag. Those that are led by a broker that nobody reaches (`unheard`),
    that is silent or stands still, or lag at one that is not there, or never hears what it is to do (`misled`), are explained
    by it."""
    for missing, faults in _lagging(looked, {*unheard, *_standing(looked)}, misled).items():
        leaders = tuple(sorted({fault.leader for fault in faults if fault.leader is not None}))
        names = [looked.broker_name(broker_id) for broker_id in missing]
        partitions = [fault.partition for fault in faults]
        led = f", all led by {looked.broker_name(leaders[0])}" if len(leaders) == 1 else ""
        observed = f"{len(partitions)} partitions have replicas out of sync at {some(names)}{led}: {some(partitions)}"
        proved = _proved(looked, missing, leaders)
        explained = proved or _told(looked, missing, partitions, leaders)
        about, words, fix = explained or _unsaid(looked, missing, leaders)
        yield cause(
            looked,
            WaitReason.PARTITIONS_NOT_IN_SYNC,
            about or some(names) or some(partitions),
            observed=f"{observed}. {words}" if words else observed,
            expected="every replica in sync before a node restarts",
            fix=fix,
            is_proved=proved is not None,
            is_only_late=explained is None,
        )


def leaderless_causes(looked: Looked) -> Iterator[Cause]:
    """One entry for each set of brokers of which one has to lead again: those whose log says why they do not, first."""
    kafka = looked.observation.kafka
    if kafka is None:
        return
    by_brokers: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for partition in kafka.offline:
        by_brokers[kafka.last_in_sync.get(partition, ())].append(partition)
    for brokers, partitions in by_brokers.items():
        whose = f"; in sync last: {some([looked.broker_name(broker_id) for broker_id in brokers])}" if brokers else ""
        about, words, fix = _why_leaderless(looked, brokers)
        yield cause(
            looked,
            WaitReason.PARTITIONS_NOT_IN_SYNC,
            about or some(partitions),
            observed=f"{len(partitions)} partitions have no leader: {some(partitions)}{whose}{words}",
            expected="every partition has a leader",
            fix=fix,
        )


def _why_leaderless(looked: Looked, brokers: Sequence[int]) -> tuple[str, str, str]:
    for broker_id in brokers:
        lines, name = looked.hints.logs.get(broker_id, ()), looked.broker_name(broker_id)
        for said in (with_cause(failed, lines) for failed in found_in(lines, (LOG_DIR_FAILED,))):
            return name, f". The log of {name} says: {said.quote}", _fix(looked, broker_id, said)
    return "", complaints(looked, *brokers), ELECT


def _standing(looked: Looked) -> set[int]:
    """Brokers that do not answer, or are seen to stand still: each is an entry of its own."""
    silent = looked.ids(Role.BROKER, UNKNOWN_MODES)
    standing = {name for name, signs in looked.hints.signs.items() if next(of_standstill(signs), None) is not None}
    return {broker.id for broker in looked.spec.brokers if broker.id in silent or looked.name(broker.id) in standing}


def _lagging(looked: Looked, unheard: Collection[int], misled: Collection[int]) -> dict[tuple[int, ...], list[PartitionFault]]:
    kafka, elsewhere = looked.observation.kafka, looked.absent_brokers | looked.left_behind | {*misled}
    found: dict[tuple[int, ...], list[PartitionFault]] = defaultdict(list)
    for fault in kafka.under_replicated if kafka is not None else ():
        left = tuple(sorted(set(fault.missing) - elsewhere))
        if fault.leader not in unheard and (left or not fault.missing):
            found[left].append(fault)
    return found


def _proved(looked: Looked, missing: Sequence[int], leaders: Sequence[int]) -> tuple[str, str, str] | None:
    """Whose it is, what is said of it, and the fix, where no other reason is wanted."""
    if looked.hints.throttles:
        return "", f"A replication throttle is set in {some(looked.hints.throttles)}", UNTHROTTLE
    return of_proxy_header(looked, (*leaders, *missing))


def _told(
    looked: Looked, missing: Sequence[int], partitions: Sequence[str], leaders: Sequence[int]
) -> tuple[str, str, str] | None:
    """The object, if it is not the followers, what is said of it, and the fix. `None` if nothing known explains the lag."""
    instead = _limited(looked) or of_slow_link(looked, leaders, missing)
    but = VAGUE if instead is not None else frozenset()
    said = _said_by_them(looked, missing, partitions, leaders, but)
    rolled = _rolled(looked, missing, leaders)
    return said or instead or rolled or _outrun(looked, missing, leaders)


def _rolled(looked: Looked, missing: Sequence[int], leaders: Sequence[int]) -> tuple[str, str, str] | None:
    words = rolled_in(looked.hints.logs.get(broker_id, ()) for broker_id in (*missing, *leaders))
    return ("", words.removeprefix(". "), ROLL_LESS.strip()) if words else None


def _outrun(looked: Looked, missing: Sequence[int], leaders: Sequence[int]) -> tuple[str, str, str] | None:
    """By what is written, where no log says that anything is wrong with them."""
    words = bulk_loads.in_words(looked.hints.written)
    return ("", f"{words}{complaints(looked, *missing, *leaders)}", bulk_loads.SLOW_DOWN) if words else None


def _limited(looked: Looked) -> tuple[str, str, str] | None:
    limits = [limit for limit in looked.tight_limits if limit.is_of_addresses]
    words = some([limit.in_words for limit in limits])
    said = f"New connections are limited, which may hold back followers too: {words}"
    return ("", said, how_to_lift(limits[0])) if limits else None


def _said_by_them(
    looked: Looked, missing: Sequence[int], partitions: Sequence[str], leaders: Sequence[int], but: Collection[Told]
) -> tuple[str, str, str] | None:
    """By the logs of followers, of leaders, and of the controller, whose line may be old. `but`: kinds that do not count."""
    for broker_id in missing:
        said = said_by_follower(looked.hints.logs.get(broker_id, ()), partitions, leaders)
        if said is not None and said.told not in but:
            whose = _of_whom(said, broker_id, leaders)
            about = looked.broker_name(whose) if whose != broker_id else ""
            asks = f". It asks at their listener {_asked_at(looked, broker_id)}" if said.told is NO_LISTENER else ""
            is_unknown = said.told is UNKNOWN_TO_LEADER and whose == broker_id
            fix = said.told.fix if is_unknown else _fix(looked, whose, said)
            return about, f"The log of {looked.broker_name(broker_id)} says: {said.quote}{asks}", fix
    for broker_id in leaders:
        if (told := _said_by_leader(looked, broker_id, partitions, but)) is not None:
            return looked.broker_name(broker_id), *told
    for broker_id in _zookeepers_controller(looked):
        lines, name = looked.hints.logs.get(broker_id, ()), looked.broker_name(broker_id)
        said = said_by_zookeepers_controller(lines, partitions)
        if said is not None:
            return "", f"{name} is the controller, and cannot write down their in-sync sets: {said.quote}", said.told.fix
        for said in filter(None, (said_by_controller(lines, other) for other in (*missing, *leaders) if other != broker_id)):
            return name, f"{name} is the controller, and its log says: {said.quote}", UNTOLD.format(name=name)
    for leader in filter(None, [quorum_leader(looked.observation, looked.spec)]):
        lines, name = looked.hints.logs.get(leader.id, ()), looked.name(leader.id)
        for said in filter(None, (said_by_controller(lines, broker_id) for broker_id in (*missing, *leaders))):
            return name, f"{name} leads the quorum, and its log says: {said.quote}", said.told.fix
    return None


def _of_whom(said: Found, follower: int, leaders: Sequence[int]) -> int:
    """Whose it is what a follower says: that of the leader which answers so."""
    if said.told not in OF_LEADER:
        return follower
    asked = leader_asked(said)
    if asked is not None and asked in leaders:
        return asked
    return leaders[0] if len(leaders) == 1 else follower


def _said_by_leader(looked: Looked, broker_id: int, partitions: Sequence[str], but: Collection[Told]) -> tuple[str, str] | None:
    """By its log, or by what its threads are at, where it answers nobody; and the fix."""
    name = looked.broker_name(broker_id)
    said = said_by_leader(looked.hints.logs.get(broker_id, ()), partitions)
    if said is not None and said.told not in but:
        return f"{name} leads them, and its log says: {said.quote}", _fix(looked, broker_id, said)
    if (lacks := lack_of(looked, broker_id)) is not None:
        return f"{name} leads them, and has printed: {lacks.quote}", lacks.told.fix
    if (standing := looked.hints.threads.get(name)) is not None and standing.fix:
        return f"{name} leads them, and answers nobody: {standing.words}", standing.fix
    return None


def _asked_at(looked: Looked, broker_id: int) -> str:
    """By its file, as far as it is in the cluster's specification."""
    is_ours = any(broker.id == broker_id for broker in looked.spec.brokers)
    return inter_broker_listener(looked.properties(broker_id)) if is_ours else "for brokers"


def _unsaid(looked: Looked, missing: Sequence[int], leaders: Sequence[int]) -> tuple[str, str, str]:
    """Where no log names these partitions: what those logs complain of, and what Kafka was not told."""
    words = "".join(leaders_word(looked, broker_id) for broker_id in missing[:1]) + complaints(looked, *missing, *leaders)
    words += leaders_threads(looked)
    fix = _by_itself(looked, missing)
    if (lost := lost_by(looked) if _is_hybrid_among(looked, (*missing, *leaders)) else None) is not None:
        name, found = lost
        fix = f"{MEND_WHAT_THEY_SAY if words else ''}{NOT_TOLD.format(name=name)}{before_a_failover(looked)}"
        words += (
            f". {name} leads the quorum, and its log says: {in_words(found)}. Brokers in migration mode were not told of it"
        )
    return "", words.removeprefix(". "), fix


def _zookeepers_controller(looked: Looked) -> tuple[int, ...]:
    """The broker that /controller names; none once that is KRaft's."""
    found = looked.observation.zookeeper.controller if looked.observation.zookeeper is not None else None
    return (found.broker_id,) if found is not None and looked.situation.claim is Claim.ZOOKEEPER else ()


def _is_hybrid_among(looked: Looked, broker_ids: Collection[int]) -> bool:
    return any(broker.mode is BrokerMode.HYBRID for broker in looked.situation.brokers if broker.id in broker_ids)


def _fix(looked: Looked, broker_id: int, said: Found) -> str:
    if said.told in {CHANNEL_DIED, UNKNOWN_TO_LEADER}:
        return f"{said.told.fix} {_restart_all_the_same(looked, broker_id)}"
    again = f" In the end {restart_of(looked, broker_id)}." if said.told.name in NEEDS_START else ""
    return said.told.fix + again


def _restart_all_the_same(looked: Looked, broker_id: int) -> str:
    """That its partitions can spare it is what does not come by waiting."""
    name, kafka = looked.broker_name(broker_id), looked.observation.kafka
    needing = partitions_needing(kafka, broker_id, looked.policy) if kafka is not None else ()
    without = f": {some(needing)} cannot be written meanwhile, and {UNLESS_UNCLEAN}" if needing else ""
    return f"Restart {name}{without}."


def _by_itself(looked: Looked, missing: Sequence[int]) -> str:
    """Their logs say nothing wrong, as far as they could be read."""
    known = {b.id for b in looked.spec.brokers}
    strangers = [looked.broker_name(i) for i in missing if i not in known]
    if strangers:
        return f"Start {some(strangers)}, or reassign its partitions to brokers that are there (kafka-reassign-partitions.sh)."
    restarts = "; ".join(restart_of(looked, i) for i in missing) or "restart the followers"
    return (
        "After a restart or an outage they catch up by themselves: look again. If the number does not fall within a minute, "
        "look at disk and network there, and at the leaders' logs. Where nothing is wrong, "
        f"{restarts}, one at a time: a broker that has missed what its controller said last fetches again once it has started."
    )
