"""Every node's file as it is, and what is archived of it: for plans, previews and runbooks."""

from temporalio import activity

from activities.node_files import sha256_of
from activities.ports.ports import Ports
from domain.cluster import ControllerSpec, NodeSpec, original_path
from domain.configuration.properties import ENCODING
from domain.errors import KeeperlessError
from domain.observed.observation import Observation
from domain.records import ClusterRecord
from domain.rolling.change import Files, NodeFile


async def read_files(cluster: ClusterRecord, observation: Observation, ports: Ports) -> Files:
    """Every node's file as it is, and what is archived of it. A node that does not answer is left out: it is unknown."""
    found: dict[int, NodeFile] = {}
    for node in cluster.spec.nodes:
        disk = observation.node(node.id).disk
        if disk is None:
            continue
        original = disk.file.original_sha256 if disk.file is not None else None
        try:
            found[node.id] = await _read_file(node, original, ports)
        except KeeperlessError as error:
            activity.logger.warning("the files of %s could not be read: %s", cluster.spec.node_name(node.id), error)
    return found


async def _read_file(node: NodeSpec, original: str | None, ports: Ports) -> NodeFile:
    driver = ports.drivers.driver(node)

    async def text(path: str | None) -> str | None:
        file = await driver.read_file(path) if path is not None else None
        return file.content.decode(ENCODING) if file is not None else None

    current = await text(node.properties_file)
    own = original or sha256_of((current or "").encode(ENCODING))
    archive = original_path(node.properties_file, own)
    base = node.base_properties if isinstance(node, ControllerSpec) else None
    return NodeFile(current, await text(archive) if original is not None else None, archive, await text(base))
