"""A plan as a page of Markdown: what somebody reads before saying yes, in a terminal or in a ticket.

What stands in the way comes first, what cannot be undone next; the files come last, because they are long.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import groupby

from api.pages.markdown import fenced, in_one_line
from api.running.activity_progress import ActivityProgress
from domain.amounts import counted, roughly
from domain.decisions import Finding, Severity
from domain.plans import NOTHING_ANSWERS, Basis, DroppedKey, Estimate, Plan, PlannedNode, PlannedRoll, PlannedWave
from domain.policy import MigrationPolicy
from domain.rehearsal import RehearsalReport

SAYS = {
    Severity.BLOCKER: "Blockers: nothing starts before these are fixed, or accepted in the policy",
    Severity.WARNING: "Warnings",
    Severity.INFO: "Worth knowing",
}
ACCEPTED = "Accepted: blockers that stop nothing, because the policy says so"
TIME = "%Y-%m-%d %H:%M:%S %Z"


def page_of(plan: Plan) -> str:
    parts = [
        f"# Plan of {plan.kind} for cluster {plan.cluster}",
        _verdict(plan),
        f"Made at {plan.made_at:{TIME}} in phase **{plan.phase or 'unknown'}**, for {in_one_line(plan.requested_by)}. "
        f"Hash `{plan.plan_hash}`.",
        *_section("Did not answer, so this plan does not cover it", [in_one_line(part) for part in plan.unknown]),
        *_findings(plan.findings),
        *_section("Policy", list(_policy(plan.policy)) or ["Everything has its default."]),
        *_rehearsal(plan.rehearsal),
        *(_way(plan) if plan.nodes else []),
    ]
    return "\n\n".join(parts) + "\n"


def _way(plan: Plan) -> list[str]:
    back = f"A rollback is expected to leave the cluster without a controller for at most {plan.controllerless_seconds:g} s."
    return [
        *_section("What cannot be undone", [f"{p.what} Gate: **{p.gate}**." for p in plan.irreversible]),
        *_rolls(plan.rolls, plan.estimate),
        *([back] if plan.rolls else []),
        *_section("What is made for a moment, and removed", plan.canaries),
        *_section("What is not migrated", plan.not_migrated),
        *_section("What changes for people", plan.changes_for_people),
        *_section("Configuration management", list(_configuration(plan.nodes))),
        "## Files",
        *[part for node in plan.nodes for part in _files(node)],
    ]


def page_without_plan(plan_id: str, standing: ActivityProgress) -> str:
    """Of one that is being made, or could not be."""
    return f"# A plan that is {standing.state}\n\n`{plan_id}`, asked for at {standing.started_at:{TIME}}. {standing.detail}\n"


def _verdict(plan: Plan) -> str:
    if any(finding.code == NOTHING_ANSWERS for finding in plan.findings):
        return "**Nothing can be planned.** No part of the cluster answers, so it is unknown what there is to do."
    if plan.is_blocked:
        return "**Blocked.** A migration would be refused, and nothing changed."
    return f"A migration may start: `POST /migrations` with `plan_id` `{plan.id}`."


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", "\n".join(f"- {line}" for line in lines)] if lines else []


def _findings(findings: Sequence[Finding]) -> Iterator[str]:
    """As they are sorted: the gravest first."""
    for title, found in groupby(findings, key=lambda finding: ACCEPTED if finding.accepted else SAYS[finding.severity]):
        yield from _section(title, [_finding(finding) for finding in found])


def _finding(finding: Finding) -> str:
    cannot = " (could not be checked)" if finding.is_unverifiable else ""
    accepted = finding.accepted
    then = finding.fix if accepted is None else f"Accepted by {accepted.by}: {accepted.reason}"
    return in_one_line(f"**{finding.code}** {finding.object}{cannot}: {finding.observed}; expected: {finding.expected}. {then}")


def _policy(policy: MigrationPolicy) -> Iterator[str]:
    """What differs from the defaults, as it is written in a policy, and what somebody answers for."""
    listed = {"accepted_findings", "tolerated"}
    for name, value in policy.model_dump(mode="json", exclude_defaults=True, exclude=listed).items():
        yield f"`{name}`: {json.dumps(value, ensure_ascii=False)}"
    for accepted in policy.accepted_findings:
        things = "every object" if accepted.object == "*" else accepted.object
        yield in_one_line(f"Accepted: **{accepted.code}** of {things}, by {accepted.by}: {accepted.reason}")
    for tolerated in policy.tolerated:
        yield in_one_line(f"Tolerated: {tolerated.record}, {tolerated.named}")


def _rehearsal(report: RehearsalReport | None) -> Iterator[str]:
    if report is None or report.refused:
        return
    yield "## The copy was rehearsed"
    records = ", ".join(f"{count} {kind}" for kind, count in report.records.items()) or "none"
    gap = report.seconds_without_controller
    lines = [
        _passed(report),
        f"Records: {records}.",
        *([f"The cluster would be without a ZooKeeper controller for {gap:.1f} s."] if gap is not None else []),
        *([f"Compared with the original: {report.equality.verdict}."] if report.equality is not None else []),
        *([report.advice] if report.advice else []),
    ]
    yield "\n".join(f"- {in_one_line(line)}" for line in lines)


def _passed(report: RehearsalReport) -> str:
    after = counted(report.rounds, "round")
    if report.has_passed:
        return f"It passed with the cluster as it is, after {after}."
    if not report.has_passed_in_part:
        return f"**It did not pass**, after {after}."
    without = f"After {after} it passed without: {', '.join(report.left_out)}. All that follows is about that copy."
    return f"**It did not pass with the cluster as it is.** {without}"


def _rolls(rolls: Sequence[PlannedRoll], estimate: Estimate) -> Iterator[str]:
    if not rolls:
        yield "## What is restarted\n\nNothing."
        return
    rests_on = "restarts of this cluster" if estimate.basis is Basis.MEASURED else "an estimate: this cluster has no history"
    takes = roughly(estimate.seconds).capitalize()
    yield f"## What is restarted, in this order\n\n{takes} without soak, comparisons and approvals ({rests_on})."
    for roll in rolls:
        lines = [_waves(tuple(waves)) for _, waves in groupby(roll.waves, key=_why)]
        yield f"### {roll.what}"
        yield "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


def _why(wave: PlannedWave) -> str:
    stops = f" **Unavailable during it: {', '.join(wave.cannot_spare)}.**" if wave.cannot_spare else ""
    gone = f" Unavailable during it: {', '.join(wave.without)}." if wave.without else ""
    return f"{in_one_line(wave.reason)}{stops}{gone}"


def _waves(waves: Sequence[PlannedWave]) -> str:
    """One after the other, for the same reason."""
    return f"{', then '.join(', '.join(wave.nodes) for wave in waves)}: {_why(waves[0])}"


def _configuration(nodes: Sequence[PlannedNode]) -> Iterator[str]:
    """What is the same of several nodes, once."""
    for text in dict.fromkeys(node.configuration_management for node in nodes if node.configuration_management):
        yield f"{', '.join(node.name for node in nodes if node.configuration_management == text)}: {in_one_line(text)}"


def _files(node: PlannedNode) -> Iterator[str]:
    yield f"### {node.name}: `{node.path}`"
    if not node.files:
        yield "Its text is unknown: it could not be read, or no further change is written."
    for file in node.files:
        diff = fenced("\n".join(file.diff), "diff")
        yield f"Stage **{file.stage}**, sha256 `{file.sha256}`:\n\n{diff}"
    if node.dropped:
        yield "Keys of its base file that are dropped, or have another value in it:"
        yield "\n".join(f"- `{in_one_line(one.key)}`, {_how_dropped(one)}: {in_one_line(one.why)}" for one in node.dropped)


def _how_dropped(one: DroppedKey) -> str:
    return f"{'replaced' if one.is_replaced else 'dropped'} in stage {one.stage}"
