"""What we keep beside a node's properties file: the archived original and the mark of the last roll.

    /etc/kafka/server.properties
    /etc/kafka/.keeperless/server.properties.original-<sha256>     bytes, mode and owner as they were
    /etc/kafka/.keeperless/server.properties.mark                  JSON, a `RollMark`

Order of writes in a roll: original, mark, file, restart. So whatever a crash leaves behind, the mark tells what ran
before and what the file was to become, and the original is there before its first change.
"""

import hashlib
from pathlib import PurePosixPath

from pydantic import ValidationError

from activities.ports import FileContent, NodeDriver
from domain.errors import Unsafe
from domain.observation import OBSERVED_PROPERTIES, LogDir, NodeDisk, PropertiesFile, RollMark, StorageState
from domain.properties import ENCODING, parse

PRIVATE = 0o600
FIRST_WRITTEN = frozenset({"bootstrap.checkpoint", "bootstrap.checkpoint.tmp", "lost+found"})
"""Names that an interrupted format, or a fresh file system, leaves in a directory that counts as empty."""


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def original_path(properties_file: str, sha256: str) -> str:
    """Where the archived original of a properties file is."""
    path = PurePosixPath(properties_file)
    return str(path.parent / ".keeperless" / f"{path.name}.original-{sha256}")


def mark_path(properties_file: str) -> str:
    path = PurePosixPath(properties_file)
    return str(path.parent / ".keeperless" / f"{path.name}.mark")


async def archive_original(driver: NodeDriver, properties_file: str, file: FileContent) -> str:
    """Keep the file's bytes, mode and owner under its hash, and read them back. Archived already is fine."""
    sha256 = sha256_of(file.content)
    path = original_path(properties_file, sha256)
    if await driver.read_file(path) is None:
        await driver.write_file(path, file)
    kept = await driver.read_file(path)
    if kept is None or sha256_of(kept.content) != sha256:
        raise Unsafe(f"{path}: the archived original does not read back as it was written. Check the node's disk.")
    return sha256


async def read_mark(driver: NodeDriver, properties_file: str) -> RollMark | None:
    file = await driver.read_file(mark_path(properties_file))
    if file is None:
        return None
    try:
        return RollMark.model_validate_json(file.content)
    except ValidationError as error:
        raise Unsafe(
            f"{mark_path(properties_file)} cannot be read: it is ours and says what was done to this node. "
            "Restore it, or remove it once you have made sure that the node is as it should be."
        ) from error


async def write_mark(driver: NodeDriver, properties_file: str, mark: RollMark, like: FileContent) -> None:
    """Write the mark, owned by whoever owns the properties file."""
    content = FileContent(mark.model_dump_json(indent=2).encode(), PRIVATE, like.uid, like.gid)
    await driver.write_file(mark_path(properties_file), content)


async def look_at_disk(
    driver: NodeDriver, properties_file: str, log_dirs: tuple[str, ...], cluster_id: str, node_id: int
) -> NodeDisk:
    """What a node has on disk: its file with our mark, and its log directories."""
    file = await driver.read_file(properties_file)
    seen = None
    if file is not None:
        properties = parse(file.content.decode(ENCODING))
        seen = PropertiesFile(
            sha256=sha256_of(file.content),
            properties={key: value for key, value in properties.items() if key in OBSERVED_PROPERTIES},
            mark=await read_mark(driver, properties_file),
        )
    return NodeDisk(file=seen, log_dirs=tuple([await look_at_log_dir(driver, p, cluster_id, node_id) for p in log_dirs]))


async def look_at_log_dir(driver: NodeDriver, path: str, cluster_id: str, node_id: int) -> LogDir:
    """Classify a log directory: OURS means formatted for this cluster and this node."""
    names = await driver.list_dir(path)
    if names is None:
        return LogDir(path=path, state=StorageState.ABSENT, cluster_id=None, node_id=None)
    meta = await driver.read_file(f"{path}/meta.properties")
    if meta is None:
        state = StorageState.FOREIGN if set(names) - FIRST_WRITTEN else StorageState.EMPTY
        return LogDir(path=path, state=state, cluster_id=None, node_id=None)
    properties = parse(meta.content.decode(ENCODING))
    found_id = properties.get("node.id", properties.get("broker.id", ""))
    found = LogDir(
        path=path,
        state=StorageState.FOREIGN,
        cluster_id=properties.get("cluster.id"),
        node_id=int(found_id) if found_id.lstrip("-").isdigit() else None,
    )
    is_ours = (found.cluster_id, found.node_id) == (cluster_id, node_id)
    return found.model_copy(update={"state": StorageState.OURS}) if is_ours else found
