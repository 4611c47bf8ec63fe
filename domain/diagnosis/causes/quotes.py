"""What logs, threads and servers say of a node, as sentences for an entry: complaints, last words, what it lacks, who keeps it
out. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from domain.checks.check import some
from domain.diagnosis.causes.case import SLOW, Case
from domain.diagnosis.causes.hints import Serving
from domain.diagnosis.logs.complaints import complaint_in, last_of, said_in, trouble_with, without_frames
from domain.diagnosis.logs.connecting import (
    CLUSTER_REFUSED,
    LOGIN_FAILED,
    PROTOCOL_DIFFERS,
    TLS_FAILED,
    TURNED_AWAY,
    refusals_in,
    refused_node_in,
    unconnected_in,
)
from domain.diagnosis.logs.lines import Found, age_of, current, found_in, of_this_process, said_by_new, set_back_by, stamp_of
from domain.diagnosis.logs.members import turned_away_by
from domain.diagnosis.logs.running import OUT_OF_MEMORY, SILENCES, who_asked
from domain.observed.observation import NodeView

MOST_COMPLAINTS = 2
"""Logs of which the last complaint is quoted."""


def said_since_started(case: Case, view: NodeView) -> Sequence[str] | None:
    """What its last process has printed below the lines of the one before it, as far as that is to be told."""
    started_at = view.process.started_at if view.process is not None else None
    if started_at is None:
        return None
    now = case.observation.ended_at
    return said_by_new(case.log(view.id), now - started_at, now)


def complaints(case: Case, *node_ids: int) -> str:
    """Where nothing known explains what is seen: what the logs of these nodes complained of last, as further sentences.

    It may have nothing to do with it; a person sees that at once, and is spared the search where it has.
    """
    known, since = {node.id for node in case.spec.nodes}, case.lasts
    told = {i: complaint_in(_of_its_process(case, i), since) for i in node_ids if i in known}
    quotes = [f". The last complaint in the log of {case.name(i)}: {quote}" for i, quote in told.items() if quote]
    return "".join(quotes[:MOST_COMPLAINTS])


def _of_its_process(case: Case, node_id: int) -> Sequence[str]:
    """Of one that has printed nothing yet the last lines are those of the process before it."""
    new = said_since_started(case, case.observation.node(node_id))
    return new if new is not None else case.log(node_id)


def leaders_word(case: Case, broker_id: int) -> str:
    """What the active controller's log has to say of a broker, as a further sentence."""
    leader = case.leader
    if leader is None:
        return ""
    quote = trouble_with(case.log(leader.id), f"broker {broker_id}", f"id: {broker_id} rack", "registerBroker")
    return f". The log of {case.name(leader.id)}, which leads, says: {quote}" if quote else ""


def last_word(case: Case, node_id: int) -> str:
    lines = case.log(node_id)
    age = _age_of_last(case, node_id)
    ago = f", {age.total_seconds():.0f} s ago" if age is not None and age > SLOW else ""
    last = last_of(lines)
    return f". The last that it printed{ago}: {last}" if last else ""


def _age_of_last(case: Case, node_id: int) -> timedelta | None:
    """By its own time, which is not that of the line above it; where it has none, by its file's."""
    output, now = case.hints.outputs.get(case.name(node_id)), case.observation.ended_at
    last = next((line for line in reversed(without_frames(case.log(node_id))) if line.strip()), "")
    if stamp_of(last) is not None:
        return age_of(last, now)
    return now - output.changed_at if output is not None and output.changed_at is not None else None


FEW_PARTITIONS = 20_000
"""Whose metadata take some 60 MiB of a heap."""


def lack_of(case: Case, node_id: int) -> Found | None:
    """By what its log has said of late, with the whole fix; `None` where it says nothing of it."""
    lines = current(case.log(node_id))
    for found in found_in(lines, SILENCES):
        exact = who_asked(found, of_this_process(lines))
        return replace(exact, told=replace(exact.told, fix=fix_of_lack(case, exact)))
    return None


def fix_of_lack(case: Case, found: Found) -> str:
    """Of one that runs."""
    told = found.told
    then = " Then restart it." if told.cure != told.fix else ""
    return f"{before_more_heap(case, told.name)}{told.cure}{then}"


def before_more_heap(case: Case, kind: str) -> str:
    """What to look for first where a node had no heap left, and the cluster's metadata are not what has filled it."""
    kafka = case.observation.kafka
    if kind != OUT_OF_MEMORY.name or kafka is None or kafka.partition_count > FEW_PARTITIONS:
        return ""
    return (
        f"First find what fills the heap: the metadata of {kafka.partition_count:,} partitions do not. A client "
        "that connects to its listener and does not speak Kafka makes it reserve up to socket.request.max.bytes "
        "(100 MiB) for each connection: a vulnerability scanner, a health check, a wrong TLS setting. A large "
        "request does so too. See which hosts connect there (`ss -tn`, the firewall's log, the scanner's "
        "schedule). Keep them from its port, or lower socket.request.max.bytes. If it is none of that: "
    )


OF_THE_ENSEMBLE = frozenset({"zookeeper-unreachable", TURNED_AWAY.name})
"""Deaths that a server of ZooKeeper may know more of."""


def word_of_servers(case: Case) -> tuple[str, str]:
    """What a member that serves has against somebody, as a further sentence, and what to do; empty where they say nothing."""
    for address, lines in case.hints.server_logs.items():
        if case.hints.servers.get(address) is Serving.YES and (found := turned_away_by(lines)) is not None:
            return f". The log of zookeeper {address}, which serves, says: {found.quote}", found.told.fix
    return "", ""


TO_A_NODE = "Error connecting to node "
"""And not to ZooKeeper, which a controller asks as well."""
KEEP_APART = (CLUSTER_REFUSED, PROTOCOL_DIFFERS, TLS_FAILED, LOGIN_FAILED)


def kept_apart(lines: Sequence[str]) -> Found | None:
    """What keeps a controller from the others: what those say to it, or it to them, or that it does not get there."""
    refused, unreached = next(iter(refusals_in(lines, KEEP_APART)), None), cut_off(lines)
    is_of_a_node = unreached is not None and TO_A_NODE in unreached.quote
    return refused or refused_node_in(lines) or (unreached if is_of_a_node else None)


def cut_off(lines: Sequence[str]) -> Found | None:
    """What keeps one that runs from whom it asks."""
    return unconnected_in(list(said_in(current(lines))))


TIMERS_STAND = (
    "Check which time is right (`chronyc tracking`, `timedatectl`: an RTC in local time, chrony's makestep, "
    "a resumed machine). If it is the earlier clock, set the clock right: they continue by themselves. If it "
    "is the present one, wait that long, or restart these controllers one after the other: there is no "
    "leader to lose. Raft's timers follow that clock, and no election begins before it is where it was. If "
    "it is only the end of summer time, when logs go back by an hour, check that the controllers reach each "
    "other's listeners."
)


def set_back(case: Case, *node_ids: int) -> str:
    """Of which of these the clock was set back, by their logs, and how far it is from where it was, as a further sentence."""
    behind = {i: set_back_by(of_this_process(case.log(i))) for i in node_ids}
    told = [f"{case.name(i)} by {by}" for i, by in behind.items() if by]
    return f". By their logs, a clock was set back under {some(told)}" if told else ""
