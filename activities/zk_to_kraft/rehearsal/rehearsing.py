"""A rehearsal of Kafka's copy: on a copy of ZooKeeper, with a throw-away controller, away from the cluster.

    1. a room is opened: no way out of it, and whatever is in it ends with us            (else: refused, nothing was copied)
    2. how new the ensemble is, is asked (`present_ensemble`); a member's files are copied
    3. the controller's file is written, of what our controllers would get
    4. in the room: copies are tried, until it is known which znodes stop them (`activities.zk_to_kraft.rehearsal`)
    5. the copy that passed is compared with the tree that it was made of
    6. the room is left: everything of it is gone

The cluster is only read: some znodes, what ZooKeeper's servers say of themselves, the files of one, a broker's properties and
perhaps a controller's.
"""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from temporalio import activity

from activities.check_directories import enter, sweep
from activities.check_heartbeat import Beat
from activities.node_files import METADATA_LOG
from activities.observing.member_copy import copy_member
from activities.observing.present_ensemble import Newest, present_ensemble
from activities.ports.checks import CheckRunner, Comparison
from activities.ports.nodes import NodeDrivers, ZooKeeperMembers
from activities.ports.zookeeper import CapturedZnode, ZooKeepers
from activities.zk_to_kraft.rehearsal.messages import (
    CONTROLLER,
    COPY,
    PASSED,
    PROPERTIES,
    ROWS,
    Copied,
    Ended,
    Failed,
    NotIsolated,
    Order,
    Ready,
    Trying,
)
from domain.checks.check import SUPPORTED_RELEASE
from domain.cluster import ClusterSpec, ZooKeeperMemberSpec
from domain.configuration.properties import ENCODING, parse
from domain.decisions import Finding
from domain.drift.report import CheckName, CheckResult, Verdict
from domain.errors import KeeperlessError, Permanent, Transient
from domain.records import ClusterRecord
from domain.rehearsal import Equality, RehearsalLimits, RehearsalReport
from domain.zk_to_kraft.rehearsal.files import connect_of, controller_properties, inter_broker_listener
from domain.zk_to_kraft.rehearsal.outcome import (
    advice_of,
    age_unknown,
    cut_short,
    differences_of,
    findings_of,
    refusal,
    unexplained,
)
from domain.zk_to_kraft.rehearsal.trials import Cleared, Outcome, cleared, proven

NO_MEMBERS = (
    "it is unknown where the files of a ZooKeeper server are: name one in zookeeper.members of the cluster (host, data_dir, "
    "and data_log_dir if it has one)"
)
LIMITS = RehearsalLimits()
SILENCE = timedelta(minutes=5)
"""What may come to a round's own limit: starts of servers, reading the tree."""
TRY_ELSEWHERE = "rehearse on a machine with more cores and memory, nearer to ZooKeeper's files, or while it is idle"
LOOKING = timedelta(minutes=10)
"""For the look and the plan after it, of the time that an activity has."""
COMPARISON_SECONDS = 300.0
"""Of the rehearsal's time, after the last round."""
WRITTEN_SECONDS = 1.0
"""A majority has written what the leader has processed; who follows behind that has it in his files so much later."""
OnProgress = Callable[[int, str, int, int], None]
"""Which round, what is done, how many parts of it are done, and how many there are. Called in any thread."""


class RehearsalRoom(Protocol):
    """Where a copy is rehearsed, and nothing of the world can be reached (`activities.zk_to_kraft.rehearsal.messages`)."""

    async def order(self, order: Order) -> None:
        """Begin. The copied files, and the controller's, lie in the room's directory."""

    async def told(self) -> Ready | NotIsolated | Trying | Failed | Ended:
        """The next message from the room. `Transient` where the room is gone."""


class RehearsalRooms(Protocol):
    """Opens rooms on the machine of this worker."""

    def open(self, directory: Path) -> AbstractAsyncContextManager[RehearsalRoom]:
        """A room that works in `directory`, which is private. When it is left, or whoever opened it dies, all that runs in it
        ends, and the directory is removed. `Permanent`, with the reason, where this machine cannot isolate one.
        """

    def java(self, home: str | None) -> str:
        """This machine's `java`. `Permanent` where there is none."""

    def libs(self, kafka_home: str) -> str:
        """This machine's folder of Kafka's jars. `Permanent` where there is none."""


@dataclass(frozen=True)
class RehearsalPorts:
    """What a rehearsal reaches the world through. Without `runner` nothing is compared."""

    drivers: NodeDrivers
    members: ZooKeeperMembers
    zookeepers: ZooKeepers
    rooms: RehearsalRooms
    runner: CheckRunner | None = None


def _silent(_round: int, _stage: str, _done: int, _total: int) -> None: ...


async def rehearse(
    cluster: ClusterRecord,
    ports: RehearsalPorts,
    work: Path,
    limits: RehearsalLimits = LIMITS,
    on_progress: OnProgress = _silent,
) -> RehearsalReport:
    """Rehearse the copy of this cluster. `work`: where private directories may be made.

    Cancelled, or killed, it leaves no process and no file. What makes it impossible is a refusal, with the reason.
    """
    place = await asyncio.to_thread(enter, work, "rehearsal", str(uuid4()))
    try:
        async with asyncio.timeout(limits.deadline.total_seconds()) as limit:
            return await Rehearsal(cluster.spec, cluster, ports, place.directory, limits, on_progress).report()
    except KeeperlessError as error:
        return refusal(str(error))
    except TimeoutError:
        if not limit.expired():
            raise
        return refusal(f"it was not over after {limits.deadline}, and was cut off: {TRY_ELSEWHERE}")
    finally:
        await asyncio.shield(asyncio.to_thread(place.leave))


async def rehearse_beating(
    cluster: ClusterRecord, ports: RehearsalPorts, work: Path, limits: RehearsalLimits = LIMITS
) -> RehearsalReport:
    """The same inside an activity, with heartbeats that say how far it is. What dead attempts have left is removed first.

    It ends while there is time to publish what it has found: an attempt after another has less of it.
    """
    await asyncio.to_thread(sweep, work)
    beat = Beat()
    async with beat.beating():
        return await rehearse(cluster, ports, work, in_time(limits), beat.note)


def in_time(limits: RehearsalLimits) -> RehearsalLimits:
    """With a deadline that leaves this activity the time to publish."""
    info = activity.info()
    if info.schedule_to_close_timeout is None:
        return limits
    left = info.scheduled_time + info.schedule_to_close_timeout - datetime.now(UTC) - LOOKING
    return limits.model_copy(update={"deadline": min(limits.deadline, max(left, timedelta(seconds=1)))})


@dataclass(frozen=True)
class Rehearsal:
    """One rehearsal. `directory`: private, and removed by whoever gave it."""

    spec: ClusterSpec
    cluster: ClusterRecord
    ports: RehearsalPorts
    directory: Path
    limits: RehearsalLimits
    on_progress: OnProgress

    async def report(self) -> RehearsalReport:
        if not self.spec.ensemble.members:
            raise Permanent(NO_MEMBERS)
        order = partial(Order, libs=self._libs(), java=self._java(), connect=connect_of(self.spec), limits=self.limits)
        async with self.ports.rooms.open(self.directory) as room:
            begun = time.monotonic()
            self.on_progress(0, "copying the files of ZooKeeper", 0, 1)
            present = await present_ensemble(self.ports.zookeepers, self.cluster)
            await asyncio.sleep(WRITTEN_SECONDS)
            member, copied = await self._copy_files(self.directory / COPY)
            listener, release = await self._write_properties()
            seconds = {"files": _since(begun)}
            until = self.limits.deadline.total_seconds() - _since(begun) - COMPARISON_SECONDS
            order = partial(order, newest_zxid=present.newest.zxid, brokers=present.brokers, seconds=until)
            await room.order(order(listener=listener, release=release))
            ended = await self._ended(room)
            begun = time.monotonic()
            equality = await self._equality(self.directory / PASSED, ended)
            seconds |= {**ended.seconds, "comparison": _since(begun)}
        about = {"copied_from": f"{member.host}:{member.data_dir}", "copied_bytes": copied, "seconds": seconds}
        return report_of(ended, equality, self.spec.ensemble.connect, present.newest).model_copy(update=about)

    async def _write_properties(self) -> tuple[str, str]:
        """The controller's file; the inter-broker listener in it, and the release that its storage is formatted for."""
        broker, properties = await self._properties(str(self.directory / CONTROLLER))
        await asyncio.to_thread(_write_private, self.directory / PROPERTIES, properties)
        release = parse(broker).get("inter.broker.protocol.version", SUPPORTED_RELEASE).strip()
        return inter_broker_listener(parse(properties)), release

    def _libs(self) -> str:
        return self.ports.rooms.libs(self.limits.kafka_home or self.spec.controllers[0].kafka_home)

    def _java(self) -> str:
        return self.ports.rooms.java(self.limits.java_home or self.spec.controllers[0].environment.get("JAVA_HOME"))

    async def _copy_files(self, target: Path) -> tuple[ZooKeeperMemberSpec, int]:
        """Of the first member whose files can be had."""
        refused = []
        for member in self.spec.ensemble.members:
            try:
                return member, await copy_member(self.ports.members.machine(member), member, target)
            except KeeperlessError as error:
                refused.append(str(error))
        raise Permanent(f"no server's files of ZooKeeper can be copied: {'; '.join(refused)}")

    async def _properties(self, log_dir: str) -> tuple[str, str]:
        """A broker's file, and the controller's that is made of it."""
        broker, controller = self.spec.brokers[0], self.spec.controllers[0]
        theirs = await self.ports.drivers.driver(broker).read_file(broker.properties_file)
        if theirs is None:
            raise Permanent(f"{broker.properties_file} of broker-{broker.id} does not exist: restore it")
        base = None
        if controller.base_properties is not None:
            file = await self.ports.drivers.driver(controller).read_file(controller.base_properties)
            if file is None:
                raise Permanent(f"base_properties {controller.base_properties} does not exist on controller {controller.id}")
            base = file.content.decode(ENCODING)
        text = theirs.content.decode(ENCODING)
        return text, controller_properties(self.spec, base, text, log_dir)

    async def _ended(self, room: RehearsalRoom) -> Ended:
        while True:
            told = await self._told(room)
            if isinstance(told, Trying):
                self.on_progress(told.round, told.stage, 0, 1)
            elif isinstance(told, Failed):
                raise Permanent(told.why)
            elif isinstance(told, Ended):
                return told

    async def _told(self, room: RehearsalRoom) -> object:
        """The next thing; every part of a rehearsal has its own limit, so who is silent for longer is stuck."""
        limit = self.limits.round_deadline + SILENCE
        try:
            async with asyncio.timeout(limit.total_seconds()):
                return await room.told()
        except TimeoutError as error:
            raise Transient(f"the rehearsal reported nothing for {limit.total_seconds():g} s: it was ended") from error

    async def _equality(self, passed: Path, ended: Ended) -> Equality | None:
        """`None` where no copy has passed, or nobody compares."""
        if self.ports.runner is None or all(trial.outcome is not Outcome.COPIED for trial in ended.trials):
            return None
        tell = partial(self.on_progress, len(ended.trials))
        log, session = passed / CONTROLLER / METADATA_LOG, str(uuid4())
        try:
            tell("reading where the copy ends in the quorum's log", 0, 1)
            end = await self.ports.runner.end_of_copy(log)
            if end is None:
                raise Transient("the throw-away quorum's log shows no copy")
            tell("keeping the rows of ZooKeeper", 0, 1)
            await self.ports.runner.keep(rows_in(passed / ROWS), passed / "staged")
            asked = Comparison(
                id=session,
                staged=passed / "staged",
                log=log,
                cut=end.offset,
                end=end.offset,
                out=passed / "out",
                check=CheckName.COPY,
            )
            tell("starting the comparison", 0, 1)
            return equality_of(await self.ports.runner.compare(asked, session, tell))
        except KeeperlessError as error:
            return Equality(verdict=Verdict.INCONCLUSIVE, not_read=(str(error),))


async def rows_in(path: Path) -> AsyncIterator[tuple[CapturedZnode, ...]]:
    """What `activities.zk_to_kraft.rehearsal.copied_tree.write_rows` has written."""
    with path.open(encoding="utf-8") as file:
        while line := await asyncio.to_thread(file.readline):
            yield tuple(CapturedZnode(where, base64.b64decode(data), zxid) for where, data, zxid in json.loads(line))


def _since(begun: float) -> float:
    return round(time.monotonic() - begun, 3)


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text, encoding=ENCODING)


def equality_of(compared: CheckResult) -> Equality:
    return Equality(verdict=compared.verdict, counts=compared.counts, differences=compared.first, not_read=compared.not_read)


def report_of(ended: Ended, equality: Equality | None, connect: str, newest: Newest) -> RehearsalReport:
    """What all trials of a rehearsal together say."""
    way = cleared(ended.candidates, ended.trials)
    copied, found = ended.copied, findings_of(proven(ended.candidates, ended.trials), connect)
    guilty = way.left_out & {finding.object for finding in found}
    return RehearsalReport(
        has_passed=way.has_passed and not way.left_out,
        has_passed_in_part=way.has_passed and bool(way.left_out),
        left_out=tuple(sorted(guilty or way.left_out)) if way.has_passed else (),
        rounds=len(ended.trials),
        records=copied.records,
        copy_seconds=copied.copy_seconds if way.has_passed else None,
        seconds_without_controller=copied.seconds_without_controller if way.has_passed else None,
        controller=copied.usage,
        advice=advice_of(copied.usage),
        findings=(
            *found,
            *(() if way.has_passed else (cut_short(ended.cut) if ended.cut else _stopped(ended),)),
            *((_of_no_znode_alone(way, copied),) if way.has_passed and way.left_out and not guilty else ()),
            *differences_of(equality, [finding.object for finding in found]),
            *((age_unknown(newest.why_unsure, newest.zxid),) if newest.why_unsure else ()),
        ),
        equality=equality,
    )


def _of_no_znode_alone(way: Cleared, copied: Copied) -> Finding:
    paths = ", ".join(sorted(way.left_out))
    what = f"with the cluster as it is the copy stopped. It passed without {paths}, and with each of them"
    return unexplained(what, copied.told)


def _stopped(ended: Ended) -> Finding:
    last = ended.trials[-1].outcome
    what = {
        Outcome.STUCK: f"the copy never began: {ended.copied.waits or 'nothing moved'}",
        Outcome.HUNG: "everything was copied, and dual write never began",
    }.get(last, "the copy died")
    if ended.copied.usage.was_out_of_memory:
        what = f"{ended.copied.usage.heap_given_mib} MiB of heap were not enough"
    return unexplained(what, ended.copied.told)
