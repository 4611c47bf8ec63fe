"""What a rehearsal of Kafka's copy has shown. Pure.

RH00   it was asked for, and could not be made, or not to its end
RH01   a znode that makes the copy abort: the controllers die after their claim, the cluster has no controller
RH02   a znode that keeps the copy from beginning: it waits without an end
RH03   a znode that the copy passes over in silence: something is gone, or another, afterwards
RH04   the copy stopped, and no znode explains it
RH05   the copy is not what ZooKeeper has
RH06   a znode after which dual write never begins: all is copied, and the new controller fails to write to ZooKeeper
RH07   nobody could say how new the copied files have to be: they may be a stale server's
"""

import math
from collections.abc import Iterable

from domain.decisions import Finding, Severity
from domain.drift.records import Severity as DriftSeverity
from domain.drift.report import DriftFinding, FindingKind, Verdict
from domain.rehearsal import Equality, RehearsalReport, Usage
from domain.zk_to_kraft.rehearsal.trials import Candidate, Effect, Proven

NOT_MADE = "RH00"
ABORTS, BLOCKS, LOSES, UNEXPLAINED, DIFFERS, HANGS, AGELESS = "RH01", "RH02", "RH03", "RH04", "RH05", "RH06", "RH07"
CODES = (NOT_MADE, ABORTS, BLOCKS, LOSES, UNEXPLAINED, DIFFERS, HANGS, AGELESS)
CODE_OF = {Effect.ABORTS: ABORTS, Effect.BLOCKS: BLOCKS, Effect.LOSES: LOSES, Effect.HANGS: HANGS}

OBSERVED_OF = {
    Effect.ABORTS: "the copy aborts, and the controller exits after it has claimed /controller",
    Effect.BLOCKS: "the copy never begins: it waits for ever",
    Effect.HANGS: "everything is copied, but dual write never begins: the new controller fails to write to ZooKeeper, again "
    "and again",
    Effect.LOSES: "the copy skips it without an error: its content is lost or changed afterwards",
}
ONLY_GUESS = (
    "this is a guess: the copy aborts with all znodes of this kind, and passes without them. It was not tested whether this "
    "one is the cause. If it is, it"
)
ONLY_EXPECTED = "that is expected of such a znode: neither this one nor another one with the same fault was tested by itself"
EXPECTED = "a znode that Kafka's copy reads as intended"
HEAP_STEP_MIB = 256
HEAP_HEADROOM = 2.0
"""A controller of a living cluster does more at a time than copy."""
MOST_DIFFERENCES = 50
"""Differences that are findings of their own; the counts have all."""


def refusal(why: str) -> RehearsalReport:
    return RehearsalReport(refused=why)


def not_made(why: str) -> Finding:
    """Whoever asks for a rehearsal wants to know: that nothing is known is no pass."""
    return Finding(
        code=NOT_MADE,
        severity=Severity.BLOCKER,
        is_unverifiable=True,
        object="rehearsal",
        observed=why,
        expected="a copy that was made beforehand, away from the cluster",
        fix="Make the rehearsal possible, ask for a plan without a rehearsal, or accept this by name in the policy.",
    )


def too_late(phase: str) -> Finding:
    """There is nothing left to try: ZooKeeper is not copied any more."""
    return Finding(
        code=NOT_MADE,
        severity=Severity.INFO,
        object="rehearsal",
        observed=f"none was made: the cluster is in phase {phase}, and Kafka's copy has already begun",
        expected="a copy that is still ahead",
        fix="There is nothing left to rehearse.",
    )


def cut_short(why: str) -> Finding:
    """No copy has passed, and there was no time to find out what stops it: what is known is found, and may not be all."""
    return Finding(
        code=NOT_MADE,
        is_unverifiable=True,
        object="rehearsal",
        observed=f"it was cut short: {why}. No copy has passed so far; what stops it is not known, or not completely",
        expected="a copy that ends in dual write",
        fix="Fix what is named beside this, and rehearse again: each fixed fault saves rounds. If nothing is named, "
        "rehearse on a machine with more cores and memory, or while it is idle.",
    )


def age_unknown(why: str, zxid: int) -> Finding:
    """The copy may be one of yesterday's tree. `zxid`: what its files are known to have."""
    return Finding(
        code=AGELESS,
        is_unverifiable=True,
        object="copied files",
        observed=f"{why}. The copied files certainly contain transaction {zxid:#x}, according to znodes that seldom change",
        expected="files as new as the ensemble was right before they were copied",
        fix="Allow srvr on every server (4lw.commands.whitelist), check that one answers, and rehearse again. Or check "
        "yourself that the copied server follows (zkServer.sh status there and on the leader), and accept this in the "
        "policy.",
    )


def findings_of(proofs: Iterable[Proven], connect: str) -> tuple[Finding, ...]:
    """One for each znode, in the order of the codes."""
    return tuple(sorted((_finding_of(each, connect) for each in proofs), key=lambda found: (found.code, found.object)))


def _finding_of(proof: Proven, connect: str) -> Finding:
    is_only_guess = proof.is_expected and proof.candidate.is_guess
    observed = f"{proof.candidate.why}; {OBSERVED_OF[proof.effect]}{_how_known(proof)}"
    return Finding(
        code=CODE_OF[proof.effect],
        severity=Severity.BLOCKER,
        is_unverifiable=is_only_guess,
        object=proof.candidate.path,
        observed=f"{ONLY_GUESS} {proof.candidate.why}" if is_only_guess else observed,
        expected=EXPECTED,
        fix=fix_of(proof.candidate, connect),
    )


def _how_known(proof: Proven) -> str:
    if proof.is_tried:
        return ""
    return f" ({ONLY_EXPECTED})" if proof.is_expected else " (not tested by itself; another one with the same fault was)"


def fix_of(candidate: Candidate, connect: str) -> str:
    """What to do, by the znode's place. `connect`: for the shell."""
    path = candidate.path
    if candidate.is_guess:
        return (
            "Give the brokers' files the password.encoder.secret with which it was encrypted, or set the password again "
            f"(kafka-configs.sh --alter --entity-type brokers --entity-name {path.rpartition('/')[2]})."
        )
    shell = f"zookeeper-shell.sh {connect}"
    name = path.rpartition("/")[2]
    if path.startswith("/brokers/ids"):
        return (
            f"Start broker {name}, or reassign its replicas with kafka-reassign-partitions.sh to brokers that exist."
            if name.isdecimal()
            else "Start the brokers: each registers itself there."
        )
    if path.startswith("/brokers/topics/") and path.endswith("/state"):
        return (
            f"Write the brokers' state into it ({shell} set {path} '…', with leader, isr and epochs as kafka-topics.sh "
            "--describe shows them). If PF17 is found, fix it. Then delete /controller once, so that a controller reads the "
            "state again."
        )
    if path.startswith("/brokers/topics/"):
        return (
            "If only topic_id is missing, do not elect a controller yet: finding PF17 of a plan says whether to restore an "
            f"id or to elect. Otherwise correct the znode: {shell} set {path} '…'."
        )
    if path.startswith("/config/topics/"):
        return f"Set them again (kafka-configs.sh --alter --entity-type topics --entity-name {name}), or {shell} delete {path}."
    if path.startswith(("/config/", "/kafka-acl", "/delegation_token")):
        remove = f"or remove it ({shell} delete {path}) and set what it meant again with Kafka's tools"
        return f"Correct it ({shell} set {path} '…'), {remove}."
    return f"Correct it: {shell} set {path} '…'."


def unexplained(what: str, told: tuple[str, ...]) -> Finding:
    """The copy stopped, and no znode explains it. `told`: the last of the controller's log, stripped."""
    return Finding(
        code=UNEXPLAINED,
        object="copy",
        observed=f"{what}. The controller's log ended with: " + (" | ".join(told) or "nothing"),
        expected="a copy that ends in dual write",
        fix="Do not start. No znode was found that explains it. Read what the log names, or ask the Kafka community with it.",
    )


def differences_of(equality: Equality | None, named: Iterable[str] = ()) -> tuple[Finding, ...]:
    """Of a copy that passed. What is for information is none, nor what cannot be read where that is `named` already: paths."""
    if equality is None or equality.verdict is Verdict.CLEAN:
        return ()
    told = [each for each in equality.differences if each.severity is not DriftSeverity.INFO]
    found = [_difference(each) for each in told[:MOST_DIFFERENCES] if each.finding is not FindingKind.TOLERATED]
    places = tuple(f"{path} " for path in named)
    return (*found, *(_not_read(why) for why in equality.not_read if not why.startswith(places)))


def _difference(one: DriftFinding) -> Finding:
    where = f" {one.field}" if one.field else ""
    return Finding(
        code=DIFFERS,
        object=f"{one.record} {one.key}{where}",
        observed=f"{one.finding}: ZooKeeper has {one.left!s}, the copy {one.right!s}",
        expected="the same on both sides",
        fix=f"Check {one.left_at or 'ZooKeeper'}, and set it again with Kafka's tools.",
    )


def _not_read(why: str) -> Finding:
    return Finding(
        code=DIFFERS,
        is_unverifiable=True,
        object="copy",
        observed=f"not compared: {why}",
        expected="the same on both sides",
        fix="Fix what could not be read, and rehearse again.",
    )


def advice_of(usage: Usage) -> str:
    """How much memory to give the real controllers."""
    if usage.was_out_of_memory:
        return f"{usage.heap_given_mib} MiB of heap were not enough for the copy: rehearse with more."
    if usage.heap_mib is None:
        return ""
    wanted = max(1, math.ceil(usage.heap_mib * HEAP_HEADROOM / HEAP_STEP_MIB)) * HEAP_STEP_MIB
    resident = f", {usage.rss_mib:.0f} MiB resident" if usage.rss_mib is not None else ""
    needed = f"the copy needed {usage.heap_mib:.0f} MiB{resident}"
    return f"Give each controller {wanted} MiB of heap (-Xmx{wanted}m) or more: {needed}."
