"""Where a node keeps its data, and what we keep beside its properties file: what was overwritten, and the last roll's mark.

    /etc/kafka/server.properties
    /etc/kafka/.keeperless/server.properties.original-<sha256>     bytes, mode and owner as they were before a migration
    /etc/kafka/.keeperless/server.properties.before-<sha256>       the same of any other file that was overwritten
    /etc/kafka/.keeperless/server.properties.mark                  JSON, a `RollMark`
    /etc/kafka/.keeperless/server.properties.paused                JSON, a `PauseMark`

The original of a broker is its file in stage `zookeeper`, of a controller the file that it was made with. Each migration
archives its own, and the mark names it. Nothing is ever removed from here but the mark of a controller that was wiped, and
what says that configuration management is paused, once it is not.

Order of writes in a roll: archive, mark, file, restart. So whatever a crash leaves behind, the mark tells what ran
before and what the file was to become, and what was there is kept before it changes.
"""

import hashlib
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from activities.ports.nodes import FileContent, NodeDriver
from domain.cluster import NodeSpec, original_path, path_beside
from domain.configuration.properties import ENCODING, parse
from domain.errors import Unsafe
from domain.observed.observation import OBSERVED_PROPERTIES, LogDir, NodeDisk, PauseMark, PropertiesFile, RollMark, StorageState
from domain.redaction import shown_value

Kept = TypeVar("Kept", RollMark, PauseMark)

PRIVATE = 0o600
META = "meta.properties"
"""Whose a log directory is. KRaft refuses to start without it."""
FENCED_META = f"{META}.fenced-by-keeperless"
"""The name that the way back gives to `META` on controllers, so that nobody can start them."""
METADATA_LOG = "__cluster_metadata-0"
"""The directory of the quorum's log."""
FIRST_WRITTEN = frozenset({"bootstrap.checkpoint", "bootstrap.checkpoint.tmp", "lost+found"})
"""Names that an interrupted format, or a fresh file system, leaves in a directory that counts as empty."""


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def before_path(properties_file: str, sha256: str) -> str:
    """Where a file is archived that was overwritten and is no original."""
    return path_beside(properties_file, f"before-{sha256}")


def mark_path(properties_file: str) -> str:
    return path_beside(properties_file, "mark")


def pause_path(properties_file: str) -> str:
    """Where it is kept that the node's configuration management is paused, and by whom."""
    return path_beside(properties_file, "paused")


async def archive_original(driver: NodeDriver, properties_file: str, file: FileContent) -> str:
    """Keep a file from before a migration under its hash. Answers with the hash."""
    return await _archive(driver, original_path(properties_file, sha256_of(file.content)), file)


async def archive_before(driver: NodeDriver, properties_file: str, file: FileContent) -> str:
    """Keep a file that is going to be overwritten, and is no original, under its hash. Answers with the hash."""
    return await _archive(driver, before_path(properties_file, sha256_of(file.content)), file)


async def _archive(driver: NodeDriver, path: str, file: FileContent) -> str:
    """Write bytes, mode and owner, and read them back. The same bytes from an earlier migration may have had another owner."""
    if await driver.read_file(path) != file:
        await driver.write_file(path, file)
    if await driver.read_file(path) != file:
        raise Unsafe(f"{path}: the archived file does not read back as it was written. Check the node's disk.")
    return sha256_of(file.content)


async def read_original(driver: NodeDriver, properties_file: str, mark: RollMark | None) -> FileContent | None:
    """The archived original as a look finds it, or `None`."""
    sha256 = await find_original(driver, properties_file, mark)
    return await driver.read_file(original_path(properties_file, sha256)) if sha256 is not None else None


async def read_mark(driver: NodeDriver, properties_file: str) -> RollMark | None:
    what = "what was done to this node. Restore it, or remove it once you have made sure that the node is as it should be."
    return await _read(driver, mark_path(properties_file), RollMark, f"Keeperless keeps there {what}")


async def write_mark(driver: NodeDriver, properties_file: str, mark: RollMark, like: FileContent) -> None:
    """Write the mark, owned by whoever owns the properties file."""
    await _write(driver, mark_path(properties_file), mark, like)


async def read_pause(driver: NodeDriver, properties_file: str) -> PauseMark | None:
    what = "configuration management is paused. Restore it, or resume configuration management yourself and remove it."
    return await _read(driver, pause_path(properties_file), PauseMark, f"Keeperless notes there that this node's {what}")


async def write_pause(driver: NodeDriver, properties_file: str, mark: PauseMark, like: FileContent) -> None:
    """Owned by whoever owns the properties file."""
    await _write(driver, pause_path(properties_file), mark, like)


async def _read(driver: NodeDriver, path: str, kind: type[Kept], what_to_do: str) -> Kept | None:
    file = await driver.read_file(path)
    if file is None:
        return None
    try:
        return kind.model_validate_json(file.content)
    except ValidationError as error:
        raise Unsafe(f"{path} cannot be read. {what_to_do}") from error


async def _write(driver: NodeDriver, path: str, kept: RollMark | PauseMark, like: FileContent) -> None:
    await driver.write_file(path, FileContent(kept.model_dump_json(indent=2).encode(), PRIVATE, like.uid, like.gid))


async def look_at_disk(
    driver: NodeDriver, properties_file: str, log_dirs: tuple[str, ...], cluster_id: str, node_id: int
) -> NodeDisk:
    """What a node has on disk: its file with our mark and its original, and its log directories.

    A directory of its own for the quorum's log, which need not be among the others, is shown once something is in it.
    """
    file = await driver.read_file(properties_file)
    seen = None if file is None else await _look_at_file(driver, properties_file, file)
    found = [await look_at_log_dir(driver, path, cluster_id, node_id) for path in log_dirs]
    metadata_dir = seen.properties.get("metadata.log.dir", "").strip() if seen is not None else ""
    if metadata_dir and metadata_dir not in log_dirs:
        extra = await look_at_log_dir(driver, metadata_dir, cluster_id, node_id)
        found += [extra] if extra.state not in {StorageState.ABSENT, StorageState.EMPTY} else []
    return NodeDisk(file=seen, log_dirs=tuple(found), pause=await read_pause(driver, properties_file))


async def _look_at_file(driver: NodeDriver, properties_file: str, file: FileContent) -> PropertiesFile:
    properties = parse(file.content.decode(ENCODING), properties_file)
    mark = await read_mark(driver, properties_file)
    return PropertiesFile(
        sha256=sha256_of(file.content),
        properties={key: shown_value(key, value) for key, value in properties.items() if key in OBSERVED_PROPERTIES},
        mark=mark,
        original_sha256=await find_original(driver, properties_file, mark),
    )


async def find_original(driver: NodeDriver, properties_file: str, mark: RollMark | None) -> str | None:
    """The hash of the archived original: the one that the mark names, else the only one there.

    `None` where there is none, where nothing says which of several it is, and where it does not read back with its hash.
    """
    named = mark.original_sha256 if mark is not None else None
    if named is None:
        folder, _, prefix = original_path(properties_file, "").rpartition("/")
        names = [name.removeprefix(prefix) for name in await driver.list_dir(folder) or () if name.startswith(prefix)]
        if len(names) != 1:
            return None
        named = names[0]
    kept = await driver.read_file(original_path(properties_file, named))
    return named if kept is not None and sha256_of(kept.content) == named else None


async def look_at_log_dir(driver: NodeDriver, path: str, cluster_id: str, node_id: int) -> LogDir:
    """Classify a log directory: OURS means formatted for this cluster and this node, fenced or not."""
    names = await driver.list_dir(path)
    found = LogDir(path=path, state=StorageState.ABSENT, cluster_id=None, node_id=None)
    if names is None:
        return found
    is_fenced = FENCED_META in names and META not in names
    meta_path = f"{path}/{FENCED_META if is_fenced else META}"
    meta = await driver.read_file(meta_path)
    state = StorageState.FOREIGN if meta is not None or set(names) - FIRST_WRITTEN else StorageState.EMPTY
    found = found.model_copy(update={"state": state, "is_fenced": is_fenced, "has_metadata_log": METADATA_LOG in names})
    return found if meta is None else _with_owner(found, parse(meta.content.decode(ENCODING), meta_path), cluster_id, node_id)


def _with_owner(log_dir: LogDir, meta: dict[str, str], cluster_id: str, node_id: int) -> LogDir:
    found_id = meta.get("node.id", meta.get("broker.id", ""))
    owner = (meta.get("cluster.id"), int(found_id) if found_id.lstrip("-").isdigit() else None)
    state = StorageState.OURS if owner == (cluster_id, node_id) else StorageState.FOREIGN
    return log_dir.model_copy(update={"state": state, "cluster_id": owner[0], "node_id": owner[1]})


async def properties_of(driver: NodeDriver, node: NodeSpec) -> dict[str, str]:
    """Of its file as it lies there now; empty where there is none."""
    file = await driver.read_file(node.properties_file)
    return parse(file.content.decode(ENCODING), node.properties_file) if file is not None else {}


def ensure_unchanged(path: str, sha256: str, expected: set[str]) -> None:
    """Raise when somebody else changed a file between our look and our write."""
    if sha256 not in expected:
        raise Unsafe(
            f"{path} was changed from outside while it was being rolled (sha256 {sha256[:12]}…). It is not overwritten. "
            "Restore what this migration wrote, or make your change before the migration starts."
        )


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
