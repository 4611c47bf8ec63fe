"""Why a node that runs is turned away by its peers: of a handshake or a login that failed, by what was thrown there."""

import re
from collections.abc import Sequence
from dataclasses import replace

from domain.diagnosis.logs.kafka_deaths import KEYS
from domain.diagnosis.logs.lines import Found, Told, first_of, found_in, of_its_own
from domain.diagnosis.logs.registration_lines import LOGIN_FAILED, PEER_UNREACHABLE, REFUSALS, TLS_FAILED
from domain.diagnosis.logs.unconnected import BY_THEMSELVES

TICKET = Told(
    "kerberos-ticket",
    re.compile(r"GSS initiate failed(?: \[Caused by GSSException: [^\]]{1,160}\])?|No valid credentials provided"),
    "a Kerberos ticket that is valid",
    "Its ticket is over, and was not renewed: look at its log for `TGT`, whether the KDC is reached, and whether its keytab is "
    "there and its own. It logs in anew by itself; where its log says `exiting refresh thread`, from its next restart on only.",
)
LOGIN_MECHANISM = Told(
    "login-mechanism",
    re.compile(
        r"(?:Client SASL mechanism '[\w-]{1,40}' not enabled in the server|Unexpected handshake request with client mechanism "
        r"[\w-]{1,40}), enabled mechanisms are \[[\w, -]{0,120}\]"
    ),
    "a SASL mechanism that the listener which is asked has",
    "Compare sasl.enabled.mechanisms (listener.name.NAME.sasl.enabled.mechanisms) in the file of the node at the other end "
    "with sasl.mechanism.controller.protocol, or sasl.mechanism.inter.broker.protocol, in this one's, correct what differs, "
    "and restart that node.",
)
LOGIN_CREDENTIALS = Told(
    "login-credentials",
    re.compile(
        r"Authentication failed: Invalid username or password|Authentication failed during (?:re-)?authentication due to "
        r"invalid credentials with SASL mechanism [\w-]{1,40}"
    ),
    "a user and a password that the other end knows",
    "PLAIN: compare user_NAME in the JAAS configuration of the listener at the other end with username and password in this "
    "node's. SCRAM: somebody has set that user's password anew, or deleted the user: set the one that the nodes have again, "
    "which takes effect at once (kafka-configs.sh --describe --entity-type users shows who is there). GSSAPI: the other end "
    "cannot read the ticket with its keytab; its log of the same second says why.",
)
LOGIN_TOKEN = Told(
    "login-token",
    re.compile(r'"status":"(?:invalid_token|insufficient_scope)"'),
    "a token that the other end takes",
    "The other end does not take its token: its log of the same second says why: issuer, audience, scope, a clock, or keys "
    "(JWKS) that it cannot fetch.",
)
LOGIN_REASONS = (TICKET, LOGIN_MECHANISM, LOGIN_CREDENTIALS, LOGIN_TOKEN)
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
    reasons = [reason for line in found.block if (reason := first_of(line, (*KEYS, *LOGIN_REASONS))) is not None]
    if not reasons:
        return found
    reason = reasons[-1]
    then = KEPT_LOADED if found.told is TLS_FAILED else BY_ITSELF
    quote = found.quote if reason.quote in found.quote else f"{found.quote}: {reason.quote}"
    told = replace(found.told, expected=reason.told.expected, fix=f"{reason.told.cure} {then}")
    return replace(found, told=told, quote=quote)
