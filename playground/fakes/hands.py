"""What a person does to a simulated cluster with a shell: the official guide there and back, without any activity of ours."""

from collections.abc import Iterable
from datetime import timedelta

from activities.node_files import FENCED_META, META, METADATA_LOG
from activities.ports.nodes import FileContent
from activities.ports.zookeeper import DeleteZnode, SetZnode, ZnodeChange
from domain.cluster import ControllerSpec, NodeSpec
from domain.configuration.properties import ENCODING
from domain.zk_to_kraft.node_config import controller_file, node_file
from domain.zk_to_kraft.steps import NodeStage
from playground.fakes.cluster import FakeCluster
from playground.fakes.machine import text_file
from playground.fakes.spec import BROKER_FILE
from playground.fakes.znodes import CONTROLLER, CONTROLLER_EPOCH, MIGRATION

LIMIT = timedelta(seconds=1)
LOOKS_OF_A_START = 5


def format_of(controller: ControllerSpec, cluster_id: str) -> list[str]:
    tool = ["java", "-cp", "x", "kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}"]
    return [*tool, "--config", controller.properties_file]


async def provision(cluster: FakeCluster, ids: Iterable[int] | None = None, *, has_flag: bool = True) -> None:
    """Write, format and start controllers: those with these ids, or all."""
    wanted = set(cluster.controller_ids if ids is None else ids)
    broker = cluster.nodes[cluster.spec.brokers[0].id].machine.read(cluster.spec.brokers[0].properties_file)
    text = broker.content.decode(ENCODING) if broker is not None else ""
    for controller in (c for c in cluster.spec.controllers if c.id in wanted):
        content = controller_file(cluster.spec, controller, None, text)
        if not has_flag:
            content = node_file(content, cluster.spec, controller, NodeStage.KRAFT)
        driver = cluster.driver(controller)
        await driver.write_file(controller.properties_file, FileContent(content.encode(ENCODING), 0o600, 0, 0))
        await driver.run(format_of(controller, cluster.spec.cluster_id), {}, LIMIT)
        await driver.start()
    cluster.advance(LOOKS_OF_A_START)


async def roll(cluster: FakeCluster, node_id: int, stage: NodeStage) -> None:
    """Brokers get the file of the stage as made from their first one; controllers theirs, changed."""
    node = cluster.spec.node(node_id)
    if node_id in cluster.controller_ids:
        file = await cluster.driver(node).read_file(node.properties_file)
        text = file.content.decode(ENCODING) if file is not None else ""
    else:
        text = original(cluster, node)
    await restart(cluster, node_id, node_file(text, cluster.spec, node, stage))


def original(cluster: FakeCluster, broker: NodeSpec) -> str:
    """The file that a broker has in the beginning."""
    directories, connect = ",".join(broker.log_dirs), cluster.spec.ensemble.connect
    return BROKER_FILE.format(id=broker.id, host=broker.host, log_dir=directories, connect=connect)


async def restart(cluster: FakeCluster, node_id: int, text: str) -> None:
    """With this file."""
    node = cluster.spec.node(node_id)
    driver = cluster.driver(node)
    await driver.write_file(node.properties_file, text_file(text, 0o640))
    await driver.stop((await driver.process()).identity or "", LIMIT)
    await driver.start()


async def roll_brokers(cluster: FakeCluster, stage: NodeStage) -> None:
    for broker in cluster.spec.brokers:
        await roll(cluster, broker.id, stage)
        cluster.advance(LOOKS_OF_A_START)


async def restore_brokers(cluster: FakeCluster) -> None:
    """Roll B: every broker with the file that it had in the beginning."""
    for broker in cluster.spec.brokers:
        await restart(cluster, broker.id, original(cluster, broker))
        cluster.advance(LOOKS_OF_A_START)


def kill_controllers(cluster: FakeCluster) -> None:
    for controller in cluster.spec.controllers:
        cluster.kill(controller.id)


async def start_controllers(cluster: FakeCluster) -> None:
    for controller in cluster.spec.controllers:
        await cluster.driver(controller).start()
    cluster.advance(LOOKS_OF_A_START)


async def fence_controllers(cluster: FakeCluster) -> None:
    for controller in cluster.spec.controllers:
        for directory in controller.log_dirs:
            await cluster.driver(controller).rename(f"{directory}/{META}", f"{directory}/{FENCED_META}")


async def hand_over(cluster: FakeCluster, epoch: int | None = None, *, keep_migration: bool = False) -> bool:
    """The one transaction of the way back, with the versions that are found. `epoch`: what `/controller_epoch` is set to."""
    tree = await cluster.connect(cluster.record())
    claim, written, migration = await tree.get_many((CONTROLLER, CONTROLLER_EPOCH, MIGRATION))
    changes: list[ZnodeChange] = []
    if epoch is not None and written is not None:
        changes.append(SetZnode(CONTROLLER_EPOCH, str(epoch).encode(), written.version))
    if migration is not None and not keep_migration:
        changes.append(DeleteZnode(MIGRATION, migration.version))
    if claim is not None:
        changes.append(DeleteZnode(CONTROLLER, claim.version))
    is_committed = await tree.commit(changes)
    await tree.close()
    return is_committed


async def wipe(cluster: FakeCluster) -> None:
    """The controllers' storage and files, and what brokers keep of the quorum's log."""
    for controller in cluster.spec.controllers:
        for directory in controller.log_dirs:
            await cluster.driver(controller).remove_tree(directory)
        await cluster.driver(controller).remove_file(controller.properties_file)
    for broker in cluster.spec.brokers:
        for directory in broker.log_dirs:
            await cluster.driver(broker).remove_tree(f"{directory}/{METADATA_LOG}")


async def in_dual_write(cluster: FakeCluster | None = None) -> FakeCluster:
    """A cluster that has just been led there."""
    cluster = cluster or FakeCluster()
    await provision(cluster)
    await roll_brokers(cluster, NodeStage.MIGRATION)
    return cluster
