"""Clients' data before and after a migration: two looks, and what became of the first one's messages in the second.

    before = await capture_messages(ports, runner, cluster)                   before the first broker is rolled
    after = await capture_messages(ports, runner, cluster, since=before)      before finalisation: the same offsets again
    report = await compare_messages(ports, runner, MessageCheck(…, before, after), work)

Order in a look: committed offsets first, then the partitions' ends, then the disks. So what a group has committed lies below
the end that is read after it, and each replica is read up to a high watermark that was one already: what is beyond may be cut.
"""

import asyncio
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from pydantic import ValidationError

from activities.observe import Ports
from activities.ports import ArtefactStore, MessageComparison, MessageRunner, WalkedNode
from activities.segment_walks import CannotWalk, WalkLimits, walk, wanted_of
from domain.cluster import BrokerSpec
from domain.drift.message_manifest import MessageManifest
from domain.drift.messages import ReplicaLog, Sight
from domain.drift.report import CheckName, DriftReport
from domain.drift.tolerations import Toleration
from domain.errors import Permanent, Transient
from domain.offsets import PartitionOffsets
from domain.records import ClusterRecord

DEFAULT_LIMITS = WalkLimits()


@dataclass
class _Disks:
    """What brokers' disks have told so far, or why they have not."""

    walked: list[WalkedNode] = field(default_factory=list)
    offsets_only: dict[int, str] = field(default_factory=dict)
    not_read: list[str] = field(default_factory=list)


async def capture_messages(
    ports: Ports,
    runner: MessageRunner,
    cluster: ClusterRecord,
    *,
    since: str | None = None,
    limits: WalkLimits = DEFAULT_LIMITS,
    walk_id: str | None = None,
) -> str:
    """Look at all brokers' logs, and keep what was seen: the name of the artefact, a `MessageManifest`.

    `since`: an earlier one, whose offsets are looked at again, and nothing else. `walk_id`: the same for every attempt, so that
    one removes what another has left on a node. `Transient` while Kafka does not answer or a partition has no leader. A machine
    that does not answer is named in `not_read`; one that cannot look at its segments in `sight.offsets_only`.
    """
    earlier = await manifest_of(ports.artefacts, since) if since is not None else None
    taken_at = datetime.now(UTC)
    groups = await ports.kafka.group_offsets(cluster)
    partitions = await ports.kafka.offsets(cluster)
    disks = _Disks()
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


def _not_verified(walked: Iterable[WalkedNode]) -> dict[int, tuple[int, int]]:
    found = {}
    for one in (node.walked for node in walked):
        if one.not_verified:
            found[one.broker] = (one.not_verified, one.verified + one.not_verified + one.damaged)
    return found


@dataclass(frozen=True)
class MessageCheck:
    """Compare two manifests. `session`: of the comparison, a UUID that is known before it is opened."""

    report_id: str
    cluster: str
    before: str
    after: str
    session: str
    migration_id: str | None = None
    tolerated: tuple[Toleration, ...] = ()


async def compare_messages(ports: Ports, runner: MessageRunner, check: MessageCheck, work: Path) -> DriftReport:
    """The report, which nobody has published yet: `Ledger.add_report` does. `work`: where files lie meanwhile, in a directory
    of the report's own, which is removed.
    """
    started_at = datetime.now(UTC)
    before = await manifest_of(ports.artefacts, check.before)
    after = await manifest_of(ports.artefacts, check.after)
    if {before.cluster, after.cluster} != {check.cluster}:
        raise Permanent(f"manifests of {before.cluster} and {after.cluster}: expected two of {check.cluster}")
    directory = work / check.report_id
    await asyncio.to_thread(_empty, directory)
    try:
        asked = MessageComparison(
            id=check.report_id,
            before=before.sight,
            after=after.sight,
            before_batches=await _fetch(ports.artefacts, before.batches, directory / "before"),
            after_batches=await _fetch(ports.artefacts, after.batches, directory / "after"),
            out=directory / "out",
            tolerated=check.tolerated,
            not_read=_not_read(before, after),
        )
        compared = await runner.compare(asked, check.session)
        findings = await ports.artefacts.put(await asyncio.to_thread(compared.findings.read_bytes))
    finally:
        await asyncio.shield(asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True))
    report = DriftReport(
        id=check.report_id,
        cluster=check.cluster,
        migration_id=check.migration_id,
        check=CheckName.MESSAGES,
        verdict=compared.verdict,
        started_at=started_at,
        ended_at=datetime.now(UTC),
        counts=compared.counts,
        first=compared.first,
        not_read=compared.not_read,
        tolerated=compared.tolerated,
        rules_fingerprint=compared.rules_fingerprint,
        content_hash=compared.content_hash,
        findings=findings,
        engine=compared.engine,
        seconds=compared.seconds,
    )
    return report.model_copy(update={"manifest": await ports.artefacts.put(_about(report, check, before, after))})


def _not_read(before: MessageManifest, after: MessageManifest) -> tuple[str, ...]:
    """A machine that could look at its segments before and cannot now may have lost them: that is never clean."""
    lost = {broker: why for broker, why in after.sight.offsets_only.items() if broker not in before.sight.offsets_only}
    return (
        *(f"before: {what}" for what in before.not_read),
        *(f"now: {what}" for what in after.not_read),
        *(f"now: segments of broker-{broker}: {why}" for broker, why in sorted(lost.items())),
    )


async def _fetch(artefacts: ArtefactStore, names: Iterable[str], directory: Path) -> tuple[Path, ...]:
    await asyncio.to_thread(directory.mkdir, mode=0o700, parents=True)
    paths = []
    for name in names:
        path = directory / f"{name}.parquet"
        await asyncio.to_thread(path.write_bytes, await artefacts.get(name))
        paths.append(path)
    return tuple(paths)


def _empty(directory: Path) -> None:
    """What an attempt that died has left goes first."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700, parents=True)


def _about(report: DriftReport, check: MessageCheck, before: MessageManifest, after: MessageManifest) -> bytes:
    """What the report is made of, for an auditor: the looks by name, and how much of them was verified."""
    told = report.model_dump(mode="json", exclude={"first"})
    for side, name, manifest in (("before", check.before, before), ("after", check.after, after)):
        walks = [one.model_dump(mode="json") for one in manifest.walks]
        told[side] = {"manifest": name, "taken_at": manifest.taken_at.isoformat(), "walks": walks}
    return json.dumps(told, sort_keys=True, indent=1).encode()
