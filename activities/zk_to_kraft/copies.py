"""Kafka's own copy, verified: what ZooKeeper had, kept right before, and compared with what the quorum's log has of it.

    keep_metadata    before the last broker is rolled, whose registration starts the copy
    compare_copy     when the copy is complete, and before any broker depends on it

A ZooKeeper that has lost what the copy lost says nothing of it: the new controller removes there what it does not have
(KRaftMigrationZkWriter). So the rows are kept before, and what changed in the minute until KRaft's claim is told by znodes that
nobody has written since (`spark.sources.as_of_claim`).
"""

import asyncio
import shutil
from datetime import UTC, datetime
from pathlib import Path

from activities.comparison.capturing import crawl
from activities.comparison.log_copy import copy_log
from activities.comparison.reporting import kept_of, nothing, report_of
from activities.node_files import storage_of
from activities.observing.zookeeper_view import CONTROLLER, claim_and_offset, controller_of
from activities.ports.checks import CheckAttempt, CheckRunner, Claimed, Comparison, TellProgress
from activities.ports.ports import Ports
from activities.ports.zookeeper import Captured, session
from activities.rulings import copy_reports
from activities.zk_to_kraft.consistent_cut import active_controller
from domain.cluster import ControllerSpec
from domain.contracts import CheckRequest
from domain.drift.hashing import rules_fingerprint
from domain.drift.report import Cut, DriftReport
from domain.errors import Permanent, Transient
from domain.observed.observation import ControllerZnode
from domain.quorum_log.metadata_log import EndOfCopy
from domain.zk_to_kraft.comparison import CopyReports, claim_in


async def keep_metadata(ports: Ports, runner: CheckRunner, check: CheckAttempt) -> DriftReport:
    """The report of what ZooKeeper has, which is kept. `INCONCLUSIVE` where a znode cannot be read, or the copy came first."""
    request, started_at = check.request, datetime.now(UTC)
    try:
        async with session(ports.zookeepers, check.cluster) as tree:
            kept = await runner.keep(_told(crawl(tree), check.on_progress), check.directory / "kept")
            await tree.sync()
            claim = (await claim_and_offset(tree))["controller"]
    except Transient as error:
        return await _in_vain(ports, request, str(error), started_at)
    if isinstance(claim, ControllerZnode) and claim_in(claim):
        return await _in_vain(ports, request, f"KRaft has claimed ZooKeeper already: {claim_in(claim)}", started_at)
    told = kept_of(request, kept.counts, kept.not_read, rules_fingerprint())
    name = await ports.artefacts.put(kept.packed)
    return await report_of(ports.artefacts, request, told, started_at, baseline=name)


async def _told(chunks: Captured, on_progress: TellProgress) -> Captured:
    """With how far the reading is: nobody knows before how many there are."""
    read = 0
    on_progress("reading ZooKeeper's tree", 0, 1)
    async for chunk in chunks:
        yield chunk
        read += len(chunk)
        on_progress(f"reading ZooKeeper's tree, {read} znodes so far", 0, 1)


async def compare_copy(ports: Ports, runner: CheckRunner, check: CheckAttempt) -> DriftReport:
    """The report on the copy that the quorum's log has."""
    request, started_at = check.request, datetime.now(UTC)
    try:
        leader = await active_controller(check.cluster, ports)
        check.on_progress(f"copying the metadata log of controller-{leader.node.id}", 0, 1)
        end = await _end_of_copy(ports, runner, leader.node, check.directory / "log")
        claim, kept = await _as_of_claim(ports, runner, check, end)
        asked = Comparison(
            id=request.report_id,
            staged=check.directory / "then",
            log=check.directory / "log",
            cut=end.offset,
            end=end.offset,
            out=check.directory / "out",
            tolerated=request.policy.tolerated,
            check=request.check,
        )
        compared = await runner.compare(asked, check.session, check.on_progress)
    except Transient as error:
        return await _in_vain(ports, request, str(error), started_at)
    finally:
        await asyncio.shield(asyncio.to_thread(shutil.rmtree, check.directory / "log", ignore_errors=True))
    cut = Cut(migration_offset=end.offset - 1, high_watermark=leader.high_watermark, claim=claim)
    return await report_of(ports.artefacts, request, compared, started_at, cut=cut, baseline=kept)


async def _end_of_copy(ports: Ports, runner: CheckRunner, leader: ControllerSpec, log: Path) -> EndOfCopy:
    """In a private copy of all that the log still has."""
    driver = ports.drivers.driver(leader)
    await copy_log(driver, (await storage_of(driver, leader)).metadata_log, None, log)
    end = await runner.end_of_copy(log)
    if end is None:
        raise Transient(
            f"the log of controller {leader.id} has no complete copy. If the copy is long ago, Kafka has deleted that part "
            "of the log, and the copy cannot be compared any more: take over with a migration that has compare_copy: false"
        )
    return end


async def _as_of_claim(ports: Ports, runner: CheckRunner, check: CheckAttempt, end: EndOfCopy) -> tuple[str, str]:
    """The claim that is seen now, and the artefact of the rows that were kept.

    A claim after that of the copy's own controller tells nothing: dual write had begun before it.
    """
    async with session(ports.zookeepers, check.cluster) as tree:
        await tree.sync()
        (znode,) = await tree.get_many((CONTROLLER,))
        controller = controller_of(znode)
        if znode is None or controller is None or not claim_in(controller):
            raise Transient("KRaft has no claim of /controller: it is unknown what ZooKeeper had when it was copied")
        kept = await _kept(ports, check.request, controller)
        zxid = znode.modified_zxid if controller.kraft_epoch == end.epoch else -1
        claimed = Claimed(zxid, controller.claimed_at)
        await runner.as_of_claim(
            await ports.artefacts.get(kept), _told(crawl(tree), check.on_progress), claimed, check.directory / "then"
        )
    return claim_in(controller), kept


async def _kept(ports: Ports, request: CheckRequest, claim: ControllerZnode) -> str:
    reports = CopyReports.of(await copy_reports(ports.ledger, request.cluster, request.migration_id))
    kept = reports.baseline(claim, request.policy)
    if kept is None or kept.baseline is None:
        raise Permanent(f"cluster {request.cluster}: what ZooKeeper had right before the copy was not kept")
    return kept.baseline


async def _in_vain(ports: Ports, request: CheckRequest, why: str, started_at: datetime) -> DriftReport:
    return await report_of(ports.artefacts, request, nothing(request, why, rules_fingerprint()), started_at)
