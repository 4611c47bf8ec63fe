"""ZooKeeper: its tree, and its servers one by one."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from domain.diagnosis.causes.hints import Serving
from domain.observed.ensemble import MemberTree
from domain.records import ClusterRecord


@dataclass(frozen=True)
class Znode:
    """A znode's data with its version, the session that owns it (0: persistent), and its creation by the ensemble's clock.

    `modified_zxid`: of the transaction that wrote the data last (mzxid); -1 where nobody asked for it.
    """

    data: bytes
    version: int
    ephemeral_owner: int
    created_at: datetime | None = None
    modified_zxid: int = -1


@dataclass(frozen=True)
class SetZnode:
    """Replace a znode's data, if it still has this version."""

    path: str
    data: bytes
    version: int


@dataclass(frozen=True)
class DeleteZnode:
    """Delete a znode, if it still has this version."""

    path: str
    version: int


@dataclass(frozen=True)
class CreateZnode:
    """Create a persistent znode, if there is none, protected as the znode `like` is. That one must be there before."""

    path: str
    data: bytes
    like: str


ZnodeChange = SetZnode | DeleteZnode | CreateZnode


@dataclass(frozen=True)
class Access:
    """One entry of a znode's access list: whom it is for, and whether it lets them do everything."""

    scheme: str
    identity: str
    is_everything: bool


class ZooKeeperTree(Protocol):
    """The tree below the cluster's chroot. One instance is one session; close it."""

    async def get(self, path: str) -> Znode | None:
        """A znode, or `None` when it does not exist."""

    async def get_many(self, paths: Sequence[str]) -> tuple[Znode | None, ...]:
        """Many znodes, in the order asked for."""

    async def children(self, path: str) -> tuple[str, ...] | None:
        """Names of the children, sorted, or `None` when the znode does not exist."""

    async def access(self, path: str) -> tuple[Access, ...] | None:
        """A znode's access list, or `None` when it does not exist."""

    async def sync(self) -> None:
        """Make the server of this session catch up with the ensemble's leader: later reads have all that was done before."""

    async def commit(self, changes: Sequence[ZnodeChange]) -> bool:
        """Make all changes in one transaction, or none: false when a znode was gone, had another version, or was there already.

        `Transient` when the answer was lost: then it may have happened or not, and only a look can tell, through another
        session: this one is closed, so that what was not sent yet never will be. `Permanent` where something else forbids it.
        """

    async def rehearse(self, changes: Sequence[SetZnode | DeleteZnode]) -> None:
        """`Permanent` where `commit` would be forbidden, change by change. Changes nothing."""

    async def has_room(self, path: str) -> bool:
        """False where one more znode below this one would be over a hard quota of the ensemble's. Changes nothing."""

    async def close(self) -> None: ...


class ZooKeepers(Protocol):
    """Opens the tree of a cluster, and asks single servers."""

    async def connect(self, cluster: ClusterRecord) -> ZooKeeperTree: ...

    async def ask(self, server: str, word: str) -> str | None:
        """The answer of one server (`host:port`) to a word of four letters; `None` when it is not on its whitelist."""


class ZooKeeperServers(Protocol):
    """Asks the servers of an ensemble one by one, which a session never does."""

    async def serving(self, host: str, port: int) -> Serving:
        """Whether it serves. Answers within a few seconds, whatever the server does."""

    async def tree(self, host: str, port: int) -> MemberTree | None:
        """How far it is, and how many znodes it has; `None` where it does not tell, or is not part of a quorum."""


@dataclass(frozen=True)
class CapturedZnode:
    """`mzxid`: the transaction that wrote it last."""

    path: str
    data: bytes
    mzxid: int


Captured = AsyncIterator[tuple[CapturedZnode, ...]]


@asynccontextmanager
async def session(zookeepers: ZooKeepers, cluster: ClusterRecord) -> AsyncIterator[ZooKeeperTree]:
    """Closed whatever happens."""
    tree = await zookeepers.connect(cluster)
    try:
        yield tree
    finally:
        await tree.close()


async def paths_below(tree: ZooKeeperTree, folder: str) -> list[str]:
    """Paths of a znode's children; none if the znode does not exist."""
    return [f"{folder}/{name}" for name in await tree.children(folder) or ()]


async def present(tree: ZooKeeperTree, paths: Sequence[str]) -> dict[str, Znode]:
    """Those that exist, by path, in the order asked for."""
    found = zip(paths, await tree.get_many(paths), strict=True)
    return {path: znode for path, znode in found if znode is not None}


def object_in(znode: Znode | None) -> dict[str, Any]:
    """The JSON object in a znode; empty where there is none, or it cannot be parsed."""
    try:
        return as_object(json.loads(znode.data)) if znode is not None else {}
    except ValueError:
        return {}


async def objects_below(tree: ZooKeeperTree, folder: str) -> dict[str, dict[str, Any]]:
    """The JSON objects of a znode's children, by name; empty where one cannot be parsed. A child that is deleted
    meanwhile is left out.
    """
    found = await present(tree, await paths_below(tree, folder))
    return {path.rpartition("/")[2]: object_in(znode) for path, znode in found.items()}


def config_in(znode: Znode) -> dict[str, Any]:
    """What an entity's configuration sets (`/config/...`)."""
    return as_object(object_in(znode).get("config"))


def as_object(value: object) -> dict[str, Any]:
    """A value of JSON, where it is an object; empty where it is anything else."""
    return value if isinstance(value, dict) else {}
