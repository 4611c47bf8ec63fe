"""Causes that lie with a node whose process, files or metrics do not answer, or not with all."""

import re
from collections.abc import Sequence
from dataclasses import replace

from domain.checks.seen import some
from domain.cluster import Role
from domain.diagnosis.logs.complaints import complaint_in, last_of
from domain.diagnosis.logs.endings import LOCKED, UNLOCK
from domain.diagnosis.logs.lines import stamp_of
from domain.diagnosis.logs.running import silence_in
from domain.diagnosis.machines.standstill_signs import is_stopped_by_turns
from domain.errors import Obstacle
from domain.observed.observation import NodeView
from domain.observed.parts import GAUGES_OF_ANOTHER
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.address import ENDPOINTS, LATE, NOBODY_THERE, cause_of_ours
from domain.zk_to_kraft.causes.case import Cause, Looked, cause, said_since_started
from domain.zk_to_kraft.causes.doors import door_of
from domain.zk_to_kraft.causes.lacks import fix_of_lack
from domain.zk_to_kraft.causes.unready import EXPLAINED_BY, last_word, threads_word, unmeasured
from domain.zk_to_kraft.modes import left_out


def silent(looked: Looked, view: NodeView) -> Cause:
    """Its process, its files or its metrics did not answer, or not with all: one cause, whichever of them."""
    if missing := left_out(view):
        return unmeasured(looked, view, missing, WaitReason.PART_UNKNOWN)
    if view.is_unowned:
        return _unowned(looked, view)
    name, endpoint, is_only_late = looked.name(view.id), looked.spec.node(view.id).metrics.url, False
    parts = [part for part in looked.observation.unanswered if part.what.endswith(f" of {name}")]
    said = "; ".join(f"{part.what.removesuffix(f' of {name}')}: {part.why}" for part in parts) or "nothing is known of it"
    obstacle = next((part.obstacle for part in parts if part.what.startswith("metrics of ")), None)
    new = said_since_started(looked, view)
    own = new if new is not None else looked.hints.logs.get(view.id, ())
    if view.process is not None and view.process.is_paused:
        pid = view.process.pid
        observed = f"its process {pid} stands still (stopped by a signal, or by a debugger). {said}"
        signs = looked.hints.signs.get(name)
        is_held = signs is not None and (signs.tracer is not None or is_stopped_by_turns(signs))
        fix = "" if is_held else f"Let it go on: kill -CONT {pid}. Where the whole machine is paused, resume it."
    elif view.process is not None and view.disk is None:
        observed = said
        mend = f"{UNLOCK}, and start {name} if it has ended" if LOCKED in said else "mend what is named"
        fix = f"The host of {name} answers, and its files cannot be used: {mend}; nothing of it is overwritten."
    elif view.process is None:
        observed = said
        fix = f"Make the host of {name} reachable for keeperless-activities: its process and its files cannot be looked at."
    elif (own_cause := cause_of_ours(looked, obstacle, endpoint)) is not None:
        return own_cause
    elif GAUGES_OF_ANOTHER not in said and (told := silence_in(own)) is not None:
        observed = f"its process runs, and its metrics endpoint gives no answer. It printed: {told.quote}. {said}"
        fix = fix_of_lack(looked, told)
    elif obstacle in ENDPOINTS:
        verb, fix = ENDPOINTS[obstacle]
        observed, is_only_late = f"its process runs, and its metrics endpoint {verb}. {said}", True
    elif new is not None and not any(stamp_of(line) is not None for line in new):
        last = f"The last that it printed: {last_of(new)}" if new else "It has printed nothing"
        observed = f"its process runs, and Kafka has not begun in it. {last}. {said}"
        fix, is_only_late = f"{AT_WORK if _is_at_work(looked, name) else ''}{BEFORE_KAFKA}", True
    else:
        (observed, fix), is_only_late = _mute(looked, view, said, obstacle, own), True
    explained = EXPLAINED_BY[looked.spec.role(view.id)]
    expected = f"process, files and metrics of {name} answer"
    found = cause(looked, WaitReason.PART_UNKNOWN, name, *explained, observed=observed[:1000], expected=expected, fix=fix)
    return replace(found, is_only_late=is_only_late)


BEFORE_KAFKA = (
    "Its start command is still at what it does before Kafka: it waits for a mount, a secret, a lock, another service, "
    "or a debugger (suspend=y of -agentlib:jdwp; DEBUG_SUSPEND_FLAG). Its last line and `ps --forest` say for what: "
    "give it that, and it goes on by itself; or take it out of the start command, end that process, and start it anew."
)
AT_WORK = (
    "It is at work: let it. A JVM that has begun writes over all of its heap first (-XX:+AlwaysPreTouch), which takes a minute "
    "and more for a large one, starts its agents, and reads its classes. Only where it has come no further after some minutes: "
)
BUSY = 0.5
"""Threads that run, on average: a start command that waits needs next to nothing."""


def _is_at_work(looked: Looked, name: str) -> bool:
    signs = looked.hints.signs.get(name)
    return signs is not None and (signs.on_cpu or 0) >= BUSY


OF_AN_AGENT = re.compile(r"argument (?:-javaagent:|-Dcom\.sun\.management\.jmxremote\.port)\S* of its process is gone")
AGENT_GONE = (
    "It was started without the agent that its metrics come from, and may serve as well as before: what started it leaves "
    "out what its environment has there (KAFKA_OPTS, JMX_PORT). Stop it in order, and start it anew by the start_command of "
    "its specification, once all partitions can spare it; or load the agent while it runs (`jcmd PID JVMTI.agent_load`, "
    "Jolokia's `start PID`). Find what started it so, or its next start is the same. "
)


def _has_lost_its_agent(looked: Looked, name: str) -> bool:
    changes = looked.hints.changes.get(name)
    return changes is not None and any(map(OF_AN_AGENT.match, changes.changes))


def _unowned(looked: Looked, view: NodeView) -> Cause:
    """It serves, and nobody knows its process: started by another way, its pid file lost; or nobody's process can be seen."""
    name, pid_file = looked.name(view.id), looked.spec.node(view.id).driver.service.pid_file
    unowned = [looked.name(node.id) for node in looked.observation.nodes if node.is_unowned]
    known = [node for node in looked.observation.nodes if node.process is not None and node.process.is_running]
    if len(unowned) > 1 and not known:
        return cause(
            looked,
            WaitReason.PART_UNKNOWN,
            "keeperless-activities",
            *EXPLAINED_BY[Role.BROKER],
            *EXPLAINED_BY[Role.CONTROLLER],
            observed=f"{some(unowned)} serve, by their metrics, and it sees the process of none of them",
            expected="it sees the processes that the nodes' pid files name",
            fix="It runs in a container, or in a PID namespace of its own. Start it in the machine's (`--pid=host` of a "
            "container, no PrivatePIDs= in its unit). Nothing is stopped or started meanwhile.",
        )
    return cause(
        looked,
        WaitReason.PART_UNKNOWN,
        name,
        *EXPLAINED_BY[looked.spec.role(view.id)],
        observed=f"it serves, by its metrics, and {pid_file} names no process of it that runs",
        expected=f"{pid_file} has the pid of {name}",
        fix="Write the pid of its process there, or stop that process and start the node the usual way. Where it is the one "
        "that a step has started, its start command puts Kafka into the background (`-daemon`, `nohup`, `&`) and ends: let it "
        "stay in the foreground, or `exec` Kafka, at every node, or the next restart ends in the same. Where something else "
        "starts it (a supervisor, a unit's Restart=, a watchdog), switch that off first, until the migration has ended.",
    )


def _mute(looked: Looked, view: NodeView, said: str, obstacle: Obstacle | None, own: Sequence[str]) -> tuple[str, str]:
    """What is seen of one whose endpoint nobody answers at, and what to do."""
    name, endpoint = looked.name(view.id), looked.spec.node(view.id).metrics.url
    complaint = complaint_in(own, looked.lasts)
    words = f". The last complaint in the log of {name}: {complaint}" if complaint else last_word(looked, view.id)
    words += threads_word(looked, name)
    if obstacle is Obstacle.LATE:
        return (
            f"its process runs, and its metrics endpoint takes our connection, and gives no answer in time. {said}{words}",
            LATE,
        )
    mute = f"its process runs, and its metrics endpoint gives no answer. {said}"
    if _has_lost_its_agent(looked, name):
        return f"{mute}{words}", AGENT_GONE
    if (door := door_of(looked, name, endpoint, is_agent=True)) is not None:
        return f"{mute}{door.observed}{words}", f"{door.fix}{NOBODY_THERE}"
    return f"{mute}{words}", NOBODY_THERE
