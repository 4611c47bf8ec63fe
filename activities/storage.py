"""Where a node keeps its data: what its own file says, and what its specification says."""

from dataclasses import dataclass

from activities.node_files import METADATA_LOG
from activities.ports.nodes import NodeDriver
from domain.cluster import NodeSpec
from domain.configuration.properties import ENCODING, parse


@dataclass(frozen=True)
class Storage:
    """`log_dirs`: all that the node uses, or is said to use. `metadata_dir`: the one that holds the quorum's log."""

    log_dirs: tuple[str, ...]
    metadata_dir: str

    @property
    def metadata_log(self) -> str:
        return f"{self.metadata_dir}/{METADATA_LOG}"


async def storage_of(driver: NodeDriver, node: NodeSpec) -> Storage:
    """A file that was written by hand may name others than the specification does: both count."""
    file = await driver.read_file(node.properties_file)
    return storage_in(file.content.decode(ENCODING) if file is not None else "", node)


def storage_in(text: str, node: NodeSpec) -> Storage:
    """The same, of a file that is not written yet."""
    properties = parse(text)
    named = properties.get("log.dirs") or properties.get("log.dir") or ""
    own = [path.strip().rstrip("/") for path in named.split(",") if path.strip()] or list(node.log_dirs)
    metadata_dir = properties.get("metadata.log.dir", "").strip().rstrip("/") or own[0]
    return Storage(tuple(dict.fromkeys((*own, *node.log_dirs, metadata_dir))), metadata_dir)
