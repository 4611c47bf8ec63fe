"""What a node's machine says of its process, told with the entry that the node has already, or as one of its own. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from domain.diagnosis.blocker import Blocker
from domain.diagnosis.blocker_codes import MACHINE
from domain.diagnosis.machines.bad_signs import bad_signs, signed
from domain.diagnosis.machines.network_signs import MANY_UNREAD, of_askers, why_unheard
from domain.diagnosis.machines.node_output import signs_of_output
from domain.diagnosis.machines.notes import OURS, PUT_BACK_BY_KAFKA, ZOOKEEPER, MachineChanges
from domain.diagnosis.machines.standstill_signs import of_deafness
from domain.diagnosis.machines.vital_signs import Sign, VitalSigns
from domain.zk_to_kraft.causes.case import Cause, Looked, cause
from domain.zk_to_kraft.causes.member import moved
from domain.zk_to_kraft.causes.owners import listening, owned_by
from domain.zk_to_kraft.causes.restarts import restarted_by_others
from domain.zk_to_kraft.causes.stranded import stranded
from domain.zk_to_kraft.causes.taken_ports import signs_of_holders
from domain.zk_to_kraft.causes.unready import EXPLAINED_BY, SHUTTING_DOWN, lingering

NO_CHANGE = MachineChanges(since=datetime.min.replace(tzinfo=UTC))


def with_signs(looked: Looked, causes: Sequence[Cause]) -> list[Cause]:
    """The causes. A node that has a bad sign is named with it: in what is told of that node already, with the fix first."""
    names, unanswered = dict(listening(looked)), {part.what for part in looked.observation.unanswered}
    signs = {
        name: (*_of_node(looked, name, found, names), *(of_askers(found) if f"metrics of {name}" in unanswered else ()))
        for name, found in looked.hints.signs.items()
    }
    for name, sign in (*stranded(looked), *restarted_by_others(looked)):
        signs[name] = (*signs.get(name, ()), sign)
    told = {found.blocker.object for found in causes}
    grave = {name for name, found in signs.items() if not all(sign.is_slight for sign in found)}
    nodes = {looked.name(node.id): node.id for node in looked.situation.nodes}
    alone = [name for name in signs if name in grave - told]
    own = [_own(looked, nodes[name]) if name in nodes else _cause(looked, name) for name in alone]
    ours, theirs = _own_signs(looked, names, {*told, *grave})
    for name, sign in theirs:
        signs[name] = (*signs.get(name, ()), *([sign] if name not in grave else []))
    if ours:
        signs[OURS] = ours
        own += [_cause(looked, OURS)] if OURS not in told and not all(sign.is_slight for sign in ours) else []
    told_of = [
        _with(found, (*signs_of_holders(looked, about), *_of_output(looked, about), *signs.get(about, ())))
        for found in (*causes, *own)
        for about in (found.blocker.object,)
    ]
    return [_with_changes(found, looked.hints.changes.get(found.blocker.object)) for found in told_of]


def _of_node(looked: Looked, name: str, signs: VitalSigns, names: Mapping[str, str]) -> Iterator[Sign]:
    yield from _deafness(looked, name)
    memory = tuple(_of_request_memory(looked, name, signs))
    yield from memory
    yield from moved(signs)
    yield from bad_signs(signs.model_copy(update={"unread": 0}) if memory else signs, names)


def _own_signs(
    looked: Looked, names: Mapping[str, str], troubled: Collection[str]
) -> tuple[tuple[Sign, ...], list[tuple[str, Sign]]]:
    """Of keeperless-activities; and of whom of the troubled, by name, it gets no acknowledgement: who hangs takes nothing."""
    own = looked.hints.own_signs
    if own is None:
        return (), []
    owners = owned_by(looked, troubled)
    theirs = {where: owners[where] for where in own.unheard if where in owners}
    ours = own.model_copy(update={"unheard": tuple(where for where in own.unheard if where not in theirs)})
    return tuple(bad_signs(ours, names)), [(name, _deaf_to_us(own, where)) for where, name in theirs.items()]


def _deaf_to_us(own: VitalSigns, where: str) -> Sign:
    words, fix = why_unheard(own, where)
    shut = (
        f"It takes no connection there any more, or the way from the machine of {OURS} is shut: a firewall, a route, a machine "
        "that is gone."
    )
    return Sign(f"what {OURS} sends to it at {where} is not acknowledged{words}", fix if words else shut)


def _deafness(looked: Looked, name: str) -> Iterator[Sign]:
    """Of a node in our hands that is to end, and does not begin to."""
    view = next((view for view in looked.observation.nodes if looked.name(view.id) == name), None)
    if view is None or view.process is None or name not in looked.in_hand or not looked.is_ending(view):
        return
    state = view.metrics.broker_state if view.metrics is not None else None
    if state not in SHUTTING_DOWN and not tuple(lingering(looked, view)):
        yield from of_deafness(looked.hints.signs[name], view.process.pid)


def _of_request_memory(looked: Looked, name: str, signs: VitalSigns) -> Iterator[Sign]:
    """Of a broker that does not read: by KIP-72 it stops where requests that have begun to come fill this memory. It does not
    read from a client above its quota for a while either, so this is no more than a hint."""
    broker = next((broker for broker in looked.spec.brokers if looked.name(broker.id) == name), None)
    most = looked.properties(broker.id).get(POOL, NO_POOL) if broker is not None else NO_POOL
    stands = signs.on_cpu == 0 or bool(signs.unaccepted)  # for another reason: who waits for this memory takes connections
    if most.startswith("-") or signs.unread < MANY_UNREAD or stands:
        return
    yield Sign(
        f"it does not read what {signs.unread} of its connections have brought, and has {POOL}={most}: it may be that requests "
        "that have begun to come have that memory, so that it reads no other",
        "Find whose request does not come to its end: a client that stands still amid one (`ss -tnpi` there: a connection "
        "with nothing in Recv-Q, and a lastrcv of long ago), and end that client, or its connection (`ss -K`): it reads on at "
        f"once then. {POOL} has to hold the largest request (socket.request.max.bytes) of each client at once: raise it, or "
        "take it out of the file, which takes a restart.",
        is_slight=True,
    )


POOL, NO_POOL = "queued.max.request.bytes", "-1"


def _of_output(looked: Looked, name: str) -> Iterator[Sign]:
    output = looked.hints.outputs.get(name)
    if output is not None:
        service = next(node.driver.service for node in looked.spec.nodes if looked.name(node.id) == name)
        yield from signs_of_output(output, service.output_file)


def changed_besides(looked: Looked, told: Sequence[Blocker]) -> tuple[Blocker, ...]:
    """Of machines on which something has changed, and of which nothing is `told`: worth an entry beside another one, for a step
    that fails, or a worker that is silent. What is the same on several is told once."""
    known = {line for entry in told for line in (looked.hints.changes.get(entry.object) or NO_CHANGE).lines}
    found = []
    for name, changes in looked.hints.changes.items():
        new = changes.without(known)
        if new.changes and all(entry.object != name for entry in told):
            found.append(_with_changes(_cause(looked, name), new).blocker)
            known |= set(new.lines)
    return tuple(found)


def _with_changes(found: Cause, changes: MachineChanges | None) -> Cause:
    if not changes:
        return found
    entry = found.blocker
    observed = ". ".join(filter(None, [entry.observed.rstrip(". "), changes.in_words]))
    look = PUT_BACK_BY_KAFKA if entry.object == ZOOKEEPER and changes.changes else changes.fix
    fixes = [look, entry.fix] if changes.is_telling else [entry.fix, look]
    fix = " ".join(filter(None, fixes))
    return replace(found, blocker=entry.model_copy(update={"observed": observed, "fix": fix}))


def _own(looked: Looked, node_id: int) -> Cause:
    """Its signs are added as to any other."""
    name = looked.name(node_id)
    return _cause(looked, name, *EXPLAINED_BY[looked.spec.role(node_id)])


def _cause(looked: Looked, name: str, *explained: str) -> Cause:
    expected = "nothing of it is in the way" if name == ZOOKEEPER else f"nothing keeps {name} from its work"
    return cause(looked, MACHINE, name, *explained, observed="", expected=expected, fix="")


def _with(found: Cause, signs: Sequence[Sign]) -> Cause:
    if not signs:
        return found
    return replace(found, blocker=signed(found.blocker, signs, is_proved=found.is_proved))
