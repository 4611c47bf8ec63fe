"""What a node's machine says of its process: signs, changes, ports that others have, restarts by others, programs that hang.
Pure."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from domain.clocks import is_over
from domain.cluster import servers_in
from domain.diagnosis.blocker import MACHINE, Blocker
from domain.diagnosis.causes.case import EXPLAINED_BY, SLOW, Case, Cause
from domain.diagnosis.causes.members import moved
from domain.diagnosis.causes.reachability import listening, owned_by
from domain.diagnosis.causes.startup import SHUTTING_DOWN, lingering
from domain.diagnosis.logs.endings import SIGNAL
from domain.diagnosis.logs.lines import START_OF_PROCESS, of_this_process, times_of
from domain.diagnosis.logs.members import of_last_start
from domain.diagnosis.machines.node_output import signs_of_output
from domain.diagnosis.machines.notes import OURS, PUT_BACK_BY_KAFKA, ZOOKEEPER, MachineChanges
from domain.diagnosis.machines.signs import bad_signs, of_deafness, signed
from domain.diagnosis.machines.vital_signs import PortHolder, Sign, VitalSigns
from domain.observed.observation import NodeView, is_started_by_us
from domain.observed.parts import NO_ANSWER

NO_CHANGE = MachineChanges(since=datetime.min.replace(tzinfo=UTC))


def with_signs(case: Case, causes: Sequence[Cause]) -> list[Cause]:
    """The causes. A node that has a bad sign is named with it: in what is told of that node already, with the fix first."""
    names = dict(listening(case))
    signs = {name: tuple(_of_node(case, name, found, names)) for name, found in case.hints.signs.items()}
    for name, sign in (*stranded(case), *restarted_by_others(case)):
        signs[name] = (*signs.get(name, ()), sign)
    told = {found.blocker.object for found in causes}
    grave = {name for name, found in signs.items() if not all(sign.is_slight for sign in found)}
    nodes = {case.name(node.id): node.id for node in case.spec.nodes}
    alone = [name for name in signs if name in grave - told]
    own = [_own(case, nodes[name]) if name in nodes else _of_machine(case, name) for name in alone]
    ours, theirs = _own_signs(case, names, {*told, *grave})
    for name, sign in theirs:
        signs[name] = (*signs.get(name, ()), *([sign] if name not in grave else []))
    if ours:
        signs[OURS] = ours
        own += [_of_machine(case, OURS)] if OURS not in told and not all(sign.is_slight for sign in ours) else []
    told_of = [
        _with(found, (*signs_of_holders(case, about), *_of_output(case, about), *signs.get(about, ())))
        for found in (*causes, *own)
        for about in (found.blocker.object,)
    ]
    return [_with_changes(found, case.hints.changes.get(found.blocker.object)) for found in told_of]


def _of_node(case: Case, name: str, signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    yield from _deafness(case, name)
    yield from moved(signs)
    yield from bad_signs(signs, names)


def _own_signs(
    case: Case, names: Mapping[str, str], troubled: Collection[str]
) -> tuple[tuple[Sign, ...], list[tuple[str, Sign]]]:
    """Of keeperless-activities; and of whom of the troubled, by name, it gets no acknowledgement: who hangs takes nothing."""
    own = case.hints.own_signs
    if own is None:
        return (), []
    owners = owned_by(case, troubled)
    theirs = {where: owners[where] for where in own.unheard if where in owners}
    ours = own.model_copy(update={"unheard": tuple(where for where in own.unheard if where not in theirs)})
    return tuple(bad_signs(ours, names)), [(name, _deaf_to_us(where)) for where, name in theirs.items()]


def _deaf_to_us(where: str) -> Sign:
    return Sign(
        f"what {OURS} sends to it at {where} is not acknowledged",
        f"Check whether it still accepts connections there, and the way from the machine of {OURS}: a firewall, a route, a "
        "machine that is gone.",
    )


def _deafness(case: Case, name: str) -> Iterator[Sign]:
    """Of a node in our hands that is to end, and does not begin to."""
    view = next((view for view in case.observation.nodes if case.name(view.id) == name), None)
    if view is None or view.process is None or name not in case.in_hand or not case.is_ending(view):
        return
    state = view.metrics.broker_state if view.metrics is not None else None
    if state not in SHUTTING_DOWN and not tuple(lingering(case, view)):
        yield from of_deafness(case.hints.signs[name], view.process.pid)


def _of_output(case: Case, name: str) -> Iterator[Sign]:
    output = case.hints.outputs.get(name)
    if output is not None:
        service = next(node.driver.service for node in case.spec.nodes if case.name(node.id) == name)
        yield from signs_of_output(output, service.output_file)


def changed_besides(case: Case, told: Sequence[Blocker]) -> tuple[Blocker, ...]:
    """Of machines on which something has changed, and of which nothing is `told`: worth an entry beside another one, for a step
    that fails, or a worker that is silent. What is the same on several is told once."""
    known = {line for entry in told for line in (case.hints.changes.get(entry.object) or NO_CHANGE).lines}
    found = []
    for name, changes in case.hints.changes.items():
        new = changes.without(known)
        if new.changes and all(entry.object != name for entry in told):
            found.append(_with_changes(_of_machine(case, name), new).blocker)
            known |= set(new.lines)
    return tuple(found)


def _with_changes(found: Cause, changes: MachineChanges | None) -> Cause:
    if not changes:
        return found
    entry = found.blocker
    observed = ". ".join(filter(None, [entry.observed.rstrip(". "), changes.in_words]))
    look = PUT_BACK_BY_KAFKA if entry.object == ZOOKEEPER and changes.changes else changes.fix
    fix = " ".join(filter(None, [entry.fix, look]))
    return replace(found, blocker=entry.model_copy(update={"observed": observed, "fix": fix}))


def _own(case: Case, node_id: int) -> Cause:
    """Its signs are added as to any other."""
    name = case.name(node_id)
    return _of_machine(case, name, *EXPLAINED_BY[case.spec.role(node_id)])


def _of_machine(case: Case, name: str, *explained: str) -> Cause:
    expected = "nothing of it is in the way" if name == ZOOKEEPER else f"nothing keeps {name} from its work"
    return case.cause(MACHINE, name, *explained, observed="", expected=expected, fix="")


def _with(found: Cause, signs: Sequence[Sign]) -> Cause:
    if not signs:
        return found
    return replace(found, blocker=signed(found.blocker, signs, is_proved=found.is_proved))


End = tuple[str, datetime]
"""A signal, and when it came."""
LATELY = timedelta(minutes=3)
"""Between two rolls of one node lie those of all others."""
TO_THE_START = timedelta(minutes=1)
"""From the signal on. Who starts it later may be somebody who has looked at it."""
SWITCH_OFF = (
    "Find what does that, and switch it off until the migration has ended: a liveness probe or health check "
    "(one for brokers never finds a controller healthy, which has no listener for clients), a watchdog, a "
    "supervisor (Restart=), configuration management. The node itself may be healthy."
)


def restarted_by_others(case: Case) -> Iterator[tuple[str, Sign]]:
    """With the names of the nodes that run, and that no step of ours has in hand or has started."""
    for view in case.observation.nodes:
        name = case.name(view.id)
        process = view.process
        if name in case.in_hand or process is None or not process.is_running or is_started_by_us(view.mark, process.identity):
            continue
        ends = restarts_in(case.log(view.id))
        ends = ends[1:] if len(ends) > 1 and _was_proven(view) else ends  # the first may have been that roll's
        if ends:
            signs = case.hints.signs.get(name)
            by = f" by {signs.started_by}" if signs is not None and signs.started_by else ""
            yield name, Sign(f"{_in_words(ends)}{by}", SWITCH_OFF, is_slight=len(ends) < 2, is_cure=len(ends) > 1)


def _in_words(ends: Sequence[End]) -> str:
    signal, at = ends[-1]
    last = f"at {at:%H:%M:%S}, by the clock of its log"
    seconds = (at - ends[0][1]).total_seconds()
    times = f"{len(ends)} times within {seconds:.0f} s, the last time {last}" if len(ends) > 1 else last
    return f"not by Keeperless, it was asked to end ({signal}) {times}; it was started again"


def _was_proven(view: NodeView) -> bool:
    return view.mark is not None and view.mark.proven_identity is not None


def restarts_in(lines: Sequence[str]) -> list[End]:
    """By which signal and when it was told to end of late, where a start follows soon."""
    times = times_of(lines)
    newest = next((at for at in reversed(times) if at is not None), None)
    found: list[End] = []
    told: End | None = None
    for line, at in zip(lines, times, strict=True):
        if at is None or newest is None or newest - at > LATELY:
            continue
        if (match := SIGNAL.search(line)) is not None:
            told = match[0].rpartition(" ")[2], at
        elif START_OF_PROCESS.search(line):
            found += [told] if told is not None and at - told[1] <= TO_THE_START else []
            told = None
    return found


ENOUGH = 2
"""One may be late by itself: a log that is large, a JVM that hangs."""
WHAT_HANGS = (
    "First check its load (`uptime`): if that is far above the number of its CPUs, everything there is late, "
    "and nothing else is wrong. If not, run there by hand, as the user of keeperless-activities, what "
    "programs need before they begin: `id`, `getent passwd`, `python3 -c 1`, `sudo -n true`, and see which "
    "hangs. Fix what that waits for: the service for users and groups (sssd, LDAP, winbind, nscd; "
    "/etc/nsswitch.conf), a network file system, a shell's start-up file, a wrapper around python3, an agent "
    "that checks programs. The step then continues by itself."
)


def stranded(case: Case) -> Iterator[tuple[str, Sign]]:
    """With the names of the nodes: files of theirs can be read, so that their machines are reached, and nothing that has to be
    run there has an end, its log among it, so that nobody else tells of it."""
    if case.step_since is None or not is_over(case.step_since, case.observation.ended_at, SLOW):
        return
    for view in case.observation.nodes:
        name = case.name(view.id)
        if name not in case.in_hand or view.process is None:
            continue
        late = [words for words in case.hints.silent if f": {NO_ANSWER} " in words and f" {name} " in _subject(words)]
        if len(late) >= ENOUGH and any(words.startswith(f"log of {name}:") for words in late):
            told = ", ".join(sorted(late))
            yield (
                name,
                Sign(f"a step waits for it, and programs that run on its machine do not end: {told}", WHAT_HANGS),
            )


def _subject(words: str) -> str:
    return f" {words.partition(': ')[0]} "


FAILED = re.compile(r"BindException|[Aa]ddress already in use|Port already in use|failed to bind to")
EXACT = re.compile(
    r"(?:failed to bind to|listening to address|Couldn't bind to) \S*:(\d{1,5})\b|Port already in use: (\d{1,5})\b"
)
BEFORE = re.compile(r"binding to port \S*:(\d{1,5})\b")
"""What ZooKeeper says before it tries, at its client port."""


def ports_not_bound(lines: Sequence[str]) -> tuple[int, ...]:
    """Of the process that printed these lines last."""
    own = of_last_start(of_this_process(lines))
    if not any(FAILED.search(line) for line in own):
        return ()
    exact = [found[1] or found[2] for line in own if (found := EXACT.search(line))]
    before = [found[1] for line in own if (found := BEFORE.search(line))]
    return tuple(dict.fromkeys(int(port) for port in exact or before[-1:]))


def signs_of_holders(case: Case, name: str) -> Iterator[Sign]:
    """Of a node, or of a server of the ensemble, by its name."""
    view = next((view for view in case.observation.nodes if case.name(view.id) == name), None)
    for found in case.hints.holders.get(name, ()):
        if view is not None and view.is_unowned:
            yield _of_its_own(case, view, found) or _of_unowned(found)
            continue
        whose = _whose(case, name, found)
        if found.peer is not None:
            yield Sign(
                f"port {found.port} is the local end of a connection to {found.peer}{_by_process(found)}: no process "
                "listens there",
                f"Start it again: such a connection ends by itself. Keep the port out of those that the kernel gives away: "
                f"net.ipv4.ip_local_reserved_ports={found.port} (sysctl), or a listener below net.ipv4.ip_local_port_range.",
            )
        elif whose == name and name in case.hints.signs:
            continue  # it runs, and has its own port
        elif whose == name:
            yield Sign(
                f"an earlier process of its own has port {found.port}{_by_process(found)}",
                "It was started twice, or not by its start command. Where that process serves, leave it as it is, and put its "
                f"number into the pid file; else end it in order (kill {found.pid}), and start it once that has ended.",
            )
        elif whose:
            yield Sign(
                f"{whose} has port {found.port}{_by_process(found)}",
                f"Leave {whose} as it is. Two have one port: compare the listeners of both, or, of ZooKeeper's servers, the "
                "server.N lines and dataDir/myid; correct that of the one that does not start.",
            )
        else:
            yield Sign(f"port {found.port} is taken{_by_process(found)}", "")


def _of_its_own(case: Case, view: NodeView, found: PortHolder) -> Sign | None:
    """Of the process that was started last as the specification says; `None` of another one."""
    last = view.process.last_identity if view.process is not None else None
    if last is None or last.partition("@")[0] != str(found.pid):
        return None
    pid_file = case.spec.node(view.id).driver.service.pid_file
    return Sign(
        f"its earlier process answers there{_by_process(found)}: only its pid file was deleted, or written by other means",
        f"Write its number back: `echo {found.pid} > {pid_file}`. Stop nothing. Find who takes such files away, or it happens "
        "again: a cleaner of old files (systemd-tmpfiles, tmpwatch), a restore, a deployment.",
        is_cure=True,
    )


def _of_unowned(found: PortHolder) -> Sign:
    """It serves, and was not started as the specification says."""
    who = f"who answers there is {_by_process(found).removeprefix(', by ') or 'a process that may not be looked at'}"
    if not found.started_by:
        return Sign(who, "")
    return Sign(
        f"{who}, started by {found.started_by}",
        f"First switch off {found.started_by}, until the migration has ended: a supervisor (monit, supervisord), "
        "a unit's Restart=, a watchdog or a person also starts the node, and the first one has its directory and "
        "its ports.",
    )


def _by_process(found: PortHolder) -> str:
    return f", by process {found.pid} ({found.command})" if found.pid is not None else ""


def _whose(case: Case, name: str, found: PortHolder) -> str:
    """The node or member whose process it is; empty where it is nobody's of the specification. On one host paths tell them
    apart."""
    spec = case.spec
    nodes = {spec.node_name(node.id): node for node in spec.nodes}
    members = {f"zookeeper {address}": spec.ensemble.member(address) for address in servers_in(spec.ensemble.connect)}
    own = nodes.get(name) or members.get(name)
    words = found.command.split()
    alike = [one for one, node in nodes.items() if own and node.host == own.host and node.properties_file in words]
    alike += [one for one, its in members.items() if own and its and its.host == own.host and its.data_dir == found.data_dir]
    return name if name in alike else next(iter(alike), "")
