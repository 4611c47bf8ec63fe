"""One copy, from the start of its servers to their end.

1. a fresh ZooKeeper on the copied files
2. the marker is written; the address in the controller's own file leads to it      (else: nothing is started)
3. what sessions owned goes; what this trial leaves out goes; brokers are there again
4. the controller starts; the tree's rows are written down meanwhile
5. stand-ins register with it, which begins the copy
6. wait: it dies, or only waits, or is in dual write and keeps ZooKeeper up to date
"""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from activities.adapters.secrets import EnvironmentAndFileSecrets
from activities.adapters.zookeeper import KazooEnsembles, KazooTree
from activities.observing.epochs import rule_of
from activities.observing.member_copy import FOLDER, SNAPSHOT, zxid_of
from activities.observing.present_ensemble import said_of_itself, zxid_in
from activities.observing.zookeeper_view import BROKER_IDS
from activities.zk_to_kraft.rehearsal import copied_tree
from activities.zk_to_kraft.rehearsal.messages import CONTROLLER, COPY, PROPERTIES, ROWS, Order
from activities.zk_to_kraft.rehearsal.servers import Server, Servers, java, linked, peak_heap_mib
from activities.zk_to_kraft.rehearsal.stand_ins import Refused, StandIns, listeners_in, rack_in
from activities.zk_to_kraft.rehearsal.wire import Registration
from domain.cluster import ZooKeeperSpec
from domain.configuration.properties import ENCODING, parse
from domain.errors import Permanent, Transient
from domain.rehearsal import Usage
from domain.zk_to_kraft.rehearsal.copy_log import DUAL_WRITE, CopyLog, read_log
from domain.zk_to_kraft.rehearsal.files import (
    CONTROLLER_PORT,
    HOST,
    ZOOKEEPER_PORT,
    chroot_of,
    logging_configuration,
    zookeeper_configuration,
)
from domain.zk_to_kraft.rehearsal.trials import Outcome, Trial

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC"}
POLL_SECONDS = 0.1
START_SECONDS = 60.0
CALL_SECONDS = 30.0
RETRIES = 3
MARGIN = timedelta(seconds=0.5)
"""Between what we know of a registration and what the controller has seen of it."""
ZOOKEEPER = (
    "-Dzookeeper.skipACL=yes",  # the copy is protected as the original is, and this is nobody's ZooKeeper
    "-Dzookeeper.forceSync=no",
    "-Dzookeeper.preAllocSize=64",
    "-Dzookeeper.admin.enableServer=false",
    "-Dzookeeper.jmx.log4j.disable=true",
    "-Djute.maxbuffer=67108864",
)
ZOOKEEPER_CLASS, CONTROLLER_CLASS = "org.apache.zookeeper.server.ZooKeeperServerMain", "kafka.Kafka"
FORMATTED = "formatted"


@dataclass
class Seen:
    """What a trial has shown besides its outcome."""

    log: CopyLog = field(default_factory=CopyLog)
    usage: Usage = field(default_factory=Usage)
    refused: str = ""
    is_out_of_time: bool = False


class Trials:
    """Makes trials in `directory`, one after the other. `cluster_id`: of the throw-away cluster, never the original's."""

    def __init__(self, directory: Path, order: Order, servers: Servers, cluster_id: str) -> None:
        self._directory, self._order, self._servers, self._cluster_id = directory, order, servers, cluster_id
        self._ensembles = KazooEnsembles(EnvironmentAndFileSecrets(), START_SECONDS, CALL_SECONDS)
        self.files_end = 0
        """The last transaction in the copied files."""
        (directory / "tmp").mkdir(mode=0o700, exist_ok=True)
        (directory / "log4j.properties").write_text(logging_configuration(), encoding="utf-8")
        (directory / "zoo.cfg").write_text(zookeeper_configuration(str(directory / "zookeeper")), encoding="utf-8")

    @property
    def brokers(self) -> dict[int, bytes]:
        """Those that live, with what they have registered."""
        return {id_: text.encode() for id_, text in self._order.brokers.items()}

    async def format(self) -> None:
        """The controller's storage, once, as Kafka's own tool makes it: every trial gets a copy of it."""
        command = (*self._java(256), "kafka.tools.StorageTool", "format", f"--cluster-id={self._cluster_id}")
        tool = self._start((*command, "--config", self._file, "--release-version", self._order.release), "format.log")
        code = await asyncio.to_thread(tool.wait, START_SECONDS)
        if code != 0:
            raise Permanent(f"the throw-away controller's storage could not be formatted: exit code {code}")
        (self._directory / CONTROLLER).rename(self._directory / FORMATTED)

    @asynccontextmanager
    async def zookeeper(self) -> AsyncIterator[KazooTree]:
        """A fresh ZooKeeper on the copied files, and a session of ours."""
        data = self._directory / "zookeeper"
        shutil.rmtree(data, ignore_errors=True)
        await asyncio.to_thread(linked, self._directory / COPY, data / FOLDER)
        command = (*self._java(self._order.limits.zookeeper_heap_mib, *ZOOKEEPER), ZOOKEEPER_CLASS)
        server = self._start((*command, str(self._directory / "zoo.cfg")), "zookeeper.log")
        try:
            tree = await self._connected(server)
            try:
                yield tree
            finally:
                await tree.close()
        finally:
            await asyncio.to_thread(server.end)

    async def _connected(self, server: Server) -> KazooTree:
        """By an address of our own making: what the controller's file says is looked at later."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if server.exit_code is not None:
                raise Permanent(
                    "the throw-away ZooKeeper does not start on the copied files: is their member's version the same?"
                )
            said = await said_of_itself(self._ensembles, f"{HOST}:{ZOOKEEPER_PORT}")
            zxid = zxid_in(said) if said else None
            if zxid is not None:
                self.files_end = min(zxid, await asyncio.to_thread(end_of, self._directory / "zookeeper" / FOLDER))
                return await self._ensembles.connect_to(_at(f"{HOST}:{ZOOKEEPER_PORT}{chroot_of(self._order.connect)}"))
            await asyncio.sleep(POLL_SECONDS)
        raise Transient(f"the throw-away ZooKeeper does not serve within {START_SECONDS:g} s")

    async def run(self, tree: KazooTree, left_out: frozenset[str]) -> tuple[Trial, Seen]:
        """A whole copy of this tree, from which the old sessions are gone, and where those brokers are that live."""
        marker = await copied_tree.marked(tree)
        for path in sorted(left_out):
            await copied_tree.leave_out(tree, path)
        others = copied_tree.stand_ins_for(left_out)
        await copied_tree.register(tree, others)
        address = parse((self._directory / PROPERTIES).read_text(encoding=ENCODING)).get("zookeeper.connect", "")
        checked = await self._ensembles.connect_to(_at(address))
        try:
            await copied_tree.ensure_marker(checked, marker)
        finally:
            await checked.close()
        return await self._copy(tree, left_out, others | self.brokers)

    async def _copy(self, tree: KazooTree, left_out: frozenset[str], brokers: dict[int, bytes]) -> tuple[Trial, Seen]:
        shutil.rmtree(self._directory / CONTROLLER, ignore_errors=True)
        shutil.copytree(self._directory / FORMATTED, self._directory / CONTROLLER)
        collections = self._directory / "gc.log"
        collections.unlink(missing_ok=True)
        options = (f"-Xlog:gc:file={collections}", f"-Dlog4j.configuration=file:{self._directory}/log4j.properties")
        heap = self._order.limits.controller_heap_mib
        controller = self._start((*self._java(heap, *options), CONTROLLER_CLASS, self._file), "controller.log")
        stand_ins = StandIns(HOST, CONTROLLER_PORT, [self._registration(id_, data) for id_, data in sorted(brokers.items())])
        seen = Seen()
        try:
            await copied_tree.write_rows(tree, self._directory / ROWS)
            trial = await self._watched(tree, controller, stand_ins, left_out, seen)
        finally:
            await stand_ins.leave()
            await asyncio.to_thread(controller.end)
        out_of_memory = seen.log.is_out_of_memory
        seen.usage = Usage(
            heap_mib=peak_heap_mib(collections),
            rss_mib=controller.peak_rss_mib,
            heap_given_mib=heap,
            was_out_of_memory=out_of_memory,
        )
        return trial, seen

    async def _watched(
        self, tree: KazooTree, controller: Server, stand_ins: StandIns, left_out: frozenset[str], seen: Seen
    ) -> Trial:
        """Until the copy is over, or will never be."""
        registering = asyncio.create_task(stand_ins.register())
        watching = asyncio.create_task(self._outcome(tree, controller, registering, seen))
        try:
            async with asyncio.timeout(self._order.limits.round_deadline.total_seconds()):
                outcome = await watching
        except TimeoutError:
            seen.is_out_of_time = True
            outcome = Outcome.HUNG if seen.log.has_claimed else Outcome.STUCK
        finally:
            registering.cancel()
            await asyncio.gather(registering, return_exceptions=True)
        named = frozenset(f"{BROKER_IDS}/{id_}" for id_ in seen.log.unregistered) if outcome is Outcome.STUCK else frozenset()
        return Trial(left_out, outcome, named)

    async def _outcome(self, tree: KazooTree, controller: Server, registering: "asyncio.Task[int]", seen: Seen) -> Outcome:
        registered_at: datetime | None = None
        offsets: set[int] = set()
        while True:
            is_gone = controller.exit_code is not None
            seen.log = await asyncio.to_thread(self._log)
            if is_gone:
                return Outcome.DIED
            if registering.done() and registered_at is None:
                seen.refused = _why_refused(registering)
                if seen.refused:
                    return Outcome.STUCK
                registered_at = datetime.now(UTC).replace(tzinfo=None)
            if seen.log.state == DUAL_WRITE:
                offsets.add((await rule_of(tree)).offset or 0)
                if len(offsets - {0}) > 1:
                    return Outcome.COPIED
            elif registered_at is not None and self._is_stuck(seen.log, registered_at):
                return Outcome.HUNG if seen.log.has_claimed else Outcome.STUCK
            await asyncio.sleep(POLL_SECONDS)

    def _is_stuck(self, log: CopyLog, registered_at: datetime) -> bool:
        """Nothing has moved since all brokers were there, and it says what it waits for, or what it fails at.

        After its claim it is silent while it copies, and one failure may be a passing one.
        """
        if log.has_claimed and log.retries < RETRIES:
            return False
        since = max((registered_at, *(at for at, _ in log.states)))
        waited = datetime.now(UTC).replace(tzinfo=None) - since
        has_said = log.complained_at is not None and log.complained_at > registered_at + MARGIN
        return has_said and waited > self._order.limits.stuck_after

    def _log(self) -> CopyLog:
        return read_log((self._directory / "controller.log").read_text(encoding="utf-8", errors="replace").splitlines())

    def _registration(self, broker_id: int, znode: bytes) -> Registration:
        listeners = listeners_in(znode, self._order.listener)
        return Registration(broker_id, self._cluster_id, listeners, rack_in(znode))

    @property
    def _file(self) -> str:
        return str(self._directory / PROPERTIES)

    def _java(self, heap_mib: int, *options: str) -> tuple[str, ...]:
        return (*java(self._order.java, heap_mib, self._directory / "tmp", *options), "-cp", f"{self._order.libs}/*")

    def _start(self, command: tuple[str, ...], output: str) -> Server:
        return self._servers.start(command, self._directory / output, ENVIRONMENT, self._directory)


def end_of(folder: Path) -> int:
    """The last transaction that a server can have loaded: it names the snapshot so that it makes before it serves.

    What `srvr` says is too new once sessions of the copy have expired in it, each by a transaction of its own; this is, where a
    copied snapshot was torn, and passed over. The older of both holds.
    """
    names = (path.name for path in folder.iterdir())
    return max((zxid_of(name) for name in names if SNAPSHOT.fullmatch(name)), default=0)


def _at(address: str) -> ZooKeeperSpec:
    return ZooKeeperSpec(connect=address)


def _why_refused(registering: "asyncio.Task[int]") -> str:
    error = registering.exception()
    if error is None:
        return ""
    if isinstance(error, Refused):
        return str(error)
    raise error
