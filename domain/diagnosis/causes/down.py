"""Nodes that are down: how their processes have ended, alone or together, and what to do. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from domain.checks.check import some
from domain.cluster import Role
from domain.diagnosis.causes.case import EXPLAINED_BY, Case, Cause
from domain.diagnosis.causes.death_signs import signs_at_death
from domain.diagnosis.causes.files import NOT_WITHOUT_DATA, without_data
from domain.diagnosis.causes.quotes import OF_THE_ENSEMBLE, before_more_heap, said_since_started, word_of_servers
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
from domain.diagnosis.machines.signs import signed
from domain.health.files import is_startable
from domain.health.liveness import Liveness, is_known_to_have_run
from domain.observed.observation import NodeView, is_started_by_us
from domain.waits import WaitReason


def endings_of_dead(case: Case) -> dict[int, Ending]:
    """Of nodes that are down and in nobody's hands."""
    dead = (node.id for node in case.spec.nodes if case.liveness(node.id) is Liveness.DOWN)
    return {i: ending_of_dead(case, case.observation.node(i)) for i in dead if case.name(i) not in case.kept}


def _begun(case: Case, view: NodeView) -> Cause:
    """What stands in its output last may be of the process that has just come, and says nothing of an end. Where the one before
    it failed, this one may do the same: somebody may start it again and again."""
    name, lines = case.name(view.id), case.hints.logs.get(view.id) or view.last_output
    failed = death_in(lines) or death_in(before_this_process(lines))
    before = f". The one before it has ended so: {failed.quote}" if failed is not None else ""
    again = f" Where it ends again: {failed.told.fix}" if failed is not None else ""
    return case.cause(
        WaitReason.NODE_NOT_READY,
        name,
        *EXPLAINED_BY[case.spec.role(view.id)],
        WaitReason.NODE_DOWN,
        observed=f"it did not run when it was looked at, and was started while its log was read{before}",
        expected=f"{name} serves",
        fix=f"Give it a minute, and ask again.{again}",
    )


def down(case: Case, view: NodeView, ending: Ending) -> Cause:
    if view.id in case.hints.begun:
        return _begun(case, view)
    name, lacks = case.name(view.id), ""
    if _is_unformatted(case, view):
        ending = UNFORMATTED
    elif not view.is_unstarted:
        lacks = without_data(case, view)
        ending = _by_a_step(ending) if _is_stopped_by_us(view, ending) else _as_far_as_written(case, view, ending)
    death = death_in(_output(case, view))
    words, fix = word_of_servers(case) if death is not None and death.told.name in OF_THE_ENSEMBLE else ("", "")
    gone = f". Of its data {lacks}" if lacks else ""
    observed = f"{_last_process(view)}. {ending.observed}{words}{_of_its_own_file(case, view, ending.observed)}{gone}"
    expected = f"{name} runs: {ending.expected}" if ending.expected else f"{name} runs"
    explained = EXPLAINED_BY[case.spec.role(view.id)]
    fix = f"{fix}{THEN_START}" if fix else f"{before_more_heap(case, ending.kind)}{ending.fix}{ending.further}"
    fix = f"{NOT_WITHOUT_DATA if lacks else ''}{fix}"
    found = case.cause(WaitReason.NODE_DOWN, name, *explained, observed=observed, expected=expected, fix=fix)
    seen_there = case.hints.places.get(name), case.hints.changes.get(name)
    last = view.process.last_identity if view.process is not None else None
    signs = signs_at_death(ending.kind, *seen_there, is_ours=is_started_by_us(view.mark, last))
    return Cause(signed(found.blocker, list(signs)), found.explains)


def _last_process(view: NodeView) -> str:
    if view.is_unstarted:
        return "it has not run in this migration"
    return f"its process does not run (the last was {view.process.last_identity})" if view.process else "it does not run"


def _output(case: Case, view: NodeView) -> Sequence[str]:
    """The output of its last process. Output of a controller that was wiped before this migration made it does not count."""
    return () if view.is_unstarted else case.hints.logs.get(view.id) or view.last_output


TIMED_OUT = re.compile(r"(?<![\d.])(\d{1,9}) ?(?:ms|millis(?:econds)?)\b")


def _of_its_own_file(case: Case, view: NodeView, said: str) -> str:
    """Which of its settings have a time that its last lines name, as a further sentence: that time may be too short."""
    times = set(TIMED_OUT.findall(said))
    found = [f"{key}={value}" for key, value in case.properties(view.id).items() if key.endswith(".ms") and value in times]
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


def _is_unformatted(case: Case, view: NodeView) -> bool:
    """Whether it is a controller whose file is ours, and which never ran."""
    is_new = view.mark is not None and not is_known_to_have_run(view.mark)
    is_ours = is_new and case.spec.role(view.id) is Role.CONTROLLER
    never_ran = view.is_unstarted or (view.process is not None and view.process.last_identity is None)
    return is_ours and never_ran and not is_startable(view.disk)


def _by_a_step(ending: Ending) -> Ending:
    return replace(
        ending,
        observed=f"{ending.observed}. The step of this migration that restarts it has not started it again",
        fix=MEND_THE_STEP,
    )


def ending_of_dead(case: Case, view: NodeView) -> Ending:
    """Of a process that a step of ours has started only what was printed since then: what is above is of the one before."""
    if view.is_unstarted:
        return UNSTARTED
    mark, process = view.mark, view.process
    is_started = (
        mark is not None and not mark.is_proven and process is not None and process.last_identity != mark.before_identity
    )
    new = said_since_started(case, view) if is_started else None
    log_dirs = [found.path for found in view.disk.log_dirs] if view.disk is not None else []
    if new is not None:
        return ending_of_started(new, log_dirs)
    return ending_of(_output(case, view), log_dirs)


def _as_far_as_written(case: Case, view: NodeView, ending: Ending) -> Ending:
    """Of an output that could not be written its end says nothing. Whether there is room for its data now is known as well."""
    output, path = case.hints.outputs.get(case.name(view.id)), case.spec.node(view.id).driver.service.output_file
    is_full = output is not None and path in output.full
    has_room = output is not None and bool(output.lines) and not output.full
    if has_room and ending.kind == DISK_FULL.name and NO_SPACE in ending.observed:
        return replace(ending, observed=f"{ending.observed}; {ROOM_NOW}", fix=NO_ROOM_BELOW)
    if ending.kind not in {KILLED.kind, CURT.kind, SILENT.kind}:
        return ending
    return CUT_OFF if is_full else UNWRITTEN if output is not None and path in output.read_only else ending


MOMENT = timedelta(seconds=2)
"""Between two of them. The stamps of their logs are of one clock, and have whole seconds."""
FIND_THE_HAND = (
    "Find what stopped all of them, or it does so again. kafka-server-stop.sh signals every Kafka of its "
    "machine, even if it was called for one. Other causes are a stop of their unit, container or machine, or "
    "a logout that ends a user's processes (KillUserProcesses=, `loginctl enable-linger`). `journalctl` and "
    "`last` show that second. Then start them, one after the other."
)
LOOK_AT_VOLUMES = (
    "See first that all its volumes are mounted (`findmnt --verify`, `systemctl --failed`), and that its clock is right "
    "(`chronyc tracking`). "
)
FIND_THE_BOOT = (
    "Then start them, one after the other. A node that was not stopped in order recovers its logs first. "
    "Find what rebooted the machine, or it happens again: `last -x`, the end of `journalctl -b -1`, "
    "/var/crash (a panic), a watchdog, the hypervisor or the BMC (`ipmitool sel list`), automatic updates."
)
WAS_LOST = "the machine has crashed, was reset, or has lost its power"
ENDED_IN_ORDER = "Before that all of them were stopped in order"
WITH_ITS_MACHINE = frozenset({KILLED.kind, CURT.kind, SILENT.kind, STOPPED.kind})
"""Kinds of endings that a boot may be behind."""


def ended_with_their_machine(case: Case, endings: Mapping[int, Ending]) -> Iterator[tuple[tuple[int, ...], Cause]]:
    """Ids of nodes whose machine was booted since they were noted, and that nobody has started after that; one entry for each
    machine. One whose data is gone, or that says itself what it died of, is an entry of its own."""
    booted = {i: at for i, ending in endings.items() if (at := _booted_at(case, i, ending)) is not None}
    for host in sorted({case.spec.node(i).host for i in booted}):
        ids = tuple(sorted(i for i in booted if case.spec.node(i).host == host))
        yield ids, _told_of_boot(case, ids, booted[ids[0]], endings)


def _booted_at(case: Case, node_id: int, ending: Ending) -> datetime | None:
    """Of a process that was started since the boot it is known when (`Process.started_at`)."""
    view, changes = case.observation.node(node_id), case.hints.changes.get(case.name(node_id))
    is_of_it = ending.kind in WITH_ITS_MACHINE and not ending.further and node_id not in case.hints.begun
    is_new = view.process is not None and view.process.started_at is not None
    return changes.booted_at if changes is not None and is_of_it and not is_new and not without_data(case, view) else None


def ended_together(case: Case, endings: Mapping[int, Ending]) -> Iterator[tuple[tuple[int, ...], Cause]]:
    """Their ids, and one entry. `endings`: of nodes that are down, and that no step of ours has stopped. One whose data is gone
    is an entry of its own."""
    stops = {
        i: ending.at
        for i, ending in endings.items()
        if ending.at is not None
        and ending.kind == STOPPED.kind
        and not (ending.further or without_data(case, case.observation.node(i)))
    }
    hosts = {case.spec.node(i).host for i in stops}
    for host in sorted(hosts):
        ids = sorted((i for i in stops if case.spec.node(i).host == host), key=lambda i: (stops[i], i))
        for group in _moments(ids, stops):
            yield tuple(group), _together(case, group, stops[group[0]])


def _moments(ids: Sequence[int], stops: Mapping[int, datetime]) -> Iterator[list[int]]:
    """Of two and more."""
    groups: list[list[int]] = []
    for i in ids:
        if groups and stops[i] - stops[groups[-1][-1]] <= MOMENT:
            groups[-1].append(i)
        else:
            groups.append([i])
    yield from (group for group in groups if len(group) > 1)


def _together(case: Case, ids: Sequence[int], at: datetime) -> Cause:
    names = ", ".join(case.name(i) for i in sorted(ids))
    return case.cause(
        WaitReason.NODE_DOWN,
        names,
        *(reason for i in ids for reason in EXPLAINED_BY[case.spec.role(i)]),
        observed=f"their processes do not run: all {len(ids)} got a signal at {at:%H:%M:%S}, by the clock of their logs, and "
        "ended in order",
        expected="they run, and are not stopped together",
        fix=FIND_THE_HAND,
    )


def _told_of_boot(case: Case, ids: Sequence[int], at: datetime, endings: Mapping[int, Ending]) -> Cause:
    name, whose = ", ".join(case.name(i) for i in ids), "their processes do" if len(ids) > 1 else "its process does"
    cut = [case.name(i) for i in ids if endings[i].kind != STOPPED.kind]
    how = f"{some(cut)} had no time to end in order: {WAS_LOST}" if cut else ENDED_IN_ORDER
    observed = f"{whose} not run: the machine was booted at {at:%d %b %H:%M:%S} UTC. {how}"
    changes = case.hints.changes[case.name(ids[0])].in_words if len(ids) > 1 else ""
    found = case.cause(
        WaitReason.NODE_DOWN,
        name,
        *(reason for i in ids for reason in EXPLAINED_BY[case.spec.role(i)]),
        observed=". ".join(filter(None, [observed, changes])),
        expected="they run, also after their machine was booted",
        fix=f"{LOOK_AT_VOLUMES}{FIND_THE_BOOT}",
    )
    # Of how it has ended the boot says all; whether it can be started again is another matter.
    place = case.hints.places.get(name) if len(ids) == 1 else None
    return Cause(signed(found.blocker, list(signs_at_death(STOPPED.kind, place, None, is_ours=False))), found.explains)
