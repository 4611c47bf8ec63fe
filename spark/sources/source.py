"""What a source is. A new one is written from this file alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True)
class Split:
    """A part of a source that one task reads. `begin`, `end`: bytes of `path`; empty path: a part of another sort.

    `left_out`: topics that are no rows, as other parts of the source say.
    """

    name: str
    path: str = ""
    begin: int = 0
    end: int = 0
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rows:
    """Rows of one kind. In a journal, `is_journal`, they have the columns of `journal_schema_of`."""

    kind: str
    batch: pa.RecordBatch
    is_journal: bool = False


class Source(Protocol):
    """One side of a comparison. Picklable: splits are read in other processes, in any order, perhaps twice.

    Rows of all splits together are the side: no key twice. Errors: `Permanent` for damaged or unknown input, with file and
    byte position; `Transient` where reading again may help.
    """

    def splits(self, wanted: int) -> Sequence[Split]:
        """About `wanted` parts of similar size, cheaply, without reading all bytes."""

    def read(self, split: Split, kinds: frozenset[str]) -> Iterator[Rows]:
        """The rows of one part, of these kinds only, in batches of some 100,000."""

    def not_read(self) -> tuple[str, ...]:
        """What could not be read well enough to compare, in words; it makes a verdict inconclusive. Known before reading."""
