"""Replicas that lag, and partitions without a leader, at brokers that serve: what logs, throttles, links and load say of it."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from domain.checks.check import some
from domain.cluster import Role, host_of
from domain.configuration.listener_security import inter_broker_listener
from domain.diagnosis.causes.case import Case, Cause, restart_of
from domain.diagnosis.causes.hints import Pace, how_to_lift
from domain.diagnosis.causes.quotes import complaints, lack_of, leaders_word
from domain.diagnosis.causes.reachability import listening, of_proxy_header
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
from domain.diagnosis.machines.signs import MANY_UNREAD, of_standstill, queues_to
from domain.health.liveness import Liveness
from domain.health.replication import partitions_needing
from domain.observed.observation import PartitionFault
from domain.waits import WaitReason

WHO_BEGINS_IT = (
    " If it comes again, something starts it: Cruise Control (topics __CruiseControlMetrics and "
    "__KafkaCruiseControlPartitionMetricSamples show that it is there; POST "
    "/kafkacruisecontrol/stop_proposal_execution ends its execution, POST "
    "/kafkacruisecontrol/admin?disable_self_healing_for=… its self-healing), an operator, a script. Pause it "
    "until finalize."
)
CANCEL_REASSIGNMENT = (
    "Let it finish, or cancel it (kafka-reassign-partitions.sh --cancel). If it does not end, a broker is "
    f"gone, or there is a throttle.{WHO_BEGINS_IT}"
)
UNTHROTTLE = (
    "Remove the throttle, or raise it: kafka-configs.sh --alter --entity-type brokers --entity-name ID --delete-config "
    "leader.replication.throttled.rate,follower.replication.throttled.rate (--entity-default for <default>). Where a "
    f"reassignment set it, kafka-reassign-partitions.sh --verify removes it once that has ended.{WHO_BEGINS_IT}"
)
MUCH = 2e6
"""Bytes a second."""
MOST_TOLD = 3
SLOW_DOWN = (
    "If the number does not fall, pause what writes that until they are in sync, or limit it: "
    "kafka-configs.sh --alter --entity-type clients --entity-name CLIENT (or --entity-type users) "
    "--add-config producer_byte_rate=BYTES. Brokers with free CPUs can get more fetchers meanwhile, without "
    "a restart: --entity-type brokers --entity-default --add-config num.replica.fetchers=4. Restart none of "
    "them: they would miss even more. The migration continues by itself."
)


def paces_in_words(paces: Sequence[Pace]) -> str:
    """The fastest; empty where none is fast."""
    fast = [f"{one.topic} with {one.bytes_per_second / 1e6:.0f} MB a second" for one in paces if one.bytes_per_second >= MUCH]
    return f"They are written meanwhile, {', '.join(fast[:MOST_TOLD])}: who was away may not catch up with that" if fast else ""


WIDEN = (
    "Check again: if they are only catching up, the number falls. If not, check the link of its machine: its "
    "speed and duplex (`ethtool DEVICE`), what shapes it (`tc -s qdisc`), what else sends there (`ip -s "
    "link`, a backup, a reassignment), and what the hypervisor or the network allows; `ss -tino` shows "
    "delivery_rate, and whether the receiver limits it (rwnd_limited). Replicas catch up by themselves when "
    "more gets through than is written. Restart none of them: all that it missed would use the same link. "
    "Another leader (kafka-leader-election.sh, a reassignment) takes load away from it."
)


def of_slow_link(case: Case, leaders: Sequence[int], missing: Sequence[int]) -> tuple[str, str, str] | None:
    """Of one leader: its name, what is seen, and the fix. Where a follower reads nothing, the link is not to blame."""
    if len(leaders) != 1:
        return None
    name = case.broker_name(leaders[0])
    theirs = [case.hints.signs[other] for i in missing if (other := case.broker_name(i)) in case.hints.signs]
    queues = queues_of(case, leaders[0])
    if not queues or any(one.unread >= MANY_UNREAD for one in theirs):
        return None
    return (
        name,
        f"{name} leads them, and what it sends to {some(queues)} waits in its machine's queues all the time, while they read "
        "what comes: its link may carry less than is written",
        WIDEN,
    )


def queues_of(case: Case, broker_id: int) -> list[str]:
    """Where much of what it sends to machines of the cluster waits all the time."""
    signs = case.hints.signs.get(case.broker_name(broker_id))
    hosts = {host_of(address) for address, _ in listening(case)}
    return queues_to(hosts, signs) if signs is not None else []


ELECT = (
    "Start a broker that has their data: those that were in sync last. If all run, elect leaders with kafka-leader-election.sh."
)
NOT_TOLD = (
    "First fix what ZooKeeper has answered the active controller (the entry dual-write-not-current). Then "
    "restart that controller, {name}, and no broker: the next one sends all metadata again to brokers in "
    "migration mode."
)
UNTOLD_BROKERS = "Brokers in migration mode did not get it"
MEND_WHAT_THEY_SAY = "If one of the complaints explains it, fix that. If not: "
NEEDS_START = frozenset(told.name for told in (LOG_DIR_FAILED, FETCHER_DIED, FETCH_STOPPED, SEGMENT_TOO_SMALL))
"""What a follower does not get over by itself."""
UNTOLD = (
    "Check the way from {name} to that broker's inter-broker listener: a firewall in one direction, a name "
    "that {name} resolved before it changed, a certificate or a login that is not accepted. After that it "
    "continues by itself. {name} sends brokers which leader to follow, and does not reach that one. A "
    "restart of the follower does not help. A restart of {name}, when all partitions can spare it, gives "
    "/controller to another broker, and may help."
)
UNLESS_UNCLEAN = (
    "nothing that was acknowledged is lost, unless unclean.leader.election.enable is true there (kafka-configs.sh --describe, "
    "the brokers' files): then a follower that lags may lead, so set it to false before"
)
VAGUE = frozenset({PEER_CUT, PEER_SILENT, PEER_UNREACHABLE})
"""What follows from a link, or from a limit, where one is seen."""
OF_LEADER = frozenset({FETCH_REFUSED, FETCH_INVALID, UNKNOWN_TO_LEADER})
"""What a follower says of whom it fetches from."""


def lag_causes(case: Case, unheard: Collection[int], misled: Collection[int]) -> Iterator[Cause]:
    """One entry for each set of brokers at which replicas lag. Those that are led by a broker that nobody reaches (`unheard`),
    that is silent or stands still, or lag at one that is not there, or never hears what it is to do (`misled`), are explained
    by it."""
    for missing, faults in _lagging(case, {*unheard, *_standing(case)}, misled).items():
        leaders = tuple(sorted({fault.leader for fault in faults if fault.leader is not None}))
        names = [case.broker_name(broker_id) for broker_id in missing]
        partitions = [fault.partition for fault in faults]
        led = f", all led by {case.broker_name(leaders[0])}" if len(leaders) == 1 else ""
        observed = f"{len(partitions)} partitions have replicas out of sync at {some(names)}{led}: {some(partitions)}"
        proved = _proved(case, missing, leaders)
        explained = proved or _told(case, missing, partitions, leaders)
        about, words, fix = explained or _unsaid(case, missing, leaders)
        yield case.cause(
            WaitReason.PARTITIONS_NOT_IN_SYNC,
            about or some(names) or some(partitions),
            observed=f"{observed}. {words}" if words else observed,
            expected="every replica in sync before a node restarts",
            fix=fix,
            is_proved=proved is not None,
            is_only_late=explained is None,
        )


def leaderless_causes(case: Case) -> Iterator[Cause]:
    """One entry for each set of brokers of which one has to lead again: those whose log says why they do not, first."""
    kafka = case.observation.kafka
    if kafka is None:
        return
    by_brokers: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for partition in kafka.offline:
        by_brokers[kafka.last_in_sync.get(partition, ())].append(partition)
    for brokers, partitions in by_brokers.items():
        whose = f"; in sync last: {some([case.broker_name(broker_id) for broker_id in brokers])}" if brokers else ""
        about, words, fix = _why_leaderless(case, brokers)
        yield case.cause(
            WaitReason.PARTITIONS_NOT_IN_SYNC,
            about or some(partitions),
            observed=f"{len(partitions)} partitions have no leader: {some(partitions)}{whose}{words}",
            expected="every partition has a leader",
            fix=fix,
        )


def _why_leaderless(case: Case, brokers: Sequence[int]) -> tuple[str, str, str]:
    for broker_id in brokers:
        lines, name = case.log(broker_id), case.broker_name(broker_id)
        for said in (with_cause(failed, lines) for failed in found_in(lines, (LOG_DIR_FAILED,))):
            return name, f". The log of {name} says: {said.quote}", _fix(case, broker_id, said)
    return "", complaints(case, *brokers), ELECT


def _standing(case: Case) -> set[int]:
    """Brokers that do not answer, or are seen to stand still: each is an entry of its own."""
    silent = case.ids(Role.BROKER, Liveness.UNKNOWN)
    standing = {name for name, signs in case.hints.signs.items() if next(of_standstill(signs), None) is not None}
    return {broker.id for broker in case.spec.brokers if broker.id in silent or case.name(broker.id) in standing}


def _lagging(case: Case, unheard: Collection[int], misled: Collection[int]) -> dict[tuple[int, ...], list[PartitionFault]]:
    kafka, elsewhere = case.observation.kafka, case.absent_brokers | case.facts.left_behind | {*misled}
    found: dict[tuple[int, ...], list[PartitionFault]] = defaultdict(list)
    for fault in kafka.under_replicated if kafka is not None else ():
        left = tuple(sorted(set(fault.missing) - elsewhere))
        if fault.leader not in unheard and (left or not fault.missing):
            found[left].append(fault)
    return found


def _proved(case: Case, missing: Sequence[int], leaders: Sequence[int]) -> tuple[str, str, str] | None:
    """Whose it is, what is said of it, and the fix, where no other reason is wanted."""
    if case.hints.throttles:
        return "", f"A replication throttle is set in {some(case.hints.throttles)}", UNTHROTTLE
    return of_proxy_header(case, (*leaders, *missing))


def _told(case: Case, missing: Sequence[int], partitions: Sequence[str], leaders: Sequence[int]) -> tuple[str, str, str] | None:
    """The object, if it is not the followers, what is said of it, and the fix. `None` if nothing known explains the lag."""
    instead = _limited(case) or of_slow_link(case, leaders, missing)
    but = VAGUE if instead is not None else frozenset()
    said = _said_by_them(case, missing, partitions, leaders, but)
    rolled = _rolled(case, missing, leaders)
    return said or instead or rolled or _outrun(case, missing, leaders)


def _rolled(case: Case, missing: Sequence[int], leaders: Sequence[int]) -> tuple[str, str, str] | None:
    words = rolled_in(case.log(broker_id) for broker_id in (*missing, *leaders))
    return ("", words.removeprefix(". "), ROLL_LESS.strip()) if words else None


def _outrun(case: Case, missing: Sequence[int], leaders: Sequence[int]) -> tuple[str, str, str] | None:
    """By what is written, where no log says that anything is wrong with them."""
    words = paces_in_words(case.hints.written)
    return ("", f"{words}{complaints(case, *missing, *leaders)}", SLOW_DOWN) if words else None


def _limited(case: Case) -> tuple[str, str, str] | None:
    limits = [limit for limit in case.tight_limits if limit.is_of_addresses]
    words = some([limit.in_words for limit in limits])
    said = f"New connections are limited, which may hold back followers too: {words}"
    return ("", said, how_to_lift(limits[0])) if limits else None


def _said_by_them(
    case: Case, missing: Sequence[int], partitions: Sequence[str], leaders: Sequence[int], but: Collection[Told]
) -> tuple[str, str, str] | None:
    """By the logs of followers, of leaders, and of the controller, whose line may be old. `but`: kinds that do not count."""
    for broker_id in missing:
        said = said_by_follower(case.log(broker_id), partitions, leaders)
        if said is not None and said.told not in but:
            whose = _of_whom(said, broker_id, leaders)
            about = case.broker_name(whose) if whose != broker_id else ""
            asks = f". It asks at their listener {_asked_at(case, broker_id)}" if said.told is NO_LISTENER else ""
            is_unknown = said.told is UNKNOWN_TO_LEADER and whose == broker_id
            fix = said.told.fix if is_unknown else _fix(case, whose, said)
            return about, f"The log of {case.broker_name(broker_id)} says: {said.quote}{asks}", fix
    for broker_id in leaders:
        if (told := _said_by_leader(case, broker_id, partitions, but)) is not None:
            return case.broker_name(broker_id), *told
    for broker_id in _zookeepers_controller(case):
        lines, name = case.log(broker_id), case.broker_name(broker_id)
        said = said_by_zookeepers_controller(lines, partitions)
        if said is not None:
            return "", f"{name} is the controller, and cannot write down their in-sync sets: {said.quote}", said.told.fix
        for said in filter(None, (said_by_controller(lines, other) for other in (*missing, *leaders) if other != broker_id)):
            return name, f"{name} is the controller, and its log says: {said.quote}", UNTOLD.format(name=name)
    for leader in filter(None, [case.leader]):
        lines, name = case.log(leader.id), case.name(leader.id)
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


def _said_by_leader(case: Case, broker_id: int, partitions: Sequence[str], but: Collection[Told]) -> tuple[str, str] | None:
    """By its log, and the fix."""
    name = case.broker_name(broker_id)
    said = said_by_leader(case.log(broker_id), partitions)
    if said is not None and said.told not in but:
        return f"{name} leads them, and its log says: {said.quote}", _fix(case, broker_id, said)
    if (lacks := lack_of(case, broker_id)) is not None:
        return f"{name} leads them, and has printed: {lacks.quote}", lacks.told.fix
    return None


def _asked_at(case: Case, broker_id: int) -> str:
    """By its file, as far as it is in the cluster's specification."""
    is_ours = any(broker.id == broker_id for broker in case.spec.brokers)
    return inter_broker_listener(case.properties(broker_id)) if is_ours else "for brokers"


def _unsaid(case: Case, missing: Sequence[int], leaders: Sequence[int]) -> tuple[str, str, str]:
    """Where no log names these partitions: what those logs complain of, and what Kafka was not told."""
    words = "".join(leaders_word(case, broker_id) for broker_id in missing[:1]) + complaints(case, *missing, *leaders)
    fix = _by_itself(case, missing)
    if (lost := case.lost_change) is not None and not lost.untold.isdisjoint((*missing, *leaders)):
        fix = f"{MEND_WHAT_THEY_SAY if words else ''}{NOT_TOLD.format(name=lost.controller)}{lost.before_restart}"
        words += f". {lost.controller} leads the quorum, and its log says: {lost.words}. {UNTOLD_BROKERS}"
    return "", words.removeprefix(". "), fix


def _zookeepers_controller(case: Case) -> tuple[int, ...]:
    """The broker that /controller names; none once that is KRaft's."""
    found = case.observation.zookeeper.controller if case.observation.zookeeper is not None else None
    return (found.broker_id,) if found is not None and found.is_ephemeral else ()


def _fix(case: Case, broker_id: int, said: Found) -> str:
    if said.told in {CHANNEL_DIED, UNKNOWN_TO_LEADER}:
        return f"{said.told.fix} {_restart_all_the_same(case, broker_id)}"
    again = f" In the end {restart_of(case, broker_id)}." if said.told.name in NEEDS_START else ""
    return said.told.fix + again


def _restart_all_the_same(case: Case, broker_id: int) -> str:
    """That its partitions can spare it is what does not come by waiting."""
    name, kafka = case.broker_name(broker_id), case.observation.kafka
    needing = partitions_needing(kafka, broker_id, case.policy) if kafka is not None else ()
    without = f": {some(needing)} cannot be written meanwhile, and {UNLESS_UNCLEAN}" if needing else ""
    return f"Restart {name}{without}."


def _by_itself(case: Case, missing: Sequence[int]) -> str:
    """Their logs say nothing wrong, as far as they could be read."""
    known = {b.id for b in case.spec.brokers}
    strangers = [case.broker_name(i) for i in missing if i not in known]
    if strangers:
        return f"Start {some(strangers)}, or reassign its partitions to brokers that are there (kafka-reassign-partitions.sh)."
    restarts = "; ".join(restart_of(case, i) for i in missing) or "restart the followers"
    return (
        "After a restart or an outage they catch up by themselves: look again. If the number does not fall within a minute, "
        "look at disk and network there, and at the leaders' logs. Where nothing is wrong, "
        f"{restarts}, one at a time: a broker that has missed what its controller said last fetches again once it has started."
    )
