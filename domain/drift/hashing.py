"""What a report and its rules are known by: an approval names a report's content hash, and a report the rules it was made with.

Both are sha256 as hex, over canonical JSON, so they are the same on every machine and in every run.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping

from domain.drift.records import KINDS, Field, RowKind
from domain.drift.report import CheckName, DriftFinding, FindingKind, RecordCounts, Verdict

RULES_VERSION = 1
"""Rises whenever rows are normalised or compared another way although their declaration stays as it is."""

ROW_NUMBERS = frozenset({"left", "right", "equal"})
"""Counts that change with every topic that somebody makes, and say nothing about a difference."""

PLACES = frozenset({"left_at", "right_at", "tolerated_by"})
"""Not material of a finding: the same difference may be read at another offset in the next look."""


def rules_fingerprint() -> str:
    """Of all kinds with keys, types, rules and severities. Another explanation of the same rule changes nothing."""
    return _sha256({"version": RULES_VERSION, "kinds": {name: _kind(kind) for name, kind in KINDS.items()}})


def content_hash(
    check: CheckName,
    verdict: Verdict,
    counts: Mapping[str, RecordCounts],
    findings: Iterable[DriftFinding],
    not_read: Iterable[str],
    rules: str,
) -> str:
    """Of what is material in a report, see `DriftReport`.

    `counts`: one for each kind that was compared, also where there were no rows: less compared is another report. `findings`:
    all of them, not the first only, in any order; the tolerated ones are passed over. `rules`: their fingerprint.
    """
    told = {
        "check": check,
        "verdict": verdict,
        "counts": {record: count.model_dump(exclude=set(ROW_NUMBERS)) for record, count in counts.items()},
        "findings": sorted(_finding(finding) for finding in findings if finding.finding is not FindingKind.TOLERATED),
        "not_read": sorted(set(not_read)),
        "rules": rules,
    }
    return _sha256(told)


def _finding(finding: DriftFinding) -> str:
    # A hash for each, so that a million of them can be sorted without keeping their texts. What cannot be told says how much
    # of it there was: that depends on the moment, and decides nothing.
    passing = {"left", "right"} if finding.finding is FindingKind.UNVERIFIABLE else set()
    return _sha256(finding.model_dump(mode="json", exclude={*PLACES, *passing}))


def _kind(kind: RowKind) -> object:
    return {"keys": [_field(f) for f in kind.keys], "values": [_field(f) for f in kind.values], "missing": kind.missing}


def _field(field: Field) -> list[object]:
    return [field.name, field.type, field.rule, field.severity, field.is_nullable]


def _sha256(told: object) -> str:
    # Escaped to ASCII: names may hold halves of surrogate pairs, which UTF-8 cannot encode.
    return hashlib.sha256(json.dumps(told, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
