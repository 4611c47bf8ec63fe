"""One look at both sides, without stopping anything: what a comparison is made of.

    1. the claim of /controller and the offset in /migration, after a sync    ZooKeeper has all up to there
    2. the tree, crawled                                                      it goes on changing meanwhile
    3. claim and offset again                                                 the same dual write, and it keeps up
    4. the high watermark of the active controller                            no change that was seen is beyond it
    5. a copy of that controller's log                                        private: it holds secrets

Rows of 2 are compared with the image at 1, and with all versions of a row from there to 4: equal to any of them is equal.
What keeps a look from being consistent is `Transient`: another look may be.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from activities.comparison.capturing import crawl
from activities.comparison.log_copy import copy_log
from activities.node_files import storage_of
from activities.observing.zookeeper_view import claim_and_offset
from activities.ports.checks import CheckRunner, Comparison
from activities.ports.ports import Ports
from activities.ports.zookeeper import ZooKeeperTree, session
from domain.cluster import ControllerSpec
from domain.drift.report import CheckName, Cut
from domain.errors import Transient
from domain.observed.observation import ControllerZnode, MigrationZnode, NodeMetrics
from domain.policy import MigrationPolicy
from domain.records import ClusterRecord
from domain.zk_to_kraft.comparison import claim_in
from domain.zk_to_kraft.policy import ZkToKraftPolicy

NOBODY_LEADS = "no controller reports that it is active: the quorum's log cannot be read up to a known offset"


@dataclass(frozen=True)
class ActiveController:
    """The quorum's leader. `high_watermark`, `log_end`: the offsets after the last one."""

    node: ControllerSpec
    high_watermark: int
    log_end: int


@dataclass(frozen=True)
class Moment:
    """The dual write at one moment: whose it is, and up to which offset ZooKeeper has all."""

    claim: str
    claimant: int
    offset: int


@dataclass(frozen=True)
class Taker:
    """Takes looks at one cluster. `on_stage`: called with what is read next.

    After the end (`CheckName.END`) ZooKeeper stays as the last dual write has left it: claim and offset are from then,
    whatever node leads the quorum now. Proven on 3.9.2: `/migration` is frozen, and `/controller` stays.
    """

    cluster: ClusterRecord
    ports: Ports
    runner: CheckRunner
    policy: MigrationPolicy
    on_stage: Callable[[str], None]
    check: CheckName = CheckName.METADATA

    async def take(self, name: str, directory: Path) -> tuple[Comparison, Cut]:
        """Both sides in files below `directory`, which is new. `name`: the comparison's."""
        async with session(self.ports.zookeepers, self.cluster) as tree:
            before, end_before = await self._moment(tree), (await active_controller(self.cluster, self.ports)).log_end
            self.on_stage("read ZooKeeper")
            await self.runner.stage(crawl(tree), directory / "zookeeper")
            after = await self._moment(tree)
        is_ended = self.check is CheckName.END
        self._ensure_current(before, after, end_before if not is_ended else 0)
        leader = await active_controller(self.cluster, self.ports)
        if leader.node.id != before.claimant and not is_ended:
            raise Transient(f"controller {leader.node.id} leads the quorum, and /controller is {before.claimant}'s")
        self.on_stage("copy the quorum's log")
        driver = self.ports.drivers.driver(leader.node)
        log = directory / "log"
        await copy_log(driver, (await storage_of(driver, leader.node)).metadata_log, before.offset + 1, log)
        cut = Cut(migration_offset=before.offset, high_watermark=leader.high_watermark, claim=before.claim)
        return self._comparison(name, directory, cut), cut

    async def claim_now(self) -> str:
        """Whose dual write it is; empty where nobody says."""
        try:
            async with session(self.ports.zookeepers, self.cluster) as tree:
                controller = (await claim_and_offset(tree))["controller"]
        except Transient:
            return ""
        return claim_in(controller) if isinstance(controller, ControllerZnode) else ""

    def _comparison(self, name: str, directory: Path, cut: Cut) -> Comparison:
        """The offset in /migration is that of the last record that ZooKeeper has: the image before the next one is its own."""
        return Comparison(
            id=name,
            staged=directory / "zookeeper",
            log=directory / "log",
            cut=cut.migration_offset + 1,
            end=max(cut.high_watermark, cut.migration_offset + 1),
            out=directory / "out",
            tolerated=self.policy.tolerated,
            check=self.check,
        )

    def _ensure_current(self, before: Moment, after: Moment, end_before: int) -> None:
        if before.claim != after.claim:
            raise Transient(f"another dual write began in the middle: {after.claim} has followed {before.claim}")
        behind = end_before - 1 - after.offset
        if behind > ZkToKraftPolicy.of(self.policy).max_offset_distance:
            raise Transient(f"ZooKeeper lacks {behind} records that the quorum had before: dual write is not current")

    async def _moment(self, tree: ZooKeeperTree) -> Moment:
        await tree.sync()
        found = await claim_and_offset(tree)
        controller, migration = found["controller"], found["migration"]
        if not isinstance(controller, ControllerZnode) or not claim_in(controller):
            raise Transient("KRaft has no claim of /controller: there is no dual write to compare")
        if not isinstance(migration, MigrationZnode) or migration.offset is None or migration.offset <= 0:
            raise Transient("/migration mentions no complete copy: there is nothing to compare yet")
        return Moment(claim_in(controller), controller.broker_id, migration.offset)


async def active_controller(cluster: ClusterRecord, ports: Ports) -> ActiveController:
    """The one that the others follow. `Transient` where none says that it is it."""
    controllers = cluster.spec.controllers
    answers = await asyncio.gather(*(_gauges(ports, node) for node in controllers))
    leading = [
        (gauges.raft_epoch or 0, ActiveController(node, gauges.raft_high_watermark, gauges.raft_log_end))
        for node, gauges in zip(controllers, answers, strict=True)
        if isinstance(gauges, NodeMetrics)
        and (gauges.active_controller_count, gauges.raft_leader) == (1, node.id)
        and gauges.raft_high_watermark is not None
        and gauges.raft_log_end is not None
    ]
    if not leading:
        silent = [
            f"; {cluster.spec.node_name(node.id)} gives this worker no metrics: {why}"
            for node, why in zip(controllers, answers, strict=True)
            if not isinstance(why, NodeMetrics)
        ]
        raise Transient(f"{NOBODY_LEADS}{''.join(silent)}")
    return max(leading, key=lambda found: found[0])[1]


async def _gauges(ports: Ports, node: ControllerSpec) -> NodeMetrics | str:
    """Or why there are none."""
    try:
        return await ports.metrics.read(node.metrics)
    except Transient as error:
        return str(error)
