"""What happens on a way back between the rolls, done by hand on a simulated cluster: the window, and the wipe after it."""

from activities.node_files import FENCED_META, META, METADATA_LOG, mark_path
from activities.ports.zookeeper import DeleteZnode, SetZnode, Znode
from domain.configuration.properties import edit
from domain.contracts import RevertOrder
from domain.zk_to_kraft.node_config import MIGRATION_FLAG
from playground.fakes.cluster import FakeCluster
from playground.fakes.machine import text_file
from playground.fakes.znodes import CONTROLLER, CONTROLLER_EPOCH, MIGRATION

NEVER_SO_LATE = b"1000"
"""An epoch that no simulated quorum reaches."""


def order(cluster: FakeCluster, *accepted: str) -> RevertOrder:
    """A way back that a person has asked for and that was accepted."""
    return RevertOrder(command_id="rollback", because="asked for", accepted_losses=accepted, cluster=cluster.record())


async def leave_kraft(cluster: FakeCluster) -> None:
    """Fence, kill, one transaction. A broker is ZooKeeper's controller a look later."""
    for controller in cluster.spec.controllers:
        for log_dir in controller.log_dirs:
            await cluster.driver(controller).rename(f"{log_dir}/{META}", f"{log_dir}/{FENCED_META}")
        cluster.kill(controller.id)
    cluster.advance()
    tree = await cluster.connect(cluster.record())
    epoch, migration, claim = [await _found(tree.get(path)) for path in (CONTROLLER_EPOCH, MIGRATION, CONTROLLER)]
    raised = SetZnode(CONTROLLER_EPOCH, NEVER_SO_LATE, epoch.version)
    assert await tree.commit((raised, DeleteZnode(MIGRATION, migration.version), DeleteZnode(CONTROLLER, claim.version)))
    await tree.close()
    cluster.advance()


async def _found(asked: object) -> Znode:
    znode = await asked  # type: ignore[misc]
    assert isinstance(znode, Znode)
    return znode


async def wipe(cluster: FakeCluster) -> None:
    """Storage, file and mark of the controllers, and the brokers' copies of the quorum's log. Archives stay."""
    for controller in cluster.spec.controllers:
        driver = cluster.driver(controller)
        for path in controller.log_dirs:
            await driver.remove_tree(path)
        await driver.remove_file(controller.properties_file)
        await driver.remove_file(mark_path(controller.properties_file))
    for broker in cluster.spec.brokers:
        for path in broker.log_dirs:
            await cluster.driver(broker).remove_tree(f"{path}/{METADATA_LOG}")
    cluster.advance()


async def start_node(cluster: FakeCluster, node_id: int) -> None:
    """Lift a controller's fence, if there is one, and start it."""
    driver = cluster.driver(cluster.spec.node(node_id))
    for path in cluster.spec.node(node_id).log_dirs:
        if FENCED_META in (await driver.list_dir(path) or ()):
            await driver.rename(f"{path}/{FENCED_META}", f"{path}/{META}")
    await driver.start()
    cluster.advance(2)


def take_flag(cluster: FakeCluster, node_id: int, *, restart: bool) -> str:
    """Somebody edits a controller's file, by mistake, and restarts it or not. Answers with the file as it was."""
    node = cluster.nodes[node_id]
    file = node.machine.read(node.spec.properties_file)
    assert file is not None
    text = file.content.decode()
    taken = edit(text, {"max.connections": "99"}, frozenset({MIGRATION_FLAG}))
    node.machine.write(node.spec.properties_file, text_file(taken, file.mode))
    if restart:
        cluster.kill(node_id)
        node.start()
    return text
