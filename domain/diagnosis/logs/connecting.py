"""Why a process does not get through to another one, or is not let in there, by what it warns of while it tries. Pure.

It lives on with that and tries again, or gives up with words that only say so: the exception below them tells more. From
NetworkClient and BrokerLifecycleManager of Kafka 3.9, and ClientCnxn, QuorumCnxManager and Learner of ZooKeeper 3.8.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from domain.diagnosis.logs.catalogue import KAFKA, THEN_START, Told
from domain.diagnosis.logs.complaints import OF_A_NODE, Said, blocks, in_short
from domain.diagnosis.logs.lines import OF_OTHERS, Found, all_found, current, first_of, found_in, of_its_own

KEYS = KAFKA.of("dying", "keys", "logins")
LOGIN_REASONS = KAFKA.of("running", "logins")
TLS_FAILED, LOGIN_FAILED = KAFKA["tls-handshake-failed"], KAFKA["login-failed"]
PROTOCOL_DIFFERS, CLUSTER_REFUSED = KAFKA["protocol-differs"], KAFKA["inconsistent-cluster-id"]
PEER_CUT, PEER_UNREACHABLE, PEER_SILENT = KAFKA["peer-cut"], KAFKA["peer-unreachable"], KAFKA["peer-silent"]
NO_LISTENER, TOO_MANY_CONNECTIONS = KAFKA["no-listener"], KAFKA["too-many-connections"]
CLUSTER_ACTION_REFUSED, NODE_REFUSED = KAFKA["cluster-action-refused"], KAFKA["node-refused"]
SESSION_TOO_SHORT, SESSION_LOST = KAFKA["zookeeper-session-too-short"], KAFKA["zookeeper-session-lost"]
REGISTRATION_OVER_QUOTA, LIFT_QUOTA = KAFKA["zookeeper-quota-reached"], KAFKA.snippets["lift_quota"]
ANSWER_TOO_LARGE, TURNED_AWAY = KAFKA["zookeeper-answer-too-large"], KAFKA["connection-closed-by-zookeeper"]
FENCED = KAFKA["broker-fenced"]
REGISTRATION_REFUSALS = tuple(told for told in KAFKA.of("running", "registration") if told is not FENCED)
REFUSALS = (
    CLUSTER_ACTION_REFUSED,
    *REGISTRATION_REFUSALS,
    CLUSTER_REFUSED,
    PROTOCOL_DIFFERS,
    TLS_FAILED,
    LOGIN_FAILED,
    ANSWER_TOO_LARGE,
    PEER_CUT,
    PEER_UNREACHABLE,
)
"""Why a broker does not register."""
UNCONNECTED = KAFKA.of("connecting")
BY_THEMSELVES = (*UNCONNECTED, KAFKA["machine-out-of-files"], KAFKA["unknown-host"])
"""Who runs tries again, and needs no restart once that is mended."""
KINDS = (*BY_THEMSELVES, KAFKA["too-many-open-files"], *KEYS)
REGISTERED = re.compile(r"Successfully registered broker \d+ with broker epoch|The broker has been unfenced")
"""A broker's refusals before that are over (BrokerLifecycleManager)."""
TRIES = re.compile(
    r"Error connecting to node |Session 0x\w{1,20} for \w{5,6} |future isn't success|Unexpected throwable|"
    r"Cannot open (?:secure )?channel to |Failed connect to |connecting to \S|Exception when (?:follow|observ)ing the leader"
)
AS_WHOM = re.compile(r", (principal=.{1,200}?), listenerName=")
KEPT_LOADED = "It may be this node's or its peer's: fix that one. A process keeps what it has loaded until its next restart."
BY_ITSELF = "It tries again by itself."


def refusals_in(lines: Sequence[str], kinds: Sequence[Told] = REFUSALS) -> tuple[Found, ...]:
    """Of what it is told by those to whom it connects."""
    return tuple(exactly(found) for found in found_in(of_its_own(lines), kinds))


def exactly(found: Found) -> Found:
    """With the reason that stands in the line or below it, if that is known."""
    if found.told is PEER_UNREACHABLE:
        reason = next((one for line in found.thrown if (one := first_of(line, BY_THEMSELVES)) is not None), None)
        return found if reason is None else replace(found, told=reason.told, quote=f"{found.quote}: {reason.quote}")
    if found.told not in {TLS_FAILED, LOGIN_FAILED}:
        return found
    reasons = [reason for line in found.block if (reason := first_of(line, (*KEYS, *LOGIN_REASONS))) is not None]
    if not reasons:
        return found
    reason = reasons[-1]
    then = KEPT_LOADED if found.told is TLS_FAILED else BY_ITSELF
    quote = found.quote if reason.quote in found.quote else f"{found.quote}: {reason.quote}"
    told = replace(found.told, expected=reason.told.expected, fix=f"{reason.told.cure} {then}")
    return replace(found, told=told, quote=quote)


def since_registered(lines: Sequence[str]) -> tuple[str, ...]:
    """What a broker has said since the controllers took it, as far as they have."""
    taken = [number for number, line in enumerate(lines) if REGISTERED.search(line)]
    return tuple(lines[taken[-1] + 1 :] if taken else lines)


def refused_node_in(lines: Sequence[str]) -> Found | None:
    """The last of the nodes that this one does not let do what they are to."""
    refused = [found for found in all_found(current(lines), (NODE_REFUSED,)) if OF_A_NODE.search(found.block[0])]
    if not refused:
        return None
    principal = AS_WHOM.search(refused[-1].block[0])
    return replace(refused[-1], quote=f"{refused[-1].quote}, {principal[1]}") if principal else refused[-1]


def unconnected(block: Sequence[Said]) -> Found | None:
    """Of one complaint with the exceptions below it."""
    if not TRIES.search(block[0].text) or OF_OTHERS.search(block[0].text) or len(block) == 1:
        return None
    found = first_of(" | ".join(one.text for one in block[1:]), KINDS)
    return replace(found, quote=in_short(block)) if found is not None else None


def unconnected_in(said: Sequence[Said]) -> Found | None:
    """The last that is known."""
    known = [found for block in blocks(said) if (found := unconnected(block)) is not None]
    return known[-1] if known else None


def of_the_dead(found: Found) -> Found:
    return replace(found, told=replace(found.told, fix=f"{found.told.cure}{THEN_START}"))


def fix_of_the_living(found: Found) -> str:
    told = found.told
    return told.cure if told in BY_THEMSELVES or told.cure == told.fix else f"{told.cure} Then restart it."


def of_a_server(found: Found) -> Found:
    """With the fix for a server of ZooKeeper: it has a login in its JAAS file alone."""
    fix = found.told.fix_of_member
    return replace(found, told=replace(found.told, fix=fix)) if fix else found
