"""A report as a page: plain text for a terminal, HTML for a browser. Both say the same, in the same order.

Names and values in a report come from whoever may write to the cluster. So they cannot move a terminal's cursor, hide what
follows, or be markup; and what is redacted is never shown, whatever a finding has in its fields.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from textwrap import fill

from domain.drift.explaining import KEEPS, SIDES, Explanation, explanation_of, verdict_in_words
from domain.drift.report import DriftFinding, DriftReport, FindingKind, RecordCounts
from domain.html_page import html_page

EXPLAINED = 20
"""Findings that a page explains; the rest are rows to page through."""
LONGEST_VALUE = 300
WIDTH = 120
REDACTED = "(redacted)"
ABSENT = "(none)"
EMPTY = "(empty)"
MISSING = "(missing)"
PRESENT = "(there)"

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters that show nothing and may do something: controls, directions, halves of pairs, line ends."""


def redacted(finding: DriftFinding) -> DriftFinding:
    """The finding without the values that nobody may see. That there is none, stays visible."""
    if not finding.is_redacted:
        return finding
    hidden = {side: getattr(finding, side) and REDACTED for side in ("left", "right")}
    return finding.model_copy(update=hidden)


def as_text(report: DriftReport) -> str:
    """Lines of plain text, none of which a value can break."""
    parts = [
        [f"Report {_shown(report.id)} of cluster {_shown(report.cluster)}: {report.verdict.upper()}", verdict_in_words(report)],
        [f"  {name:<10} {value}" for name, value in _facts(report)],
        [*_table_in_text(report)],
        *([title, *(f"  - {line}" for line in lines)] for title, lines in _lists(report)),
        *_findings_in_text(report),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def as_html(report: DriftReport) -> str:
    """A whole document that loads nothing and runs nothing."""
    title = f"Report {_safe(report.id)} of cluster {_safe(report.cluster)}"
    parts = [
        f'<h1>{title}</h1>\n<p class="verdict {report.verdict}"><strong>{report.verdict}</strong> '
        f"{escape(verdict_in_words(report))}</p>",
        f"<dl>\n{_lines(f'<dt>{name}</dt><dd>{escape(value)}</dd>' for name, value in _facts(report))}\n</dl>",
        _table_in_html(report),
        *(
            f"<h2>{title}</h2>\n<ul>\n{_lines(f'<li>{escape(i)}</li>' for i in items)}\n</ul>"
            for title, items in _lists(report)
        ),
        *_findings_in_html(report),
    ]
    return html_page(title, _lines(part for part in parts if part))


# ---- What both have ----


def _facts(report: DriftReport) -> Iterator[tuple[str, str]]:
    yield "compares", f"{report.check}: {SIDES[report.check].compares}"
    if report.migration_id is not None:
        yield "migration", _shown(report.migration_id)
    seconds = (report.ended_at - report.started_at).total_seconds()
    yield (
        "taken",
        f"{report.started_at:%Y-%m-%d %H:%M:%S %Z}, in {seconds:.1f} s, by {_shown(report.engine) or 'an unnamed engine'}",
    )
    cut = report.cut
    if cut.high_watermark >= 0:
        looks = "1 look" if cut.looks == 1 else f"{cut.looks} looks"
        yield "between", f"offset {cut.migration_offset} in /migration and high watermark {cut.high_watermark}, in {looks}"
    if cut.claim:
        yield "claim", _shown(cut.claim)
    yield "hash", _shown(report.content_hash)
    yield "rules", _shown(report.rules_fingerprint)
    if report.findings is not None:
        yield "findings", f"artefact {_shown(report.findings)}"


def _columns(report: DriftReport) -> dict[str, str]:
    """What is counted of each kind, by its field, as the table calls it. What is missing on one side is only on the other."""
    sides = SIDES[report.check]
    if report.check in KEEPS:
        return {"left": sides.left}
    named = {
        "left": sides.left,
        "right": sides.right,
        "missing_left": f"only {sides.right}",
        "missing_right": f"only {sides.left}",
    }
    return {name: named.get(name, name) for name in RecordCounts.model_fields}


def _lists(report: DriftReport) -> Iterator[tuple[str, list[str]]]:
    if report.not_read:
        yield "Not read, so this report says nothing of it", [_shown(part) for part in report.not_read]
    if report.tolerated:
        yield "Tolerated by the policy", [_shown(part) for part in report.tolerated]


def _title(report: DriftReport) -> str:
    """Above the findings. The counts are of findings too, except those of rows."""
    total = sum(c.missing_left + c.missing_right + c.differs + c.tolerated + c.unverifiable for c in report.counts.values())
    shown = min(EXPLAINED, len(report.first))
    return f"What was found: all {shown}" if shown >= total else f"What was found: the first {shown} of {total}"


def _headline(finding: DriftFinding) -> str:
    what = f"{_shown(finding.record)} {_shown(finding.key)}" + (f", {_shown(finding.field)}" if finding.field else "")
    rule = f", rule {_shown(finding.rule)}" if finding.rule else ""
    return f"{what}: {finding.finding} ({finding.severity}{rule})"


def _values(finding: DriftFinding, report: DriftReport) -> list[tuple[str, str, str]]:
    """Side, value, place."""
    sides, hidden = SIDES[report.check], redacted(finding)
    rows = ((sides.left, hidden.left, finding.left_at), (sides.right, hidden.right, finding.right_at))
    absent = {FindingKind.MISSING_LEFT: sides.left, FindingKind.MISSING_RIGHT: sides.right}.get(finding.finding)
    return [(side, MISSING if side == absent else _value(value, absent), _shown(place)) for side, value, place in rows]


def _value(value: str | None, absent: str | None) -> str:
    """`absent`: where the whole row is missing on the other side, a row without a value is there all the same."""
    if value is None:
        return ABSENT if absent is None else PRESENT
    return _shown(value) or EMPTY


def _shown(text: str) -> str:
    """What others wrote: one line, with nothing hidden in it, and an end."""
    start = _visible(text[:LONGEST_VALUE])
    return start if len(text) <= LONGEST_VALUE else f"{start}… ({len(text)} characters)"


def _visible(text: str) -> str:
    return "".join(_escaped(c) if unicodedata.category(c) in HIDDEN else c for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


# ---- Text ----


def _table_in_text(report: DriftReport) -> Iterator[str]:
    if not report.counts:
        return
    columns = _columns(report)
    rows = [["kind", *columns.values()]]
    for name, counts in sorted(report.counts.items()):
        rows.append([_shown(name), *(str(getattr(counts, counted)) for counted in columns)])
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    for kind, *numbers in rows:
        yield "  " + "  ".join([kind.ljust(first), *(n.rjust(width) for n, width in zip(numbers, others, strict=True))])


def _findings_in_text(report: DriftReport) -> Iterator[list[str]]:
    if report.first:
        yield [_title(report)]
    for number, finding in enumerate(report.first[:EXPLAINED], 1):
        explained = explanation_of(finding, report.check)
        values = [f"   {side + ':':<13} {value}{_at(place)}" for side, value, place in _values(finding, report)]
        yield [f"{number}. {_headline(finding)}", *values, *_explained_in_text(explained)]


def _at(place: str) -> str:
    return f"   [{place}]" if place else ""


def _explained_in_text(explained: Explanation) -> Iterator[str]:
    for title, words in (("Means", explained.means), ("To do", explained.advice)):
        yield fill(_visible(words), WIDTH, initial_indent=f"   {title}: ", subsequent_indent=" " * 10)


# ---- HTML ----


def _table_in_html(report: DriftReport) -> str:
    if not report.counts:
        return ""
    columns = _columns(report)
    heads = "".join(f'<th class="n" scope="col">{head}</th>' for head in columns.values())
    rows = (
        f'<tr><th scope="row">{_safe(name)}</th>{_cells(counts, columns)}</tr>'
        for name, counts in sorted(report.counts.items())
    )
    table = f'<table>\n<tr><th scope="col">kind</th>{heads}</tr>\n{_lines(rows)}\n</table>'
    return f'<h2>Rows</h2>\n<div class="wide">\n{table}\n</div>'


def _cells(counts: RecordCounts, columns: Iterable[str]) -> str:
    """Findings stand out; numbers of rows do not."""
    numbers = [(name, getattr(counts, name)) for name in columns]
    is_found = {name: bool(number) and name not in {"left", "right", "equal"} for name, number in numbers}
    return "".join(f'<td class="n{" some" if is_found[name] else ""}">{number}</td>' for name, number in numbers)


def _findings_in_html(report: DriftReport) -> Iterator[str]:
    if report.first:
        yield f"<h2>{_title(report)}</h2>"
    for finding in report.first[:EXPLAINED]:
        yield _article(finding, report)


def _article(finding: DriftFinding, report: DriftReport) -> str:
    explained = explanation_of(finding, report.check)
    rows: Sequence[str] = [
        f'<tr><th scope="row">{side}</th><td><code>{escape(value)}</code></td><td>{escape(place)}</td></tr>'
        for side, value, place in _values(finding, report)
    ]
    return (
        f"<article>\n<h3>{escape(_headline(finding))}</h3>\n<table>\n{_lines(rows)}\n</table>\n"
        f"<p>{escape(_visible(explained.means))}</p>\n"
        f"<p><strong>To do:</strong> {escape(_visible(explained.advice))}</p>\n</article>"
    )


def _safe(text: str) -> str:
    return escape(_shown(text))


def _lines(parts: Iterable[str]) -> str:
    return "\n".join(parts)
