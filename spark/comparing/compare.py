"""Compare the rows of one kind on both sides, or of one range of its buckets.

1. What both hashes prove equal is settled, without reading a value.
2. The rest is read, and grouped by its true keys, versions of the journal among it.
3. A key that one side has twice is a finding of its own, and nothing else is said of it.
4. Each left row is compared with the right row of its key, and with every version of the journal: the consistent cut lies
   somewhere in the journal's time, so one that agrees is enough. A right row without a left one is excused by a deletion.
5. What still differs is a finding for each field; a row that one side lacks is one finding.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from domain.drift.records import RowKind
from spark.comparing.describe import Describer, NameTopics
from spark.comparing.fields import Circumstances, FieldMarks, Mask, compare_fields, is_settled_by_hash
from spark.comparing.match import Hashes, Indices, Unsettled, settle
from spark.comparing.rest import Candidates, Rest, Sides, sum_of
from spark.findings import FINDINGS_SCHEMA


@dataclass(frozen=True)
class Compared:
    """Rows on each side, keys without any finding, and the findings."""

    left: int
    right: int
    equal: int
    findings: pa.Table = field(repr=False)


def compare(kind: RowKind, sides: Sides, when: Circumstances, name_topics: NameTopics) -> Compared:
    left, right = (Hashes.of(side.columns(("key_hash", "row_hash"))) for side in (sides.left, sides.right))
    unsettled = settle(left, right) if is_settled_by_hash(kind) else _everything(left, right)
    if not len(unsettled.left) and not len(unsettled.right):
        return Compared(len(left), len(right), unsettled.equal, FINDINGS_SCHEMA.empty_table())
    rest = Rest.read(kind, sides, unsettled)
    findings, keys_found = _find(kind, rest, when, Describer(kind, name_topics, when.is_left_older))
    keys = int(((rest.left_counts + rest.right_counts) > 0).sum())
    return Compared(len(left), len(right), unsettled.equal + keys - keys_found, findings)


def _everything(left: Hashes, right: Hashes) -> Unsettled:
    return Unsettled(np.arange(len(left)), np.arange(len(right)), 0)


def _find(kind: RowKind, rest: Rest, when: Circumstances, describe: Describer) -> tuple[pa.Table, int]:
    """The findings, and how many keys have one."""
    candidates = Candidates.of(rest)
    pairs = candidates.rows(rest)
    marks = compare_fields(kind, *pairs, when)
    answers = candidates.answers(marks)
    is_answered = np.zeros(rest.count, dtype=np.bool_)
    is_answered[candidates.groups[answers]] = True
    lacks_right = (rest.left_counts == 1) & (rest.right_counts == 0) & ~is_answered
    lacks_left = (rest.right_counts == 1) & (rest.left_counts == 0) & ~rest.was_deleted
    marks = [mark.of_rows(answers) for mark in marks]
    left, right = (side.take(pa.array(answers)) for side in pairs)
    parts = [
        describe.duplicates(rest),
        describe.missing_right(_rows_in(rest.left, rest.left_groups, lacks_right)),
        describe.missing_left(_rows_in(rest.right, rest.right_groups, lacks_left)),
        describe.differences(left, right, marks),
    ]
    return pa.concat_tables(parts), int((rest.is_double | lacks_right | lacks_left).sum()) + _marked(marks, answers)


def _rows_in(rows: pa.Table, groups: Indices, is_wanted: Mask) -> pa.Table:
    return rows.take(pa.array(np.flatnonzero(is_wanted[groups])))


def _marked(marks: list[FieldMarks], answers: Indices) -> int:
    masks = [mask for mark in marks for mask in (mark.differs, mark.is_unknown)]
    return int((sum_of(masks, len(answers)) > 0).sum())
