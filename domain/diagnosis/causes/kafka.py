"""Why Kafka does not answer as a whole: an address where nobody listens, a refusal, brokers that disagree or are not listed."""

from collections.abc import Collection, Iterator, Mapping

from domain.checks.check import some
from domain.diagnosis.causes.case import MAX_NAMED, Case, Cause, restart_of, strangers
from domain.diagnosis.causes.hints import Asked, how_to_lift
from domain.diagnosis.causes.quotes import complaints, leaders_word
from domain.diagnosis.causes.reachability import HOW_TO_CORRECT, Door, cause_of_ours, door_of, lost_address
from domain.diagnosis.causes.replication import WIDEN, lag_causes, leaderless_causes, queues_of
from domain.diagnosis.causes.unresponsive import AT_ONE_BROKER, OF_OURS, each_mute, limited
from domain.diagnosis.logs.connecting import TOO_MANY_CONNECTIONS
from domain.diagnosis.logs.lines import found_in
from domain.diagnosis.machines.signs import NEARER
from domain.errors import Obstacle
from domain.observed.parts import Unanswered
from domain.waits import WaitReason

NO_ANSWER = Unanswered(what="kafka", why="no answer")
ADVERTISED = "advertised.listeners"
CLOSES = "closes our connection"
"""Of who accepts one: what a broker does that holds connections back."""
LATE = (
    "If no answer comes in time, check security.protocol in client_properties against the listener. Check "
    "the quotas (request_percentage in /config/clients and /config/users). Check whether a broker has no "
    "thread left for requests (RequestHandlerAvgIdlePercent, garbage collection, its disk). If connections "
    "are closed, check max.connections and max.connections.per.ip in the brokers' files and in "
    "/config/brokers. If the answer is a broker's own error, read its log, for instance for a znode that it "
    "may not read (NoAuth)."
)
SHARED_OUT = (
    "Find the part of the way that passes nothing, and remove it: a link of a bond or port channel (LAG), "
    "one of several equal routes (ECMP), a node of a balancer or a firewall. `cat /proc/net/bonding/*`, the "
    "counters of the switch's ports, and `nc -zv -p PORT` with one port after another show which. Or "
    "something limits new connections: a firewall's limit of SYN packets, a full queue of connections (`ss "
    "-ltn` there: Recv-Q above Send-Q). A restart of the broker does not help."
)
REFUSED = (
    "Correct user, password, certificates or protocol there; they are read with every observation. If the "
    "login is right, let that user DESCRIBE the cluster and all topics, and DESCRIBE_CONFIGS of the topics."
)


def kafka_causes(case: Case) -> Iterator[Cause]:
    """What keeps brokers from being asked, replicas that lag, and brokers that nobody lists, but for what a node that is not
    there explains."""
    partly = {i: found for i, found in case.hints.partly.items() if i not in case.absent_brokers | case.facts.left_behind}
    unheard = _unheard(case)
    yield from (_of_some_connections(case, i, found, unheard.get(i, ())) for i, found in partly.items())
    yield from (_of_addresses(case, i, addresses) for i, addresses in unheard.items() if i not in partly)
    misled = {i: found for i, found in case.hints.asked.items() if found.obstacle is Obstacle.ANOTHERS}
    yield from (_of_another(case, i, found) for i, found in misled.items())
    unreached = frozenset({*partly, *unheard, *misled})
    if case.observation.kafka is None:
        yield from _silent(case, unreached)
        return
    yield from _unlisted(case)
    yield from lag_causes(case, unreached, misled)
    if not case.absent_brokers:
        yield from leaderless_causes(case)


def _unheard(case: Case) -> dict[int, tuple[str, ...]]:
    """Brokers that serve, with the addresses at which nobody reaches them: by our knocking, and by what brokers hand out."""
    told = next((part for part in case.observation.unanswered if part.what == "kafka"), NO_ANSWER)
    found = dict(case.hints.unheard)
    if told.broker_id is not None and told.address is not None and told.obstacle is None:
        found[told.broker_id] = tuple(dict.fromkeys((*found.get(told.broker_id, ()), told.address)))
    return {i: addresses for i, addresses in found.items() if i not in case.absent_brokers | case.facts.left_behind}


def _of_another(case: Case, broker_id: int, asked: Asked) -> Cause:
    name = case.broker_name(broker_id)
    return case.cause(
        WaitReason.PART_UNKNOWN,
        name,
        WaitReason.PARTITIONS_NOT_IN_SYNC,
        WaitReason.BROKERS_NOT_REGISTERED,
        observed=f"at its address {asked.address} {asked.why}: what is sent to {name} there never arrives, its leaderships and "
        "its followers' requests among it",
        expected=f"{name} itself answers at the address that it advertises",
        fix="Correct what leads there: the target of a load balancer, a proxy or a forwarded port, a DNS record, an "
        f"address that was given away, or {ADVERTISED} of {name}. Restart no broker: each is healthy, and a "
        "restart takes more replicas out of sync.",
        is_proved=True,
    )


def _of_some_connections(case: Case, broker_id: int, found: Mapping[str, tuple[int, int]], unheard: tuple[str, ...]) -> Cause:
    if cut := [address for address in found if address in case.hints.cut]:
        return _of_resets(case, broker_id, cut)
    shut = [address for address in unheard if address not in found]
    none = f". At {some(shut)} none gets through" if shut else ""
    told = [
        f"{through} of {of} connections that were opened to {at} at the same time got through"
        for at, (through, of) in found.items()
    ]
    return case.cause(
        WaitReason.PART_UNKNOWN,
        case.broker_name(broker_id),
        WaitReason.PARTITIONS_NOT_IN_SYNC,
        observed=f"its process serves, and {some(told)}; the others were refused, or not answered within two seconds{none}",
        expected="every connection gets through, whatever port it comes from",
        fix=SHARED_OUT,
    )


def _of_resets(case: Case, broker_id: int, addresses: list[str]) -> Cause:
    """Its process serves: whoever cuts them off is another."""
    name, ports = case.broker_name(broker_id), " or ".join(dict.fromkeys(a.rpartition(":")[2] for a in addresses))
    return case.cause(
        WaitReason.PART_UNKNOWN,
        name,
        WaitReason.PARTITIONS_NOT_IN_SYNC,
        observed=f"its process serves, and connections to {some(addresses)} are reset as soon as they are made, before "
        "anything is said: that is not Kafka, which waits for the first word",
        expected="connections that stay open",
        fix=f"Find what resets them, on the machine of {name} and on the way to it: a tool that kills connections "
        "(`ss -K`, tcpkill, conntrack -D), a firewall's REJECT with tcp-reset, an intrusion prevention, a "
        f"balancer without a backend. `tcpdump -nei any 'tcp[tcpflags] & tcp-rst != 0 and port {ports}'` shows "
        f"each reset and from which machine it comes. Leave {name} running: nothing is wrong with it.",
        is_proved=True,
    )


def _of_addresses(case: Case, broker_id: int, addresses: tuple[str, ...]) -> Cause:
    name, given = case.broker_name(broker_id), some(addresses)
    if cut := [address for address in addresses if address in case.hints.cut]:
        return _of_resets(case, broker_id, cut)
    is_set = bool(set(addresses).intersection(case.hints.set_dynamically.get(broker_id, ())))
    whence = f", which is set dynamically: {ADVERTISED} in /config/brokers/{broker_id}" if is_set else ""
    if (lost := lost_address(case, addresses)) is not None:
        return case.cause(
            WaitReason.PART_UNKNOWN,
            name,
            WaitReason.PARTITIONS_NOT_IN_SYNC,
            observed=f"its process serves, and no connection to {given} is accepted: {lost.in_words}",
            expected="the addresses that it listens at are its machine's",
            fix=lost.fix(name),
            is_proved=True,
        )
    queues = queues_of(case, broker_id)
    if (seconds := _farthest(case, addresses)) is not None:
        return case.cause(
            WaitReason.PART_UNKNOWN,
            name,
            WaitReason.PARTITIONS_NOT_IN_SYNC,
            observed=f"its process serves, and no connection to {given}{whence} is accepted within two seconds: the way there "
            f"and back takes {seconds:.1f} s, by TCP's own clock in open connections",
            expected="answers within milliseconds between the machines of a cluster",
            fix=NEARER,
            is_proved=True,
        )
    door = door_of(case, name, addresses[0])
    full = (
        f". What it sends to {some(queues)} waits in its machine's queues all the time: its link may be full" if queues else ""
    )
    return case.cause(
        WaitReason.PART_UNKNOWN,
        name,
        WaitReason.PARTITIONS_NOT_IN_SYNC,
        observed=f"its process serves and advertises {given}{whence}, and no connection there is accepted within two "
        f"seconds{full}{door.observed if door is not None else ''}",
        expected="every broker can be reached where it says, by clients, by the other brokers, and by keeperless-activities",
        fix=WIDEN if queues else _unset(case, broker_id) if is_set else _opened(case, broker_id, given, door),
    )


def _opened(case: Case, broker_id: int, given: str, door: Door | None) -> str:
    return (door.fix if door is not None else "") + _corrected(case, broker_id, given)


def _farthest(case: Case, addresses: Collection[str]) -> float | None:
    """How long the way to one of them takes, for any process that was watched."""
    own = case.hints.own_signs
    told = [*case.hints.signs.values(), *([own] if own is not None else [])]
    return max((seconds for signs in told for where, seconds in signs.far if where in addresses), default=None)


def _corrected(case: Case, broker_id: int, given: str) -> str:
    """Where nobody has set it dynamically, as far as that could be read."""
    name = case.broker_name(broker_id)
    node = next((b for b in case.spec.brokers if b.id == broker_id), None)
    if node is None:
        return f"{name} is not in the cluster's specification: stop it, or make {given} reachable."
    kept = case.properties(broker_id)
    says = kept.get(ADVERTISED) or kept.get("listeners") or "nothing"
    return (
        f"If {given} is right, open it: a firewall, a queue of connections that is full, a link that is. If it is wrong, "
        f"correct {ADVERTISED} in {node.properties_file} (it says {says}) and {restart_of(case, broker_id)}. If the file is "
        f"right already, it was started with another, or {ADVERTISED} is set dynamically, in /config/brokers/{broker_id}."
    )


def _unset(case: Case, broker_id: int) -> str:
    """kafka-configs.sh sends what is about one broker to that broker, at the very address that is wrong, and hangs; so it does
    with --bootstrap-controller, because it asks the broker what is set before it changes that (both seen with 3.9.2)."""
    name = case.broker_name(broker_id)
    delete = f"--alter --entity-type brokers --entity-name {broker_id} --delete-config {ADVERTISED}"
    offline = (
        f"Stop {name}, kafka-configs.sh --zookeeper {case.spec.ensemble.connect} {delete}, and start it. With "
        f"--bootstrap-server that tool would ask {name} itself, at that address, and hang."
    )
    if case.facts.is_kraft_in_charge:
        return (
            f"{offline} Then the quorum's log still has it: once {name} is reached again, set it to the right address with "
            "--bootstrap-server (--add-config), and delete it the same way; what is not set the tool does not delete."
        )
    return (
        f"{offline} Or without a stop: take {ADVERTISED} out of the JSON in /config/brokers/{broker_id}, then create the "
        "sequential znode /config/changes/config_change_ with "
        f'{{"version":2,"entity_path":"brokers/{broker_id}"}}. Followers that have begun to fetch at the wrong address '
        "keep it: restart those that still lag a minute later, one by one."
    )


def _silent(case: Case, unheard: Collection[int]) -> Iterator[Cause]:
    """No broker that is gone explains a refusal; all else may be because of it."""
    told = next((part for part in case.observation.unanswered if part.what == "kafka"), NO_ANSWER)
    asked = case.spec.kafka.bootstrap_servers
    shut = [address for address in asked if address in case.hints.shut]
    if told.is_refused:
        yield _refused(case, told)
    elif (ours := cause_of_ours(case, told.obstacle, *asked)) is not None:
        yield ours
    elif told.broker_id not in {None, *case.absent_brokers} and told.obstacle in AT_ONE_BROKER:
        yield _of_one(case, told, AT_ONE_BROKER[told.obstacle])
    elif apart := [*_asked_in_vain(case), *([*_held_back(case)] or each_mute(case, unheard))]:
        yield from apart
    elif case.absent_brokers or unheard:
        return
    elif shut:
        yield from (_unreached(case, address) for address in shut)
    elif case.facts.left_behind or case.unregistered:
        return
    elif told.broker_id is not None and told.obstacle is None:
        is_told = case.facts.is_claim_lost or strangers(case)
        yield from () if is_told else (_disagreement(case, told, told.broker_id),)
    else:
        yield _late(case, told)


def _about(case: Case, told: Unanswered) -> str:
    return case.broker_name(told.broker_id) if told.broker_id is not None else "kafka"


def _asked_in_vain(case: Case) -> Iterator[Cause]:
    """Where brokers, by themselves, could not even be asked."""
    met = {found.obstacle for found in case.hints.asked.values()}
    yield from (tell(case) for obstacle, tell in OF_OURS.items() if obstacle in met)


def _held_back(case: Case) -> Iterator[Cause]:
    """Brokers that close connections, where somebody has limited how many may be new."""
    if not any(found.why and CLOSES in found.why for found in case.hints.asked.values()):
        return
    for limit in case.tight_limits[:MAX_NAMED]:
        yield case.cause(
            WaitReason.PART_UNKNOWN,
            f"{limit.key} in {limit.where}",
            WaitReason.PARTITIONS_NOT_IN_SYNC,
            observed=f"it lets no more than {limit.value} new connections a second come, {limit.of_whom}: brokers keep further "
            f"ones waiting, or close them, and say nothing of it{_each_by_itself(case)}",
            expected="as many new connections as brokers, clients and keeperless-activities open",
            fix=how_to_lift(limit),
        )


def _each_by_itself(case: Case) -> str:
    """Where all are alike."""
    asked = case.hints.asked
    if not asked:
        return ""
    running = [broker.id for broker in case.spec.brokers if broker.id not in case.absent_brokers]
    unasked = [case.name(i) for i in running if i not in asked]
    rest = f"; of {some(unasked)} this look has heard nothing" if unasked else ""
    if not any(found.why for found in asked.values()):
        return f". Asked by itself, each of {some([case.name(i) for i in asked])} answers{rest}"
    silent = [f"{case.name(i)} at {found.address}: {found.why}" for i, found in asked.items() if found.why]
    how_many = "none answers" if len(silent) == len(asked) else "not every one answers"
    return f". Asked by itself, {how_many}: {some(silent)}{rest}"


def _late(case: Case, told: Unanswered) -> Cause:
    brokers = [b.id for b in case.spec.brokers]
    said = [(i, found) for i in brokers for found in found_in(case.log(i), (TOO_MANY_CONNECTIONS,))][:1]
    names = "".join(f". The log of {case.name(i)} says: {found.quote}" for i, found in said)
    return case.cause(
        WaitReason.PART_UNKNOWN,
        _about(case, told),
        observed=told.in_words + _each_by_itself(case) + (names or limited(case) + complaints(case, *brokers)),
        expected=said[0][1].told.expected if said else "the brokers answer at kafka.bootstrap_servers",
        fix=said[0][1].told.fix if said else LATE,
    )


def _refused(case: Case, told: Unanswered) -> Cause:
    reference = case.spec.kafka.client_properties
    return case.cause(
        WaitReason.PART_UNKNOWN,
        "kafka client_properties",
        observed=told.why,
        expected="brokers let keeperless-activities in, and answer all its requests",
        fix=f"kafka.client_properties of the cluster's specification is {reference or 'not given'}. {REFUSED} To name "
        f"another file: {HOW_TO_CORRECT}",
    )


def _unreached(case: Case, address: str) -> Cause:
    return case.cause(
        WaitReason.PART_UNKNOWN,
        f"kafka {address}",
        observed="every broker's process serves, and no connection there is accepted within two seconds, so that not "
        "every broker can be asked",
        expected="every broker can be reached, by clients, by the other brokers, and by keeperless-activities",
        fix=f"Open {address}: a firewall, the listener's address, a queue of connections that is full, a link that is. Where "
        "it is no broker's, kafka.bootstrap_servers is wrong: " + HOW_TO_CORRECT + " Replicas that are led there lag until "
        "then, although the brokers that follow are well.",
    )


def _of_one(case: Case, told: Unanswered, known: tuple[str, str]) -> Cause:
    expected, fix = known
    return case.cause(
        WaitReason.PART_UNKNOWN,
        _about(case, told),
        observed=told.why + (complaints(case, told.broker_id) if told.broker_id is not None else ""),
        expected=expected,
        fix=fix,
    )


def _disagreement(case: Case, told: Unanswered, broker_id: int) -> Cause:
    name = case.broker_name(broker_id)
    return case.cause(
        WaitReason.PART_UNKNOWN,
        name,
        WaitReason.PARTITIONS_NOT_IN_SYNC,
        observed=told.why + leaders_word(case, broker_id) + complaints(case, broker_id),
        expected="all brokers list the same brokers",
        fix="Check again: after a broker has started or ended they differ for some seconds. If it lasts, the one "
        "that lists too few or too many hears from no controller: look in its log for its session with "
        f"ZooKeeper, and for `could not be established`. Fix that, or {restart_of(case, broker_id)}.",
    )


def _unlisted(case: Case) -> Iterator[Cause]:
    """But for those whose registration is known to be gone, which `node_causes` tells."""
    kafka = case.observation.kafka
    if kafka is None or case.facts.left_behind or case.facts.is_claim_lost:
        return
    told = case.absent_brokers.union(case.unregistered)
    for broker in case.spec.brokers:
        if broker.id not in kafka.broker_ids and broker.id not in told:
            yield case.cause(
                WaitReason.PARTITIONS_NOT_IN_SYNC,
                case.name(broker.id),
                observed="it runs, and the other brokers do not list it" + leaders_word(case, broker.id),
                expected="every broker is listed by the others",
                fix="Its registration is gone or fenced. Look at its log for `Unable to register broker` or a lost session.",
            )
