"""Whether a node that runs could start again. Asked right before it is stopped, of what it has in memory and no more on disk,
which no look tells: a process goes on without its jars, and a broker asks ZooKeeper for the cluster's id only as it starts.
"""

from activities.observe import Ports, installed_jars
from activities.ports.nodes import NodeDriver
from activities.zookeeper_view import view_of
from domain.cluster import NodeSpec, Role
from domain.decisions import NodeStage
from domain.errors import KeeperlessError
from domain.records import ClusterRecord

UNTIL = "Nothing was stopped: the node runs, and would not start again."


async def why_not_startable(
    cluster: ClusterRecord, node: NodeSpec, driver: NodeDriver, stage: NodeStage, ports: Ports
) -> str | None:
    """`None` where it could, or does not run: a node that is down can only win."""
    if not (await driver.process()).is_running:
        return None
    name = cluster.spec.node_name(node.id)
    try:
        if not await installed_jars(driver, node.kafka_home):
            return (
                f"{name}: {node.kafka_home}/libs has no Kafka (kafka_2.….jar). {UNTIL} Put the installation back (a volume "
                "that is not mounted, a package that was removed), or correct kafka_home and the start command."
            )
        if cluster.spec.role(node.id) is Role.BROKER and stage is not NodeStage.KRAFT:
            return await _why_not_of_cluster(cluster, name, ports)
    except KeeperlessError as error:
        return f"{name}: whether it could start again is not known: {error}"
    return None


async def _why_not_of_cluster(cluster: ClusterRecord, name: str, ports: Ports) -> str | None:
    tree = await ports.zookeepers.connect(cluster)
    try:
        found = (await view_of(tree)).cluster_id
    finally:
        await tree.close()
    if found == cluster.spec.cluster_id:
        return None
    told = "does not exist" if found is None else f"says {found}"
    return (
        f"{name}: /cluster/id in ZooKeeper {told}, and its log directories are of cluster {cluster.spec.cluster_id}. {UNTIL} "
        "Write the cluster's id back there (GET blockers has the command)."
    )
