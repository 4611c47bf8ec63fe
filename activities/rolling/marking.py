"""What a roll finds, and what it is to leave: the wanted file, the archive and the mark, all before anything changes.

A mark of the very same step was written by another attempt at it, whether dead or only slow: it is taken as it is. Any other
mark tells what an earlier roll left, of this migration or of one before, finished or not: what still holds is taken over.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from activities.claims import ensure_not_superseded
from activities.node_files import (
    archive_before,
    archive_original,
    ensure_unchanged,
    read_mark,
    read_original,
    sha256_of,
    write_mark,
)
from activities.ports.nodes import FileContent, NodeDriver
from activities.ports.ports import Ports
from activities.rolling.processes import ensure_nobody_serves
from domain.canaries import is_anything_made
from domain.cluster import NodeSpec, Role
from domain.configuration.file_changes import changes
from domain.configuration.properties import ENCODING, parse
from domain.contracts import StepRequest
from domain.errors import Transient, Unsafe
from domain.observed.observation import Process, RollMark
from domain.records import ClusterRecord
from domain.rolling.change import Making, Sources


@dataclass(frozen=True)
class Target:
    """The node that a step rolls, and everything needed to reach it."""

    cluster: ClusterRecord
    node: NodeSpec
    driver: NodeDriver

    @property
    def name(self) -> str:
        return self.cluster.spec.node_name(self.node.id)

    async def file(self) -> FileContent:
        file = await self.driver.read_file(self.node.properties_file)
        if file is None:
            raise Unsafe(f"{self.name}: {self.node.properties_file} does not exist any more. Restore it.")
        return file


@dataclass(frozen=True)
class Marked:
    """A roll that may begin: its mark lies on the node, and `wanted` is what the file is to be."""

    mark: RollMark
    wanted: FileContent


async def prepare_roll(request: StepRequest, target: Target, ports: Ports) -> "Prepared":
    """What a roll finds, and what it would write. Changes nothing."""
    process, found, left = await _as_found(target)
    return Prepared(process, found, left, await _make(request, target, found, left, ports))


async def mark_roll(request: StepRequest, target: Target, prepared: "Prepared", ports: Ports) -> Marked | None:
    """Archive what is there, and mark what is going to happen. `None` where it is not as it was prepared any more: somebody has
    restarted the node, or edited its file, or another attempt was faster.
    """
    process, found, left = await _as_found(target)
    if left is not None and left.step_id == request.step_id:
        return await resume_roll(request, target, left, ports)
    if (process.identity, found, left) != (prepared.process.identity, prepared.found, prepared.left):
        return None
    making = prepared.made
    _ensure_not_tried_before(target, left, request, process, found)
    if not process.is_running:
        await ensure_nobody_serves(target.node, target.name, target.driver, ports.metrics)
    await ensure_not_superseded(request, ports)
    await _archive(target, found, making)
    mark = _mark_of(request, target, process, found, left, making)
    await write_mark(target.driver, target.node.properties_file, mark, found)
    return Marked(mark, making.wanted)


async def _as_found(target: Target) -> tuple[Process, FileContent, RollMark | None]:
    """In this order: a mark that is read after its process tells of every attempt that may have restarted that."""
    process = await target.driver.process()
    return process, await target.file(), await read_mark(target.driver, target.node.properties_file)


async def resume_roll(request: StepRequest, target: Target, mark: RollMark, ports: Ports) -> Marked:
    """Go on where another attempt at this step has stopped. What it archived is there: the archive comes before the mark."""
    found = await target.file()
    sha256 = sha256_of(found.content)
    ensure_unchanged(target.node.properties_file, sha256, {mark.before_sha256, mark.written_sha256})
    if sha256 == mark.written_sha256:
        return Marked(mark, found)
    making = await _make(request, target, found, mark, ports)
    if sha256_of(making.wanted.content) != mark.written_sha256:
        # Made of another broker's file, which has changed, or by another version of this code.
        mark = mark.model_copy(update={"written_sha256": sha256_of(making.wanted.content), "changes": making.changes})
        await ensure_not_superseded(request, ports)
        await write_mark(target.driver, target.node.properties_file, mark, found)
    return Marked(mark, making.wanted)


@dataclass(frozen=True)
class _Made:
    """The wanted file, what it was made of, and how. `original`: the archived one, `None` where there is none (yet)."""

    wanted: FileContent
    making: Making
    original: FileContent | None
    is_found_original: bool
    changes: tuple[str, ...]


@dataclass(frozen=True)
class Prepared:
    """As it was found: process, file, and the mark that an earlier roll has left."""

    process: Process
    found: FileContent
    left: RollMark | None
    made: _Made

    @property
    def text(self) -> str:
        """That would be written."""
        return self.made.wanted.content.decode(ENCODING)


async def _make(request: StepRequest, target: Target, found: FileContent, left: RollMark | None, ports: Ports) -> _Made:
    """The wanted file. One that is found in its first stage is its own original: an older migration's would undo edits."""
    spec, node, stage = target.cluster.spec, target.node, request.step.stage
    text = found.content.decode(ENCODING)
    rolls = ports.kinds[request.kind].rolls
    is_original = rolls.is_original(text, spec.role(node.id))
    original = None if is_original else await read_original(target.driver, node.properties_file, left)
    sources = Sources(text, original.content.decode(ENCODING) if original is not None else None)
    if rolls.needs_sibling(sources, spec, node, stage):
        sources = Sources(text, sources.original, await _sibling(target, ports))
    made = rolls.make(sources, spec, node, stage)
    is_restored = rolls.restart(stage).is_restored and made.making is Making.ARCHIVE
    like = original if is_restored and original is not None else found
    wanted = FileContent(made.text.encode(ENCODING), like.mode, like.uid, like.gid)
    return _Made(wanted, made.making, original, is_original, changes(text, made.text))


async def _archive(target: Target, found: FileContent, made: _Made) -> None:
    """Nothing that is overwritten is lost, whoever wrote it."""
    if made.is_found_original:
        await archive_original(target.driver, target.node.properties_file, found)
    elif made.wanted.content != found.content:
        await archive_before(target.driver, target.node.properties_file, found)


def _mark_of(
    request: StepRequest, target: Target, process: Process, found: FileContent, left: RollMark | None, made: _Made
) -> RollMark:
    sha256 = sha256_of(found.content)
    was_interrupted = left is not None and _was_interrupted(left, process, sha256)
    is_written = left is not None and was_interrupted and left.stage == request.step.stage and sha256 == left.written_sha256
    original = found if made.is_found_original else made.original
    return RollMark(
        step_id=request.step_id,
        generation=request.generation,
        stage=request.step.stage,
        before_identity=process.identity or process.last_identity,
        before_sha256=left.before_sha256 if left is not None and is_written else sha256,
        written_sha256=sha256_of(made.wanted.content),
        original_sha256=sha256_of(original.content) if original is not None else None,
        changes=made.changes,
        has_edits=_has_edits(left, sha256, made),
        was_stopped=was_interrupted and not process.is_running,
        are_canaries_due=_are_canaries_due(request, target, left),
        marked_at=datetime.now(UTC),
        has_run=True,
    )


def _are_canaries_due(request: StepRequest, target: Target, left: RollMark | None) -> bool:
    """On the way back nothing is tried any more; but what an earlier roll owes has still to be removed."""
    is_owed = left is not None and left.are_canaries_due
    return is_owed or (
        is_anything_made(request.policy) and request.revert is None and target.cluster.spec.role(target.node.id) is Role.BROKER
    )


def _was_interrupted(left: RollMark, process: Process, sha256: str) -> bool:
    """An earlier roll got as far as the file, or found the node stopped already, and nothing has been started since."""
    is_its_file = sha256 == left.written_sha256 or (left.was_stopped and sha256 == left.before_sha256)
    return not left.is_proven and is_its_file and left.before_identity == process.last_identity


def _has_edits(left: RollMark | None, sha256: str, made: _Made) -> bool:
    """Whether the original lacks what others have written since. What is made of the original has lost that, by consent."""
    if made.is_found_original or made.making is Making.ARCHIVE or made.original is None:
        return False
    return left is None or left.has_edits or sha256 not in {left.written_sha256, left.before_sha256}


async def _sibling(target: Target, ports: Ports) -> str | None:
    """The file of another broker that had ZooKeeper. One node that is silent is passed over; all of them are not."""
    silence: Transient | None = None
    for broker in target.cluster.spec.brokers:
        if broker.id == target.node.id:
            continue
        try:
            file = await file_with_zookeeper(ports.drivers.driver(broker), broker.properties_file)
        except Transient as error:
            silence = error
            continue
        if file is not None:
            return file.content.decode(ENCODING)
    if silence is not None:
        raise silence
    return None


async def file_with_zookeeper(driver: NodeDriver, properties_file: str) -> FileContent | None:
    """A broker's file from when it had ZooKeeper: the original, or as it is, if that still has it."""
    file = await driver.read_file(properties_file)
    if file is None:
        return None
    has_zookeeper = "zookeeper.connect" in parse(file.content.decode(ENCODING))
    original = await read_original(driver, properties_file, await read_mark(driver, properties_file))
    return file if has_zookeeper else original


def _ensure_not_tried_before(
    target: Target, left: RollMark | None, request: StepRequest, process: Process, file: FileContent
) -> None:
    """Raise where a roll to this stage wrote this file, restarted the node, and the node still does not run in that stage."""
    if (
        left is not None
        and not left.is_proven
        and left.stage == request.step.stage
        and left.written_sha256 == sha256_of(file.content)
        and process.is_running
        and process.identity != left.before_identity
    ):
        raise Unsafe(
            f"{target.name} was restarted once from {target.node.properties_file}, which is in stage {left.stage}, but runs "
            "in another. It is not restarted again. Make sure that its start command reads this file, and restart it "
            "yourself."
        )
