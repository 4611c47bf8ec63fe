"""Of a node that is down: how its process has ended, and what to do."""

import re
from collections.abc import Sequence
from dataclasses import replace

from domain.checks.seen import some
from domain.cluster import Role
from domain.diagnosis.causes.death_signs import signs_at_death
from domain.diagnosis.logs.catalogue import THEN_START
from domain.diagnosis.logs.endings import (
    CURT,
    CUT_OFF,
    DISK_FULL,
    KILLED,
    NO_ROOM_BELOW,
    NO_SPACE,
    ROOM_NOW,
    SILENT,
    STOPPED,
    UNWRITTEN,
    Ending,
    death_in,
    ending_of,
    ending_of_started,
)
from domain.diagnosis.logs.lines import before_this_process
from domain.diagnosis.machines.bad_signs import signed
from domain.health.files import is_startable
from domain.health.liveness import is_known_to_have_run
from domain.observed.observation import NodeView, is_started_by_us
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.case import Cause, Looked, cause, said_since_started
from domain.zk_to_kraft.causes.file import NOT_WITHOUT_DATA, without_data
from domain.zk_to_kraft.causes.lacks import before_more_heap
from domain.zk_to_kraft.causes.unreached import OF_THE_ENSEMBLE, word_of_servers
from domain.zk_to_kraft.causes.unready import (
    EXPLAINED_BY,
)
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode


def endings_of_dead(looked: Looked) -> dict[int, Ending]:
    """Of nodes that are down and in nobody's hands."""
    dead = (node.id for node in looked.situation.nodes if node.mode in {BrokerMode.DOWN, ControllerMode.DOWN})
    return {i: ending_of_dead(looked, looked.observation.node(i)) for i in dead if looked.name(i) not in looked.kept}


def _begun(looked: Looked, view: NodeView) -> Cause:
    """What stands in its output last may be of the process that has just come, and says nothing of an end. Where the one before
    it failed, this one may do the same: somebody may start it again and again."""
    name, lines = looked.name(view.id), looked.hints.logs.get(view.id) or view.last_output
    failed = death_in(lines) or death_in(before_this_process(lines))
    before = f". The one before it has ended so: {failed.quote}" if failed is not None else ""
    again = f" Where it ends again: {failed.told.fix}" if failed is not None else ""
    return cause(
        looked,
        WaitReason.NODE_NOT_READY,
        name,
        *EXPLAINED_BY[looked.spec.role(view.id)],
        WaitReason.NODE_DOWN,
        observed=f"it did not run when it was looked at, and was started while its log was read{before}",
        expected=f"{name} serves",
        fix=f"Give it a minute, and ask again.{again}",
    )


def down(looked: Looked, view: NodeView, ending: Ending) -> Cause:
    if view.id in looked.hints.begun:
        return _begun(looked, view)
    name, lacks = looked.name(view.id), ""
    if _is_unformatted(looked, view):
        ending = UNFORMATTED
    elif not view.is_unstarted:
        lacks = without_data(looked, view)
        ending = _by_a_step(ending) if _is_stopped_by_us(view, ending) else _as_far_as_written(looked, view, ending)
    death = death_in(_output(looked, view))
    words, fix = word_of_servers(looked) if death is not None and death.told.name in OF_THE_ENSEMBLE else ("", "")
    gone = f". Of its data {lacks}" if lacks else ""
    observed = f"{_process(view)}. {ending.observed}{words}{_of_its_own_file(looked, view, ending.observed)}{gone}"
    expected = f"{name} runs: {ending.expected}" if ending.expected else f"{name} runs"
    explained = EXPLAINED_BY[looked.spec.role(view.id)]
    fix = f"{fix}{THEN_START}" if fix else f"{before_more_heap(looked, ending.kind)}{ending.fix}{ending.further}"
    fix = f"{NOT_WITHOUT_DATA if lacks else ''}{fix}"
    found = cause(looked, WaitReason.NODE_DOWN, name, *explained, observed=observed, expected=expected, fix=fix)
    seen_there = looked.hints.places.get(name), looked.hints.changes.get(name)
    last = view.process.last_identity if view.process is not None else None
    signs = signs_at_death(ending.kind, *seen_there, is_ours=is_started_by_us(view.mark, last))
    return Cause(signed(found.blocker, list(signs)), found.explains)


def _process(view: NodeView) -> str:
    if view.is_unstarted:
        return "it has not run in this migration"
    return f"its process does not run (the last was {view.process.last_identity})" if view.process else "it does not run"


def _output(looked: Looked, view: NodeView) -> Sequence[str]:
    """The output of its last process. Output of a controller that was wiped before this migration made it does not count."""
    return () if view.is_unstarted else looked.hints.logs.get(view.id) or view.last_output


TIMED_OUT = re.compile(r"(?<![\d.])(\d{1,9}) ?(?:ms|millis(?:econds)?)\b")


def _of_its_own_file(looked: Looked, view: NodeView, said: str) -> str:
    """Which of its settings have a time that its last lines name, as a further sentence: that time may be too short."""
    times = set(TIMED_OUT.findall(said))
    found = [f"{key}={value}" for key, value in looked.properties(view.id).items() if key.endswith(".ms") and value in times]
    return f". Its file has {some(found)}" if found else ""


def _is_stopped_by_us(view: NodeView, ending: Ending) -> bool:
    """Whether a step stopped it and has not started it again yet."""
    mark, last = view.mark, view.process.last_identity if view.process is not None else None
    is_begun = mark is not None and not mark.is_proven and last is not None and mark.before_identity == last
    return is_begun and ending.kind == STOPPED.kind


MEND_THE_STEP = (
    "Fix what the step failed at: the migration's hold or its last event shows it. The migration, or a rollback, then starts "
    "this node."
)


UNFORMATTED = Ending(
    "Its storage is not formatted: the step of this migration that creates it has not started it yet",
    "",
    f"Do not start it by hand: Kafka refuses to start without a formatted storage. {MEND_THE_STEP}",
    "unformatted",
)

UNSTARTED = Ending(
    "The step of this migration that creates it has not started it yet",
    "",
    f"Do not start it by hand. {MEND_THE_STEP}",
    "unstarted",
)


def _is_unformatted(looked: Looked, view: NodeView) -> bool:
    """Whether it is a controller whose file is ours, and which never ran."""
    is_new = view.mark is not None and not is_known_to_have_run(view.mark)
    is_ours = is_new and looked.spec.role(view.id) is Role.CONTROLLER
    never_ran = view.is_unstarted or (view.process is not None and view.process.last_identity is None)
    return is_ours and never_ran and not is_startable(view.disk)


def _by_a_step(ending: Ending) -> Ending:
    return replace(
        ending,
        observed=f"{ending.observed}. The step of this migration that restarts it has not started it again",
        fix=MEND_THE_STEP,
    )


def ending_of_dead(looked: Looked, view: NodeView) -> Ending:
    """Of a process that a step of ours has started only what was printed since then: what is above is of the one before."""
    if view.is_unstarted:
        return UNSTARTED
    mark, process = view.mark, view.process
    is_started = (
        mark is not None and not mark.is_proven and process is not None and process.last_identity != mark.before_identity
    )
    new = said_since_started(looked, view) if is_started else None
    log_dirs = [found.path for found in view.disk.log_dirs] if view.disk is not None else []
    if new is not None:
        return ending_of_started(new, log_dirs)
    return ending_of(_output(looked, view), log_dirs)


def _as_far_as_written(looked: Looked, view: NodeView, ending: Ending) -> Ending:
    """Of an output that could not be written its end says nothing. Whether there is room for its data now is known as well."""
    output, path = looked.hints.outputs.get(looked.name(view.id)), looked.spec.node(view.id).driver.service.output_file
    is_full = output is not None and path in output.full
    has_room = output is not None and bool(output.lines) and not output.full
    if has_room and ending.kind == DISK_FULL.name and NO_SPACE in ending.observed:
        return replace(ending, observed=f"{ending.observed}; {ROOM_NOW}", fix=NO_ROOM_BELOW)
    if ending.kind not in {KILLED.kind, CURT.kind, SILENT.kind}:
        return ending
    return CUT_OFF if is_full else UNWRITTEN if output is not None and path in output.read_only else ending
