"""Pages through all findings of a report: rows of the Parquet artefact that the checks' worker wrote."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from domain.drift.report import DriftFinding, DriftReport, FindingKind
from domain.errors import KeeperlessError, Transient

READING_LIMIT = timedelta(seconds=5)
"""A directory on a network may not answer at all."""


class ArtefactsUnavailable(Transient):
    """The rows of a report cannot be read now."""


class Artefacts(Protocol):
    """Reads what the workers stored: immutable bytes, named by their sha256."""

    async def get(self, name: str) -> bytes: ...


@dataclass(frozen=True)
class Wanted:
    """`start`: the first row to look at. `record`, `finding`: only such rows; `None`: any."""

    limit: int
    start: int = 0
    record: str | None = None
    finding: FindingKind | None = None


@dataclass(frozen=True)
class Page:
    """`next_start`: where the next page starts; `None` where there is nothing more."""

    findings: list[DriftFinding]
    next_start: int | None


class Findings:
    """Reads the artefacts of reports. They never change, so a row's number is a place to go on from."""

    def __init__(self, artefacts: Artefacts) -> None:
        self._artefacts = artefacts

    async def page(self, report: DriftReport, wanted: Wanted) -> Page:
        """Findings in the artefact's order. Raises `ArtefactsUnavailable`."""
        if report.findings is None:
            return _of_all(report.first, wanted)
        try:
            async with asyncio.timeout(READING_LIMIT.total_seconds()):
                content = await self._artefacts.get(report.findings)
                return await asyncio.to_thread(_of_rows, content, wanted)
        except TimeoutError as error:
            raise ArtefactsUnavailable(
                f"artefact {report.findings}: not read within {READING_LIMIT.total_seconds():g} s; try again"
            ) from error
        except KeeperlessError as error:
            raise ArtefactsUnavailable(str(error)) from error


def _of_all(findings: tuple[DriftFinding, ...], wanted: Wanted) -> Page:
    """Of a report that has no artefact, because all its findings are in its summary."""
    matching = [place for place in range(wanted.start, len(findings)) if _is_wanted(findings[place], wanted)]
    return _page([(place, findings[place]) for place in matching[: wanted.limit + 1]], wanted.limit)


def _is_wanted(finding: DriftFinding, wanted: Wanted) -> bool:
    return wanted.record in {None, finding.record} and wanted.finding in {None, finding.finding}


def _of_rows(content: bytes, wanted: Wanted) -> Page:
    """One row more than wanted is looked for: it is where the next page starts."""
    file = parquet.ParquetFile(pa.BufferReader(content))
    found: list[tuple[int, DriftFinding]] = []
    begin = 0
    for group in range(file.num_row_groups):
        end = begin + file.metadata.row_group(group).num_rows
        if end > wanted.start and len(found) <= wanted.limit:
            found += _in_group(file, group, begin, wanted)
        begin = end
    return _page(found[: wanted.limit + 1], wanted.limit)


def _in_group(file: parquet.ParquetFile, group: int, begin: int, wanted: Wanted) -> list[tuple[int, DriftFinding]]:
    """Two columns tell which rows are wanted; only where there are some, the others are read."""
    names = file.read_row_group(group, columns=["record", "finding"])
    mask = pa.array([True] * names.num_rows) if wanted.record is None else pc.equal(names["record"], wanted.record)
    if wanted.finding is not None:
        mask = pc.and_(mask, pc.equal(names["finding"], wanted.finding.value))
    places = [place for place in pc.indices_nonzero(mask).to_pylist() if begin + place >= wanted.start][: wanted.limit + 1]
    rows = file.read_row_group(group).take(places).to_pylist() if places else []
    return [(begin + place, _finding(row)) for place, row in zip(places, rows, strict=True)]


def _finding(row: dict[str, object]) -> DriftFinding:
    return DriftFinding.model_validate({name: value for name, value in row.items() if value is not None})


def _page(found: list[tuple[int, DriftFinding]], limit: int) -> Page:
    next_start = found[limit][0] if len(found) > limit else None
    return Page([finding for _, finding in found[:limit]], next_start)
