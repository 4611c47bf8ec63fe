"""Clients' data before and after a migration: two looks, and what became of the first one's messages in the second.

    keep_baseline            before the first broker is rolled
    compare_with_baseline    before finalisation: the same offsets again

Order in a look: committed offsets first, then the partitions' ends, then the disks. So what a group has committed lies below
the end that is read after it, and each replica is read up to a high watermark that was one already: what is beyond may be cut.
"""

import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from pydantic import ValidationError

from activities.comparison.reporting import kept_of, nothing, report_of
from activities.comparison.segment_walks import CannotWalk, WalkLimits, walk, wanted_of
from activities.ports.checks import CheckAttempt, MessageRunner, TellProgress, WalkedNode
from activities.ports.ports import Ports
from activities.ports.stores import ArtefactStore
from domain.cluster import BrokerSpec
from domain.contracts import CheckRequest
from domain.drift.message_manifest import MessageComparison, MessageManifest
from domain.drift.messages import (
    BATCH,
    GROUP_OFFSET,
    PARTITION_LOG,
    REPLICA_LOG,
    ReplicaLog,
    Sight,
    rules_fingerprint,
)
from domain.drift.report import DriftReport
from domain.drift.verdicts import is_usable
from domain.errors import Permanent, Transient
from domain.offsets import PartitionOffsets
from domain.records import ClusterRecord

DEFAULT_LIMITS = WalkLimits()
MOST_TOLD = 5
"""Brokers that are named as still looked at."""


def unheard(_stage: str, _done: int, _total: int) -> None:
    """For who tells nobody how far a look is."""


@dataclass
class _Disks:
    """What brokers' disks have told so far, or why they have not. `out`: the brokers that are still looked at."""

    on_progress: TellProgress
    out: set[int]
    walked: list[WalkedNode] = field(default_factory=list)
    offsets_only: dict[int, str] = field(default_factory=dict)
    not_read: list[str] = field(default_factory=list)
    done: int = 0

    def tell(self) -> None:
        named = ", ".join(f"broker-{broker}" for broker in sorted(self.out)[:MOST_TOLD])
        more = f" and {len(self.out) - MOST_TOLD} more" if len(self.out) > MOST_TOLD else ""
        self.on_progress(f"segments of {named}{more}", self.done, self.done + len(self.out))

    def note_over(self, broker: int) -> None:
        self.out.discard(broker)
        self.done += 1
        if self.out:
            self.tell()


async def capture_messages(
    ports: Ports,
    runner: MessageRunner,
    cluster: ClusterRecord,
    *,
    since: str | None = None,
    limits: WalkLimits = DEFAULT_LIMITS,
    walk_id: str | None = None,
    on_progress: TellProgress = unheard,
) -> str:
    """Look at all brokers' logs, and keep what was seen: the name of the artefact, a `MessageManifest`.

    `since`: an earlier one, whose offsets are looked at again, and nothing else. `walk_id`: the same for every attempt, so that
    one removes what another has left on a node. `Transient` while Kafka does not answer or a partition has no leader. A machine
    that does not answer is named in `not_read`; one that cannot look at its segments in `sight.offsets_only`.
    """
    earlier = await manifest_of(ports.artefacts, since) if since is not None else None
    taken_at = datetime.now(UTC)
    on_progress("committed offsets of groups", 0, 1)
    groups = await ports.kafka.group_offsets(cluster)
    on_progress("ends of partitions", 0, 1)
    partitions = await ports.kafka.offsets(cluster)
    disks = _Disks(on_progress, {broker.id for broker in cluster.spec.brokers})
    disks.tell()
    brokers = cluster.spec.brokers
    work = walk_id or uuid4().hex
    await asyncio.gather(
        *(_look_at(ports, runner, broker, _wanted(partitions, earlier, broker.id), limits, work, disks) for broker in brokers)
    )
    batches = [await ports.artefacts.put(one.batches) for one in disks.walked]
    replicas = tuple(log for one in disks.walked for log in one.replicas)
    manifest = MessageManifest(
        cluster=cluster.spec.name,
        taken_at=taken_at,
        sight=Sight(partitions, replicas, groups, disks.offsets_only, _not_verified(disks.walked)),
        batches=tuple(batches),
        walks=tuple(one.walked for one in disks.walked),
        since=since,
        not_read=tuple(sorted(disks.not_read)),
    )
    return await ports.artefacts.put(manifest.model_dump_json().encode())


async def manifest_of(artefacts: ArtefactStore, name: str) -> MessageManifest:
    try:
        return MessageManifest.model_validate_json(await artefacts.get(name))
    except ValidationError as error:
        raise Permanent(f"artefact {name}: it is no manifest of messages that this version reads") from error


def _wanted(
    partitions: tuple[PartitionOffsets, ...], earlier: MessageManifest | None, broker: int
) -> Mapping[str, Mapping[str, object]]:
    if earlier is None:
        return wanted_of(partitions, None)
    logs: dict[tuple[str, int], ReplicaLog] = {
        (log.topic, log.partition): log for log in earlier.sight.replicas if log.broker == broker
    }
    return wanted_of(partitions, logs)


async def _look_at(
    ports: Ports,
    runner: MessageRunner,
    broker: BrokerSpec,
    wanted: Mapping[str, Mapping[str, object]],
    limits: WalkLimits,
    walk_id: str,
    disks: _Disks,
) -> None:
    name = f"broker-{broker.id}"
    try:
        output = await walk(ports.drivers.driver(broker), broker, wanted, limits, walk_id)
        found = await runner.read_walk(broker.id, output)
    except CannotWalk as error:
        disks.offsets_only[broker.id] = str(error)
    except Transient as error:
        disks.not_read.append(f"segments of {name}: {error}")
    else:
        disks.walked.append(found)
        disks.not_read.extend(f"log {log} of {name}: its files were deleted while they were read" for log in found.moved)
    finally:
        disks.note_over(broker.id)


def _not_verified(walked: Iterable[WalkedNode]) -> dict[int, tuple[int, int]]:
    found = {}
    for one in (node.walked for node in walked):
        if one.not_verified:
            found[one.broker] = (one.not_verified, one.verified + one.not_verified + one.damaged)
    return found


def walk_id(request: CheckRequest) -> str:
    """The same for every attempt at the same report."""
    return hashlib.sha256(request.report_id.encode()).hexdigest()[:32]


async def keep_baseline(ports: Ports, runner: MessageRunner, check: CheckAttempt) -> DriftReport:
    """The report of a look that is kept, to be compared with later. What is silent makes it inconclusive."""
    started_at = datetime.now(UTC)
    try:
        name = await capture_messages(
            ports, runner, check.cluster, walk_id=walk_id(check.request), on_progress=check.on_progress
        )
    except Transient as error:
        return await report_of(
            ports.artefacts, check.request, nothing(check.request, str(error), rules_fingerprint()), started_at
        )
    manifest = await manifest_of(ports.artefacts, name)
    kept = kept_of(check.request, _counts(manifest), manifest.not_read, rules_fingerprint())
    return await report_of(ports.artefacts, check.request, kept, started_at, {"walks": _walks(manifest)}, baseline=name)


async def compare_with_baseline(ports: Ports, runner: MessageRunner, check: CheckAttempt) -> DriftReport:
    """Look at the same offsets again as this migration's baseline has, and report what became of them."""
    request, started_at = check.request, datetime.now(UTC)
    own = await ports.ledger.baseline(request.cluster, request.migration_id or "")
    baseline = own if is_usable(own) else await ports.ledger.baseline(request.cluster)
    if baseline is None or baseline.baseline is None:
        raise Permanent(f"cluster {request.cluster} has kept no baseline, so there is nothing to compare with")
    try:
        now = await capture_messages(
            ports,
            runner,
            check.cluster,
            since=baseline.baseline,
            walk_id=walk_id(check.request),
            on_progress=check.on_progress,
        )
    except Transient as error:
        vain = nothing(request, str(error), rules_fingerprint())
        return await report_of(ports.artefacts, request, vain, started_at)
    return await compare_messages(ports, runner, check, baseline.baseline, now, started_at)


async def compare_messages(
    ports: Ports, runner: MessageRunner, check: CheckAttempt, before: str, now: str, started_at: datetime
) -> DriftReport:
    """The report on two manifests, by their names."""
    sides = {"before": await manifest_of(ports.artefacts, before), "after": await manifest_of(ports.artefacts, now)}
    earlier, later = sides.values()
    if {earlier.cluster, later.cluster} != {check.request.cluster}:
        raise Permanent(f"manifests of {earlier.cluster} and {later.cluster}: expected two of {check.request.cluster}")
    asked = MessageComparison(
        id=check.request.report_id,
        before=earlier.sight,
        after=later.sight,
        before_batches=await _fetch(ports.artefacts, earlier.batches, check.directory / "before"),
        after_batches=await _fetch(ports.artefacts, later.batches, check.directory / "after"),
        out=check.directory / "out",
        tolerated=check.request.policy.tolerated,
        not_read=_not_read(earlier, later),
    )
    check.on_progress("comparing the two snapshots", 0, 1)
    compared = await runner.compare(asked, check.session, check.on_progress)
    names = {"before": before, "after": now}
    about = {
        side: {"manifest": names[side], "taken_at": manifest.taken_at.isoformat(), "walks": _walks(manifest)}
        for side, manifest in sides.items()
    }
    return await report_of(ports.artefacts, check.request, compared, started_at, about, baseline=before)


def _counts(manifest: MessageManifest) -> dict[str, int]:
    """How much was looked at, by kind."""
    return {
        PARTITION_LOG: len(manifest.sight.partitions),
        REPLICA_LOG: len(manifest.sight.replicas),
        BATCH: sum(walk.verified + walk.not_verified + walk.damaged for walk in manifest.walks),
        GROUP_OFFSET: len(manifest.sight.groups),
    }


def _walks(manifest: MessageManifest) -> list[dict[str, Any]]:
    """How much of a look was verified, for an auditor."""
    return [one.model_dump(mode="json") for one in manifest.walks]


def _not_read(before: MessageManifest, after: MessageManifest) -> tuple[str, ...]:
    """A machine that could look at its segments before and cannot now may have lost them: that is never clean."""
    lost = {broker: why for broker, why in after.sight.offsets_only.items() if broker not in before.sight.offsets_only}
    return (
        *(f"before: {what}" for what in before.not_read),
        *(f"now: {what}" for what in after.not_read),
        *(f"now: segments of broker-{broker}: {why}" for broker, why in sorted(lost.items())),
    )


async def _fetch(artefacts: ArtefactStore, names: Iterable[str], directory: Path) -> tuple[Path, ...]:
    await asyncio.to_thread(directory.mkdir, mode=0o700)
    paths = []
    for name in names:
        path = directory / f"{name}.parquet"
        await asyncio.to_thread(path.write_bytes, await artefacts.get(name))
        paths.append(path)
    return tuple(paths)
