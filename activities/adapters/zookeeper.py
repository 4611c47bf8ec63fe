"""ZooKeeper through kazoo: sessions that own nothing and are closed soon: after one observation, or one transaction.

kazoo runs a connection thread and two workers for each session; all waiting for them happens in threads of ours.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    BadVersionError,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    QuotaExceededError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.interfaces import IAsyncResult
from kazoo.protocol.states import ZnodeStat
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Permissions

from activities.ports.stores import SecretStore
from activities.ports.zookeeper import Access, CreateZnode, DeleteZnode, SetZnode, Znode, ZnodeChange
from domain.cluster import ZooKeeperSpec, host_and_port, servers_in
from domain.errors import Permanent, Transient
from domain.records import ClusterRecord

T = TypeVar("T")

IN_FLIGHT = 100
"""Reads sent before the first answer is awaited. A server answers a session's requests in order."""

NEVER_THIS_VERSION = 10**6
NOBODYS = "keeperless-rehearsal"
"""Beyond a znode's version it is none that it has, nor one that it will have soon."""

NOT_WHITELISTED = "is not in the whitelist"
"""How a server refuses a word (NettyServerCnxn.java, CommandExecutor.java). There is no code for it."""

QUIET = logging.getLogger("keeperless.kazoo")
"""kazoo logs every failed attempt to connect; what matters reaches the caller as an error."""
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


class KazooTree:
    """A `ZooKeeperTree` on a connected client. `call_seconds` limits each call; for `get_many`, each hundred znodes."""

    def __init__(self, client: KazooClient, ensemble: str, call_seconds: float) -> None:
        self._client = client
        self._ensemble = ensemble
        self._call_seconds = call_seconds

    async def get(self, path: str) -> Znode | None:
        (znode,) = await self.get_many((path,))
        return znode

    async def get_many(self, paths: Sequence[str]) -> tuple[Znode | None, ...]:
        found: list[Znode | None] = []
        for start in range(0, len(paths), IN_FLIGHT):
            batch = paths[start : start + IN_FLIGHT]
            found += await asyncio.to_thread(self._read, self._client.get_async, batch, _znode)
        return tuple(found)

    async def children(self, path: str) -> tuple[str, ...] | None:
        (names,) = await asyncio.to_thread(self._read, self._client.get_children_async, (path,), _names)
        return names

    async def access(self, path: str) -> tuple[Access, ...] | None:
        (found,) = await asyncio.to_thread(self._read, self._client.get_acls_async, (path,), _access)
        return found

    async def commit(self, changes: Sequence[ZnodeChange]) -> bool:
        return await asyncio.to_thread(self._commit, changes)

    async def rehearse(self, changes: Sequence[SetZnode | DeleteZnode]) -> None:
        """A last version that cannot be fails the whole; before that, change by change, the server has looked at permissions
        (PrepRequestProcessor.pRequest2Txn: the access list first, then the version)."""
        if changes:
            await self.commit([*changes[:-1], replace(changes[-1], version=changes[-1].version + NEVER_THIS_VERSION)])

    async def has_room(self, path: str) -> bool:
        """As in `rehearse`, before the last change fails the server has looked at the first one, and at quotas first of all
        (PrepRequestProcessor.pRequest2TxnCreate, since ZooKeeper 3.7)."""
        return await asyncio.to_thread(self._has_room, path)

    async def close(self) -> None:
        await asyncio.to_thread(_close, self._client)

    async def sync(self) -> None:
        """Make the server that we are connected to catch up with the ensemble's leader, so that reads are not stale."""
        await asyncio.to_thread(self._read, self._client.sync_async, ("/",), lambda path: path)

    def _commit(self, changes: Sequence[ZnodeChange]) -> bool:
        """One transaction. kazoo never raises for a refused one: each result is looked at.

        kazoo keeps what it could not send for its next connection. So with an answer lost the session is given up: what was
        not sent yet is never sent, and only what was on its way can still arrive.
        """
        paths = ", ".join(change.path for change in changes)
        if not self._client.connected:
            raise Transient(f"{paths} in ZooKeeper {self._ensemble}: no session, nothing was sent")
        protections = self._protections([change.like for change in changes if isinstance(change, CreateZnode)])
        if protections is None:
            return False
        results = self._results(_sent(self._client, changes, protections), paths)
        return _is_committed(results, f"{paths} in ZooKeeper {self._ensemble}")

    def _has_room(self, path: str) -> bool:
        transaction = self._client.transaction()
        transaction.create(f"{path}/{NOBODYS}", acl=OPEN_ACL_UNSAFE)
        transaction.check(path, NEVER_THIS_VERSION)
        return not any(isinstance(result, QuotaExceededError) for result in self._results(transaction.commit_async(), path))

    def _results(self, sent: IAsyncResult, paths: str) -> list[object]:
        try:
            results: list[object] = sent.get(timeout=self._call_seconds)
        except (KazooException, KazooTimeoutError) as error:
            _close(self._client)
            lost = f"no answer to the transaction on {paths} ({type(error).__name__}): check whether it happened"
            raise Transient(f"ZooKeeper {self._ensemble}: {lost}") from error
        return results

    def _protections(self, paths: Sequence[str]) -> dict[str, list[ACL]] | None:
        """The access lists of these znodes; `None` when one does not exist. A server may show them without their secrets."""
        wanted = list(dict.fromkeys(paths))
        found = dict(zip(wanted, self._read(self._client.get_acls_async, wanted, lambda answer: list(answer[0])), strict=True))
        for path, acls in found.items():
            if any(acl.id.scheme == "digest" and acl.id.id.endswith(":x") for acl in acls or ()):
                raise Permanent(
                    f"{path} in ZooKeeper {self._ensemble}: its access list is hidden; name an identity with all rights"
                )
        return None if None in found.values() else {path: acls for path, acls in found.items() if acls is not None}

    def _read(self, send: Callable[[str], IAsyncResult], paths: Sequence[str], parse: Callable[[Any], T]) -> list[T | None]:
        deadline = time.monotonic() + self._call_seconds
        pending = [(path, send(path)) for path in paths]
        return [self._answer(path, answer, deadline, parse) for path, answer in pending]

    def _answer(self, path: str, answer: IAsyncResult, deadline: float, parse: Callable[[Any], T]) -> T | None:
        try:
            return parse(answer.get(timeout=max(0.0, deadline - time.monotonic())))
        except NoNodeError:
            return None
        except (NoAuthError, AuthFailedError) as error:
            message = f"{path} in ZooKeeper {self._ensemble}: not allowed; name an identity that may read in digest_auth"
            raise Permanent(message) from error
        except KazooTimeoutError as error:
            raise Transient(f"{path} in ZooKeeper {self._ensemble}: no answer in {self._call_seconds:g} s") from error
        except KazooException as error:
            raise Transient(f"{path} in ZooKeeper {self._ensemble}: {type(error).__name__}") from error


class KazooEnsembles:
    """`ZooKeepers`. Both limits are in seconds; connecting includes the digest identity and one sync with the leader."""

    def __init__(self, secrets: SecretStore, connect_seconds: float = 5.0, call_seconds: float = 5.0) -> None:
        self._secrets = secrets
        self._connect_seconds = connect_seconds
        self._call_seconds = call_seconds

    async def connect(self, cluster: ClusterRecord) -> KazooTree:
        return await self.connect_to(cluster.spec.ensemble)

    async def connect_to(self, spec: ZooKeeperSpec) -> KazooTree:
        client = self._client(spec)
        try:
            await asyncio.to_thread(_start, client, spec.connect, self._connect_seconds)
            await asyncio.to_thread(_refuse_standalone, client, spec)
            tree = KazooTree(client, spec.connect, self._call_seconds)
            await tree.sync()
        except BaseException:
            await asyncio.to_thread(_close, client)
            raise
        return tree

    async def ask(self, server: str, word: str) -> str | None:
        """In plain text, past kazoo. A server answers and closes the connection (ServerCnxn.java)."""
        host, port = host_and_port(server)
        try:
            async with asyncio.timeout(self._call_seconds):
                reader, writer = await asyncio.open_connection(host, port)
                try:
                    writer.write(word.encode("ascii"))
                    answer = (await reader.read()).decode(errors="replace")
                finally:
                    writer.close()
        except OSError as error:
            raise Transient(f"ZooKeeper {server}: no answer to {word} ({type(error).__name__})") from error
        return None if NOT_WHITELISTED in answer else answer

    def _client(self, spec: ZooKeeperSpec) -> KazooClient:
        """kazoo gives one server a session timeout divided by the number of servers: a short one finds a living server in time.

        Our sessions own nothing, so their early end harms nobody. The server raises it to its own minimum.
        """
        auth = [("digest", self._secrets.resolve(spec.digest_auth).reveal())] if spec.digest_auth else None
        timeout = min(spec.session_timeout_seconds, self._connect_seconds)
        return KazooClient(hosts=spec.connect, timeout=timeout, auth_data=auth, logger=QUIET)


def _start(client: KazooClient, ensemble: str, seconds: float) -> None:
    client.start_async().wait(timeout=seconds)
    if not client.connected:
        raise Transient(f"ZooKeeper {ensemble}: no session in {seconds:g} s")


def _refuse_standalone(client: KazooClient, spec: ZooKeeperSpec) -> None:
    """A member that has lost its ensemble serves a tree of its own: nothing is believed of that, and nothing written to it.
    Where it does not let itself be asked nothing is known, as of any other."""
    if len(servers_in(spec.connect)) < 2:
        return
    try:
        answer = client.command(b"srvr")
    except (KazooException, OSError):
        return
    if "Mode: standalone" in answer:
        raise Transient(
            f"ZooKeeper {spec.connect}: a server of it is standalone, and has a tree of its own (`echo srvr | nc` each). "
            "Stop that one, correct its zoo.cfg, and start it with an empty version-2 directory"
        )


def _close(client: KazooClient) -> None:
    """Always frees threads and sockets. A server that does not answer the goodbye expires the session itself."""
    try:
        client.stop()
    finally:
        client.close()


def _znode(answer: tuple[bytes | None, ZnodeStat]) -> Znode:
    """Kafka creates parents without any data, which is `None` here."""
    data, stat = answer
    created = datetime.fromtimestamp(stat.ctime / 1000, tz=UTC)
    return Znode(data or b"", stat.version, stat.ephemeralOwner, created, stat.mzxid)


def _sent(client: KazooClient, changes: Sequence[ZnodeChange], protections: Mapping[str, list[ACL]]) -> IAsyncResult:
    transaction = client.transaction()
    for change in changes:
        if isinstance(change, SetZnode):
            transaction.set_data(change.path, change.data, change.version)
        elif isinstance(change, CreateZnode):
            transaction.create(change.path, change.data, acl=protections[change.like])
        elif isinstance(change, DeleteZnode):
            transaction.delete(change.path, change.version)
    return transaction.commit_async()


def _is_committed(results: Sequence[object], what: str) -> bool:
    """Of a refused transaction one result says why; those before it say "rolled back", those after it "inconsistency"."""
    refusals = [result for result in results if isinstance(result, Exception)]
    if any(isinstance(refusal, NoAuthError) for refusal in refusals):
        raise Permanent(f"{what}: not allowed; name an identity that may write in digest_auth")
    if any(isinstance(refusal, NotEmptyError) for refusal in refusals):
        raise Permanent(f"{what}: one to be deleted has children; nothing was changed")
    if any(isinstance(refusal, NoNodeError | BadVersionError | NodeExistsError) for refusal in refusals):
        return False
    if refusals:
        raise Transient(f"{what}: refused with {', '.join(type(refusal).__name__ for refusal in refusals)}")
    return True


def _names(answer: list[str]) -> tuple[str, ...]:
    return tuple(sorted(answer))


def _access(answer: tuple[list[ACL], ZnodeStat]) -> tuple[Access, ...]:
    return tuple(Access(acl.id.scheme, acl.id.id, acl.perms == Permissions.ALL) for acl in answer[0])
