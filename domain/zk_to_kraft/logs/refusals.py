"""Why a node that runs is turned away by its peers: of a handshake or a login that failed, by what was thrown there."""

import re
from collections.abc import Sequence
from dataclasses import replace

from domain.zk_to_kraft.logs.kafka_deaths import KEYS
from domain.zk_to_kraft.logs.lines import Found, Told, first_of, found_in, of_its_own
from domain.zk_to_kraft.logs.registration_lines import LOGIN_FAILED, PEER_UNREACHABLE, REFUSALS, TLS_FAILED
from domain.zk_to_kraft.logs.unconnected import BY_THEMSELVES

TICKET = Told(
    "kerberos-ticket",
    re.compile(r"GSS initiate failed(?: \[Caused by GSSException: [^\]]{1,160}\])?|No valid credentials provided"),
    "a Kerberos ticket that is valid",
    "Its ticket is over, and was not renewed: look at its log for `TGT`, whether the KDC is reached, and whether its keytab is "
    "there and its own. It logs in anew by itself; where its log says `exiting refresh thread`, from its next restart on only.",
)
KEPT_LOADED = (
    "It may be this node's, or that of the node at the other end: that is the one to mend. What a process has loaded, it keeps "
    "until its next restart."
)
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
    reasons = [reason for line in found.block if (reason := first_of(line, (*KEYS, TICKET))) is not None]
    if not reasons:
        return found
    reason = reasons[-1]
    then = KEPT_LOADED if found.told is TLS_FAILED else BY_ITSELF
    told = replace(found.told, expected=reason.told.expected, fix=f"{reason.told.cure} {then}")
    return replace(found, told=told, quote=f"{found.quote}: {reason.quote}")
