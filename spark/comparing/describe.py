"""Rows and marks become findings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from domain.drift.explaining import DUPLICATE_RULE
from domain.drift.normalise import uuid_text
from domain.drift.records import Field, RowKind, Rule, Severity
from domain.drift.report import FindingKind
from spark.comparing.fields import FieldMarks, Mask
from spark.comparing.match import Indices
from spark.comparing.rest import Rest
from spark.comparing.texts import key_texts, places, row_texts, secrets_in, value_texts
from spark.findings import FINDINGS_SCHEMA, MISSING_RULE

NameTopics = Callable[[frozenset[str]], Mapping[str, str]]
"""Names of these topics, by their ids as text: asked for when there is something to name, and not before."""


@dataclass(frozen=True)
class Describer:
    """`is_left_older`: what the right side alone has may have been made since."""

    kind: RowKind
    name_topics: NameTopics
    is_left_older: bool = False

    def missing_right(self, rows: pa.Table) -> pa.Table:
        return self._missing(rows, FindingKind.MISSING_RIGHT, "left", self.kind.missing)

    def missing_left(self, rows: pa.Table) -> pa.Table:
        severity = Severity.INFO if self.is_left_older else self.kind.missing
        return self._missing(rows, FindingKind.MISSING_LEFT, "right", severity)

    def _missing(self, rows: pa.Table, finding: FindingKind, side: str, severity: Severity) -> pa.Table:
        if not rows.num_rows:
            return FINDINGS_SCHEMA.empty_table()
        names = self._names(rows)
        told = {
            side: row_texts(self.kind, rows),
            f"{side}_at": places(self.kind, rows, names),
            "is_redacted": pa.array(_has_digest(self.kind, rows)),
        }
        return self._table(rows, names, finding, severity, MISSING_RULE, told)

    def differences(self, left: pa.Table, right: pa.Table, marks: list[FieldMarks]) -> pa.Table:
        parts = [FINDINGS_SCHEMA.empty_table()]
        for mark in marks:
            parts.append(self._field(left, right, mark, mark.differs, FindingKind.DIFFERS, mark.field.severity))
            parts.append(self._field(left, right, mark, mark.is_unknown, FindingKind.UNVERIFIABLE, Severity.INFO))
        return pa.concat_tables(parts)

    def _field(
        self, left: pa.Table, right: pa.Table, mark: FieldMarks, found: Mask, finding: FindingKind, severity: Severity
    ) -> pa.Table:
        rows = pa.array(np.flatnonzero(found))
        if not len(rows):
            return FINDINGS_SCHEMA.empty_table()
        left, right, names = left.take(rows), right.take(rows), self._names(left.take(rows))
        is_secret = secrets_in(self.kind, left, right)
        told: dict[str, pa.Array | str] = {
            "field": mark.field.name,
            "left": value_texts(mark.expected_from, left, is_secret),
            "right": value_texts(mark.field, right, is_secret),
            "left_at": places(self.kind, left, names),
            "right_at": places(self.kind, right, names),
            "is_redacted": pa.array(_is_redacted(mark.field, is_secret)),
        }
        return self._table(left, names, finding, severity, mark.field.rule, told)

    def duplicates(self, rest: Rest) -> pa.Table:
        """How often each side has the key, and where the first of each is."""
        doubles = np.flatnonzero(rest.is_double)
        if not len(doubles):
            return FINDINGS_SCHEMA.empty_table()
        rows = pa.concat_tables([rest.left, rest.right])
        rows = rows.take(pa.array(_first_of(np.concatenate([rest.left_groups, rest.right_groups]), doubles)))
        names = self._names(rows)
        told: dict[str, pa.Array | str] = {
            "left": _times(rest.left_counts[doubles]),
            "right": _times(rest.right_counts[doubles]),
            "left_at": self._first_places(rest.left, rest.left_groups, doubles, names),
            "right_at": self._first_places(rest.right, rest.right_groups, doubles, names),
        }
        return self._table(rows, names, FindingKind.DIFFERS, Severity.BLOCK, DUPLICATE_RULE, told)

    def _first_places(self, rows: pa.Table, groups: Indices, doubles: Indices, names: Mapping[str, str]) -> pa.Array:
        is_here = np.isin(doubles, groups)
        texts = places(self.kind, rows.take(pa.array(_first_of(groups, doubles[is_here]))), names)
        return pc.replace_with_mask(pa.array([""] * len(doubles)), pa.array(is_here), texts)

    def _names(self, rows: pa.Table) -> Mapping[str, str]:
        if self.kind.name != "partition" or not rows.num_rows:
            return {}
        return self.name_topics(frozenset(map(uuid_text, pc.unique(rows.column("topic_id")).to_pylist())))

    def _table(
        self,
        rows: pa.Table,
        names: Mapping[str, str],
        finding: FindingKind,
        severity: Severity,
        rule: str,
        told: Mapping[str, pa.Array | str],
    ) -> pa.Table:
        """`told`: columns, or one text for all rows. What is not told is empty, null or false."""
        given: dict[str, pa.Array | str] = {
            "record": self.kind.name,
            "finding": str(finding),
            "severity": str(severity),
            "rule": str(rule),
            "key": key_texts(self.kind, rows, names),
            **told,
        }
        return pa.table([_column(given.get(field.name), field, rows.num_rows) for field in FINDINGS_SCHEMA], FINDINGS_SCHEMA)


def _column(told: pa.Array | str | None, field: pa.Field, length: int) -> pa.Array:
    if told is None:
        told = None if field.nullable else ("" if field.type == pa.string() else False)
    if told is None or isinstance(told, str | bool):
        return pa.repeat(pa.scalar(told, field.type), length)
    return told


def _is_redacted(field: Field, is_secret: Mask) -> Mask:
    return np.ones(len(is_secret), dtype=np.bool_) if field.rule is Rule.DIGEST else is_secret


def _has_digest(kind: RowKind, rows: pa.Table) -> Mask:
    """Whether a digest of a secret stands in for it in any field."""
    has = np.zeros(rows.num_rows, dtype=np.bool_)
    for field in kind.values:
        if field.rule is Rule.DIGEST:
            has |= np.asarray(pc.fill_null(pc.not_equal(rows.column(field.name), ""), False))
    return has


def _first_of(groups: Indices, wanted: Indices) -> Indices:
    """The first row of each of these groups, which all have one."""
    present, first = np.unique(groups, return_index=True)
    return first[np.searchsorted(present, wanted)]


def _times(counts: Indices) -> pa.Array:
    return pa.array([f"{count} {'row' if count == 1 else 'rows'}" for count in counts], pa.string())
