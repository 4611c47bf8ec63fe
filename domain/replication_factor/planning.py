"""The plan: what would be moved, what that costs, and what is in the way."""

from collections.abc import Iterator, Sequence

from domain.checks.acceptance import blockers_in
from domain.cluster import ClusterSpec
from domain.decisions import Finding, Severity
from domain.evidence import hash_of
from domain.observed.observation import Observation
from domain.observed.replicas import LISTS, Layout, Partition, Throttles
from domain.plans import Asked, Basis, Estimate, EstimatedPart, Plan, in_the_way
from domain.replication_factor.assessment import Phase, basis_of, is_blind
from domain.replication_factor.change import Change
from domain.replication_factor.cost import Cost, cost_of, seconds_of
from domain.replication_factor.decide import MOST_NAMED, START
from domain.replication_factor.judge import why_not
from domain.replication_factor.planner import CannotPlace
from domain.replication_factor.sight import ReplicaSight, changes_of, sight
from domain.replication_factor.wanted import ReplicationFactorWanted, bytes_of
from domain.rolling.change import Files

GUESSED_BYTES_PER_SECOND = 50_000_000
"""How fast a broker copies that nothing slows: a guess, and shown as one."""
FINDING_CODES = ("RF00", "RF01", "RF02", "RF03", "RF04", "RF05", "RF06", "RF07", "RF08", "RF09", "RF10")


def plan_of(observation: Observation, spec: ClusterSpec, files: Files, asked: Asked, observation_name: str) -> Plan:
    """From one look. Raises nothing: what cannot be planned is a finding."""
    seen, wanted = sight(observation), ReplicationFactorWanted.of(asked.wanted)
    changes, findings = list[Change](), list[Finding]()
    if seen.now is not None:
        try:
            changes = changes_of(seen.now, wanted)
        except CannotPlace as error:
            findings.append(finding("RF03", "brokers", str(error), "as many as replicas are wanted", START_BROKERS))
        findings += _findings(seen, seen.now, wanted, changes)
    if asked.migration is not None:
        findings.append(in_the_way(asked.migration))
    cost, blocked = cost_of(changes), blockers_in(findings, asked.policy)
    return Plan(
        id=asked.id,
        cluster=spec.name,
        cluster_id=spec.cluster_id,
        kind=asked.kind,
        policy=asked.policy,
        wanted=asked.wanted,
        spec_revision=observation.spec_revision,
        requested_by=asked.requested_by,
        requested_at=asked.requested_at,
        made_at=observation.ended_at,
        observation=observation_name,
        phase=Phase.PREFLIGHT,
        is_blocked=bool(blocked or is_blind(observation)),
        findings=tuple(sorted(findings, key=lambda one: (list(Severity).index(one.severity), one.code))),
        rolls=(),
        nodes=(),
        restarts={},
        irreversible=(),
        gates=(START,),
        controllerless_seconds=0.0,
        estimate=_estimate(changes, wanted),
        not_migrated=(),
        changes_for_people=tuple(lines(changes, cost)),
        basis={} if seen.now is None else basis_of(observation, seen.now, changes),
        unknown=tuple(part.what for part in observation.unanswered),
        plan_hash=hash_of({"are": [(c.partition.name, c.after) for c in changes], "wanted": wanted.model_dump(mode="json")}),
    )


START_BROKERS = "Start brokers that are down, lift cordons, or ask for a smaller factor."


def finding(code: str, about: str, observed: str, expected: str, fix: str, severity: Severity = Severity.BLOCKER) -> Finding:
    return Finding(code=code, severity=severity, object=about, observed=observed, expected=expected, fix=fix)


def _findings(seen: ReplicaSight, now: Layout, wanted: ReplicationFactorWanted, changes: Sequence[Change]) -> Iterator[Finding]:
    known = {one.topic for one in now.partitions}
    for words in wanted.unmatched(known):
        yield finding("RF01", "wanted", words, "topics that exist", "Correct the name or the pattern.")
    for topic in wanted.doubly_matched(known):
        yield finding("RF02", topic, "two changes are about it", "one", "Name it in one change only.")
    about = {name for change in wanted.changes for name in change.matched(known)}
    yield from _of_partitions([one for one in now.partitions if one.topic in about], wanted, known)
    for change in changes:
        if (why := why_not(change, wanted.factors(known).get(change.partition.topic), now.brokers)) is not None:
            yield finding("RF07", change.partition.name, why, "an assignment that is safe", "Correct the assignment.")
    if not changes and about:
        words = "every partition has the factor that is wanted"
        yield finding("RF09", "wanted", words, "something to change", "Ask for something else, or for nothing.")
    yield from _of_throttles(seen.throttles, wanted, changes)


def _of_partitions(found: Sequence[Partition], wanted: ReplicationFactorWanted, known: set[str]) -> Iterator[Finding]:
    factors = wanted.factors(known)
    for one in found:
        shrinks = len(one.replicas) > factors.get(one.topic, len(one.replicas))
        if one.leader is None:
            yield finding("RF04", one.name, "it has no leader", "a leader", "Start the brokers of its replicas.")
        elif one.is_moving:
            words = f"a reassignment runs: it adds {one.adding}, removes {one.removing}"
            fix = "Wait for that reassignment, or cancel it (kafka-reassign-partitions --cancel)."
            yield finding("RF05", one.name, words, "no reassignment runs", fix)
        elif missing := sorted(set(one.replicas) - set(one.in_sync)):
            severity = Severity.BLOCKER if shrinks else Severity.WARNING
            words = f"replicas out of sync: {', '.join(map(str, missing))}"
            yield finding("RF06", one.name, words, "all in sync", "Wait until they are in sync.", severity)


def _of_throttles(throttles: Throttles | None, wanted: ReplicationFactorWanted, changes: Sequence[Change]) -> Iterator[Finding]:
    rate = wanted.bytes_per_second
    if rate is not None:
        _, endless = seconds_of(changes, rate, bytes_of(wanted.limits.bytes_in_flight), {})
        for one in endless:
            words = f"{one.inbound:.0f} bytes a second come in, of {rate} that it may copy"
            yield finding("RF08", f"broker-{one.broker}", words, "a throttle above what comes in", "Ask for a higher throttle.")
    elif throttles is not None and (throttles.default or any(throttles.brokers.values())):
        named = {topic for topic, values in throttles.topics.items() if any(values.get(key) for key in LISTS)}
        if slow := sorted(named & {change.partition.topic for change in changes}):
            words = f"throttles are set already, which slow {', '.join(slow[:MOST_NAMED])}"
            fix = "Remove them (kafka-configs), or say which throttle is wanted."
            yield finding("RF10", "throttles", words, "none, or one that is asked for", fix, Severity.WARNING)


def _estimate(changes: Sequence[Change], wanted: ReplicationFactorWanted) -> Estimate:
    rate = wanted.bytes_per_second or GUESSED_BYTES_PER_SECOND
    seconds, _ = seconds_of(changes, rate, bytes_of(wanted.limits.bytes_in_flight), {})
    part = EstimatedPart(what="Copy replicas", seconds=round(seconds, 1), restarts_measured=0)
    return Estimate(seconds=part.seconds, basis=Basis.GUESS, parts=(part,))


def lines(changes: Sequence[Change], cost: Cost) -> Iterator[str]:
    """What people read first: the sums, then every partition."""
    yield f"{len(changes)} partitions change; {cost.copied:,} bytes are copied; going back would copy {cost.back:,} bytes"
    for broker in sorted(cost.grows):
        sent, received = cost.sent.get(broker, 0), cost.received.get(broker, 0)
        yield f"broker-{broker} sends {sent:,} bytes, receives {received:,}, and has {cost.grows[broker]:+,} in the end"
    for change in changes:
        whys = "; ".join(f"{'adds' if i in change.after else 'removes'} {i}: {why}" for i, why in change.whys)
        before, after = (", ".join(map(str, one)) for one in (change.partition.replicas, change.after))
        yield f"{change.partition.name}: {before} → {after}{f' ({whys})' if whys else ''}"
