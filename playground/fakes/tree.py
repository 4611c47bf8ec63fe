"""A ZooKeeper tree in memory: znodes with the versions and times that ZooKeeper would give them, and sessions on it."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from activities.ports.zookeeper import Access, CreateZnode, DeleteZnode, SetZnode, Znode, ZnodeChange
from domain.errors import Permanent, Transient
from playground.fakes.faults import Faults

IMPLIED = Znode(b"", 0, 0)
"""A parent that nobody created by name."""


class Znodes(MutableMapping[str, bytes]):
    """Data by path; setting the same data again changes nothing. `find` gives all of a znode. Each change is a zxid."""

    def __init__(self, znodes: Mapping[str, Znode] | None = None) -> None:
        self._kept: dict[str, Znode] = dict(znodes or {})
        self._zxid = 0

    def find(self, path: str) -> Znode | None:
        found = self._kept.get(path)
        return found if found is not None else (IMPLIED if path == "/" or self.children(path) else None)

    def children(self, path: str) -> tuple[str, ...]:
        prefix = path.rstrip("/") + "/"
        return tuple(sorted({p[len(prefix) :].partition("/")[0] for p in self._kept if p.startswith(prefix) and p != prefix}))

    def create(self, path: str, data: bytes, owner: int = 0) -> None:
        """A znode of version 0, also where there is one already: then that one is deleted first."""
        self._zxid += 1
        self._kept[path] = Znode(data, 0, owner, datetime.now(UTC), self._zxid)

    def age(self, path: str, created_at: datetime) -> None:
        """As if it had been made then."""
        self._kept[path] = replace(self._kept[path], created_at=created_at)

    def apply(self, changes: Sequence[ZnodeChange]) -> bool:
        """One transaction: all, or nothing when a znode is gone or has another version. Children may go before their parent,
        and come after it.
        """
        gone: set[str] = set()
        created: set[str] = set()
        versions: dict[str, int] = {}
        for change in changes:
            found = self.find(change.path)
            if isinstance(change, CreateZnode):
                parent = change.path.rpartition("/")[0] or "/"
                has_parent = parent in created or self.find(parent) is not None
                if found is not None or change.path in created or not has_parent or self.find(change.like) is None:
                    return False
                created.add(change.path)
                continue
            if found is None or versions.get(change.path, found.version) != change.version:
                return False
            if isinstance(change, SetZnode):
                versions[change.path] = change.version + 1
                continue
            if {f"{change.path}/{name}" for name in self.children(change.path)} - gone:
                raise Permanent(f"{change.path} in ZooKeeper: has children; nothing was changed")
            gone.add(change.path)
        for change in changes:
            if isinstance(change, SetZnode):
                self._set(change.path, change.data)
            elif isinstance(change, CreateZnode):
                self.create(change.path, change.data)
            else:
                self._kept.pop(change.path, None)
        return True

    def _set(self, path: str, data: bytes) -> None:
        found = self._kept.get(path, IMPLIED)
        self._zxid += 1
        self._kept[path] = replace(found, data=data, version=found.version + 1, modified_zxid=self._zxid)

    def __getitem__(self, path: str) -> bytes:
        return self._kept[path].data

    def __setitem__(self, path: str, data: bytes) -> None:
        if path not in self._kept:
            self.create(path, data)
        elif self._kept[path].data != data:
            self._set(path, data)

    def __delitem__(self, path: str) -> None:
        del self._kept[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


class FakeTree:
    """A `ZooKeeperTree`: one session on `znodes`. Asking for the same znode again is waiting: `pass_time` is called before."""

    def __init__(
        self,
        znodes: Znodes | Mapping[str, Znode],
        faults: Faults | None = None,
        pass_time: Callable[[], None] | None = None,
    ) -> None:
        self._znodes = znodes if isinstance(znodes, Znodes) else Znodes(znodes)
        self._faults = faults or Faults()
        self._pass_time = pass_time or (lambda: None)
        self._asked: set[str] = set()
        self.is_closed = False

    async def get(self, path: str) -> Znode | None:
        (found,) = await self.get_many((path,))
        return found

    async def get_many(self, paths: Sequence[str]) -> tuple[Znode | None, ...]:
        self._ensure_open(*paths)
        self._note(*paths)
        return tuple(self._znodes.find(path) for path in paths)

    async def children(self, path: str) -> tuple[str, ...] | None:
        self._ensure_open(path)
        self._note(f"children of {path}")
        return None if self._znodes.find(path) is None else self._znodes.children(path)

    async def access(self, path: str) -> tuple[Access, ...] | None:
        """Everybody may do everything, except with what is forbidden."""
        self._ensure_open(path)
        if self._znodes.find(path) is None:
            return None
        is_protected = path in self._faults.forbidden_znodes
        return (Access("digest", "kafka:hash", True),) if is_protected else (Access("world", "anyone", True),)

    def _note(self, *asked: str) -> None:
        if self._asked.intersection(asked):
            self._asked.clear()
            self._pass_time()
        self._asked.update(asked)

    async def sync(self) -> None:
        self._ensure_open("/")

    async def commit(self, changes: Sequence[ZnodeChange]) -> bool:
        self._ensure_open(*(change.path for change in changes))
        self._ensure_allowed(changes)
        is_committed = self._znodes.apply(changes)
        if self._faults.loses_commit_answer:
            self.is_closed = True
            raise Transient("ZooKeeper: no answer to the transaction: look whether it happened")
        return is_committed

    async def rehearse(self, changes: Sequence[SetZnode | DeleteZnode]) -> None:
        self._ensure_open(*(change.path for change in changes))
        self._ensure_allowed(changes)

    async def has_room(self, path: str) -> bool:
        self._ensure_open(path)
        return not self._faults.is_quota_reached

    async def close(self) -> None:
        self.is_closed = True

    def _ensure_open(self, *paths: str) -> None:
        if self.is_closed or self._faults.silent_zookeeper:
            raise Transient(f"{', '.join(paths)} in ZooKeeper: no answer")

    def _ensure_allowed(self, changes: Sequence[ZnodeChange]) -> None:
        forbidden = [change.path for change in changes if change.path in self._faults.forbidden_znodes]
        if forbidden:
            raise Permanent(f"{', '.join(forbidden)} in ZooKeeper: not allowed; name an identity that may write in digest_auth")
