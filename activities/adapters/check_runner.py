"""Comparisons on Spark, or in this process where Spark is away: `CheckRunner`, made of the engines of `spark`.

The same kernels in both, so the same report; it says who has compared. Everything that the engines do blocks, and happens in
threads. A thread cannot be ended from outside: it is told to, at its next sign of progress, and waited for.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import structlog

from activities.ports.checks import Claimed, Comparison, KeptRows, TellProgress
from activities.ports.zookeeper import Captured, CapturedZnode
from domain.drift.digests import DIGEST_BYTES, Digester
from domain.drift.records import COMPARED_KINDS, COPIED_KINDS, Severity
from domain.drift.report import CheckName, CheckResult
from domain.errors import Permanent, Superseded, Transient
from domain.quorum_log.metadata_log import EndOfCopy
from spark.conclude import Measured, conclude
from spark.engine.local import LocalEngine
from spark.engine.progress import OnProgress, Progress
from spark.findings import DRIFTS, in_order
from spark.job import CheckJob, KraftFiles, StagedRows
from spark.sources.as_of_claim import DIGEST_KEY, AtClaim, as_of_claim
from spark.sources.build import resolve_secret
from spark.sources.kraft_copy import end_of_copy
from spark.sources.zookeeper_rows import Notes, rows_of
from spark.staging import Manifest, packed, unpack, write_rows

T = TypeVar("T")

SAME = ("record", "finding", "key", "field", "left", "right")
"""What a difference is known by in another look."""

ABSENT = "\x00"
"""Stands for null where two looks are matched: no value has it, for Arrow's joins match no nulls."""

ENDED = "the check was ended"


class Spark(Protocol):
    """Spark as this adapter needs it."""

    def session_of(self, migration_id: str) -> str:
        """The migration's session, or the name of a new one, which is made ready meanwhile."""

    def leave(self, migration_id: str) -> None:
        """Its session may end."""

    def is_ready(self, session: str) -> bool: ...

    async def run(self, job: CheckJob, session: str, on_progress: OnProgress) -> CheckResult:
        """`on_progress` is called in any thread. Cancelled, it ends what it has begun there."""

    async def interrupt(self, session: str) -> None: ...


class EngineRunner:
    """`digest_key`, `encoder_secret`: references, resolved on every machine that reads. Without `spark` all is done here."""

    def __init__(self, digest_key: str, encoder_secret: str | None = None, spark: Spark | None = None) -> None:
        self._digest_key, self._encoder_secret, self._spark = digest_key, encoder_secret, spark
        self._log = structlog.get_logger()

    def session_of(self, migration_id: str) -> str:
        return str(uuid4()) if self._spark is None else self._spark.session_of(migration_id)

    def leave(self, migration_id: str) -> None:
        if self._spark is not None:
            self._spark.leave(migration_id)

    async def interrupt(self, session: str) -> None:
        """Where Spark is away nothing runs there that could be ended, and this attempt does not use it."""
        if self._spark is None:
            return
        try:
            await self._spark.interrupt(session)
        except (Transient, Permanent) as error:
            self._log.warning("the session of an attempt that died could not be ended", session=session, why=str(error))

    async def stage(self, captured: Captured, directory: Path) -> None:
        await self._stage(captured, directory, COMPARED_KINDS, is_before_dual_write=False)

    async def keep(self, captured: Captured, directory: Path) -> KeptRows:
        manifest = await self._stage(captured, directory, COPIED_KINDS, is_before_dual_write=True)
        counts = {kind: manifest.rows_of(kind) for kind in COPIED_KINDS}
        return KeptRows(await asyncio.to_thread(packed, directory), counts, manifest.not_read)

    async def end_of_copy(self, log: Path) -> EndOfCopy | None:
        return await asyncio.to_thread(end_of_copy, log)

    async def as_of_claim(self, kept: bytes, captured: Captured, claimed: Claimed, directory: Path) -> None:
        before, now = (directory.with_name(f"{directory.name}-{when}") for when in ("before", "now"))
        await asyncio.to_thread(unpack, kept, before)
        unchanged = set[str]()
        noted = _noting(captured, claimed.zxid, unchanged)
        await self._stage(noted, now, COPIED_KINDS, is_before_dual_write=False)
        milliseconds = round(claimed.at.timestamp() * 1000) if claimed.at is not None else None
        claim = AtClaim(claimed.zxid, frozenset(unchanged), milliseconds)
        await asyncio.to_thread(as_of_claim, before, now, claim, directory)

    async def _stage(
        self, captured: Captured, directory: Path, kinds: Sequence[str], *, is_before_dual_write: bool
    ) -> Manifest:
        """Rows are made in a thread, which asks for the next chunk when it has written the last one."""
        loop, ended = asyncio.get_running_loop(), threading.Event()

        def znodes() -> Iterator[CapturedZnode]:
            while (chunk := asyncio.run_coroutine_threadsafe(_next(captured), loop).result()) is not None:
                if ended.is_set():
                    raise Superseded(ENDED)
                yield from chunk

        write = partial(self._write, znodes(), directory, frozenset(kinds), is_before_dual_write=is_before_dual_write)
        return await _in_thread(write, ended)

    def _write(
        self, znodes: Iterator[CapturedZnode], directory: Path, kinds: frozenset[str], *, is_before_dual_write: bool
    ) -> Manifest:
        key = resolve_secret(self._digest_key)
        if len(key) < DIGEST_BYTES:
            raise Permanent(f"the digest key of {self._digest_key} is too short: it needs {DIGEST_BYTES} bytes or more")
        secret = resolve_secret(self._encoder_secret).decode() if self._encoder_secret else None
        digester, notes = Digester(key), Notes()
        rows = rows_of(znodes, kinds, digester, secret, notes, is_before_dual_write)
        # The notes are complete when the rows are: the list is read after them.
        return write_rows(directory, rows, notes.not_read, {DIGEST_KEY: digester.digest(DIGEST_KEY, b"")})

    async def compare(self, asked: Comparison, session: str, on_progress: TellProgress) -> CheckResult:
        job, ended = self._job(asked), threading.Event()

        def tell(progress: Progress) -> None:
            if ended.is_set():
                raise Superseded(ENDED)
            on_progress(progress.words, progress.done, progress.total)

        on_spark = await self._run_on_spark(job, session, tell)
        if on_spark is not None:
            return on_spark
        here = job.model_copy(update={"out": job.out.with_name(f"{job.out.name}-local")})
        return await _in_thread(lambda: LocalEngine().run(here, on_progress=tell), ended)

    async def _run_on_spark(self, job: CheckJob, session: str, tell: OnProgress) -> CheckResult | None:
        """`None`: Spark is away, or will not do it, which never closes the way. Where the input is what it cannot read, the
        local engine says so as well. The next restart waits for the comparison of the copy, so it does not wait for a Spark
        that is still starting: before the end it compares all of both sides.
        """
        if self._spark is None or (job.check is CheckName.COPY and not self._spark.is_ready(session)):
            return None
        try:
            return await self._spark.run(job, session, tell)
        except (Transient, Permanent) as error:
            self._log.warning("Spark did not make the comparison: comparing in this process", check=job.id, why=str(error))
            return None

    async def confirm(self, asked: Comparison, earlier: CheckResult, later: CheckResult) -> tuple[CheckResult, int]:
        return await asyncio.to_thread(self._confirm, self._job(asked), earlier, later)

    def _confirm(self, job: CheckJob, earlier: CheckResult, later: CheckResult) -> tuple[CheckResult, int]:
        if earlier.content_hash == later.content_hash:
            return later, 0
        found = pq.read_table(later.findings)
        moved = pc.and_(_is_drift(found), pc.invert(_is_in(found, pq.read_table(earlier.findings))))
        kept = found.filter(pc.invert(moved))
        job.out.mkdir(mode=0o700)
        rows = {kind: (counts.left, counts.right, counts.equal) for kind, counts in later.counts.items()}
        measured = Measured(later.engine, rows, later.not_read, later.seconds)
        return conclude(job, [in_order(kept)], measured), found.num_rows - kept.num_rows

    def _job(self, asked: Comparison) -> CheckJob:
        return CheckJob(
            id=asked.id,
            left=StagedRows(directory=asked.staged),
            check=asked.check,
            right=KraftFiles(directory=asked.log, end=asked.end, cut=asked.cut),
            kinds=COPIED_KINDS if asked.is_copy else COMPARED_KINDS,
            is_before_dual_write=asked.is_copy,
            is_left_older=asked.is_copy,
            out=asked.out,
            digest_key=self._digest_key,
            encoder_secret=self._encoder_secret,
            tolerated=asked.tolerated,
        )


async def _noting(captured: Captured, zxid: int, unchanged: set[str]) -> Captured:
    """The same, with the paths noted of what was written last before that transaction; states are too many, and not needed."""
    async for chunk in captured:
        unchanged.update(z.path for z in chunk if z.mzxid <= zxid and not z.path.endswith("/state"))
        yield chunk


async def _next(captured: Captured) -> tuple[CapturedZnode, ...] | None:
    return await anext(captured, None)


async def _in_thread(work: Callable[[], T], ended: threading.Event) -> T:
    """Run it to its end. Cancelled, tell it to end, and wait until it has: it writes into a directory that is removed next."""
    running = asyncio.create_task(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        ended.set()
        await asyncio.wait([running])
        running.exception()
        raise


def _is_drift(findings: pa.Table) -> pa.ChunkedArray:
    is_kind = pc.is_in(findings.column("finding"), pa.array([str(kind) for kind in DRIFTS]))
    return pc.and_(is_kind, pc.not_equal(findings.column("severity"), str(Severity.INFO)))


def _is_in(findings: pa.Table, others: pa.Table) -> pa.ChunkedArray:
    """For each finding whether the others have one that is the same, wherever it was read."""
    numbered = _matched(findings).append_column("number", pa.array(range(findings.num_rows), pa.int64()))
    both = numbered.join(_matched(others), list(SAME), join_type="left semi")
    return pc.is_in(pa.chunked_array([numbered.column("number").combine_chunks()]), both.column("number").combine_chunks())


def _matched(findings: pa.Table) -> pa.Table:
    return pa.table({name: pc.fill_null(findings.column(name), ABSENT) for name in SAME})
