"""Nodes and brokers that do not answer: a process, files or metrics of a node, or a broker that is asked by itself."""

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from domain.checks.check import some
from domain.cluster import Role
from domain.diagnosis.causes.case import EXPLAINED_BY, Case, Cause, restart_of
from domain.diagnosis.causes.hints import Serving, how_to_lift
from domain.diagnosis.causes.quotes import complaints, fix_of_lack, lack_of, last_word, said_since_started
from domain.diagnosis.causes.reachability import (
    ENDPOINTS,
    NOBODY_THERE,
    PROXY_HEADER,
    SLOW_PAGE,
    cause_of_ours,
    door_of,
    lacking_cause,
    of_proxy_header,
    unresolved_cause,
)
from domain.diagnosis.causes.startup import unmeasured
from domain.diagnosis.logs.complaints import complaint_in, last_of
from domain.diagnosis.logs.endings import LOCKED, UNLOCK
from domain.diagnosis.logs.lines import stamp_of
from domain.diagnosis.logs.running import silence_in
from domain.errors import Obstacle
from domain.observed.observation import NodeView
from domain.observed.parts import GAUGES_OF_ANOTHER
from domain.waits import WaitReason


def silent(case: Case, view: NodeView) -> Cause:
    """Its process, its files or its metrics did not answer, or not with all: one cause, whichever of them."""
    if missing := case.facts.hidden_gauges.get(view.id, ""):
        return unmeasured(case, view, missing, WaitReason.PART_UNKNOWN)
    if view.is_unowned:
        return _unowned(case, view)
    name, endpoint, is_only_late = case.name(view.id), case.spec.node(view.id).metrics.url, False
    parts = [part for part in case.observation.unanswered if part.what.endswith(f" of {name}")]
    said = "; ".join(f"{part.what.removesuffix(f' of {name}')}: {part.why}" for part in parts) or "nothing is known of it"
    obstacle = next((part.obstacle for part in parts if part.what.startswith("metrics of ")), None)
    new = said_since_started(case, view)
    own = new if new is not None else case.log(view.id)
    if view.process is not None and view.process.is_paused:
        pid = view.process.pid
        observed = f"its process {pid} is stopped (by a signal, or by a debugger). {said}"
        fix = f"Run kill -CONT {pid}. If a debugger has stopped it, detach that; if its machine is paused, resume it."
    elif view.process is not None and view.disk is None:
        observed = said
        mend = f"{UNLOCK}, and start {name} if it has ended" if LOCKED in said else "fix what is named"
        fix = f"The host of {name} answers, and its files cannot be used: {mend}; nothing of it is overwritten."
    elif view.process is None:
        observed = said
        fix = f"Make the host of {name} reachable for keeperless-activities: its process and its files cannot be looked at."
    elif (own_cause := cause_of_ours(case, obstacle, endpoint)) is not None:
        return own_cause
    elif GAUGES_OF_ANOTHER not in said and (told := silence_in(own)) is not None:
        observed = f"its process runs, and its metrics endpoint gives no answer. It printed: {told.quote}. {said}"
        fix = fix_of_lack(case, told)
    elif obstacle in ENDPOINTS:
        verb, fix = ENDPOINTS[obstacle]
        observed, is_only_late = f"its process runs, and its metrics endpoint {verb}. {said}", True
    elif new is not None and not any(stamp_of(line) is not None for line in new):
        last = f"The last that it printed: {last_of(new)}" if new else "It has printed nothing"
        observed = f"its process runs, and Kafka has not begun in it. {last}. {said}"
        fix, is_only_late = f"{AT_WORK if _is_at_work(case, name) else ''}{BEFORE_KAFKA}", True
    else:
        (observed, fix), is_only_late = _mute(case, view, said, obstacle, own), True
    explained = EXPLAINED_BY[case.spec.role(view.id)]
    expected = f"process, files and metrics of {name} answer"
    found = case.cause(WaitReason.PART_UNKNOWN, name, *explained, observed=observed[:1000], expected=expected, fix=fix)
    return replace(found, is_only_late=is_only_late)


BEFORE_KAFKA = (
    "Check its last line and `ps --forest`: its start command waits before Kafka starts, for a mount, a "
    "secret, a lock, another service, or a debugger (suspend=y of -agentlib:jdwp; DEBUG_SUSPEND_FLAG). "
    "Provide that, and it continues by itself. Or remove it from the start command, end that process, and "
    "start it again."
)
AT_WORK = (
    "It is at work: let it. A JVM that has begun writes over all of its heap first (-XX:+AlwaysPreTouch), which takes a minute "
    "and more for a large one, starts its agents, and reads its classes. Only where it has come no further after some minutes: "
)
BUSY = 0.5
"""Threads that run, on average: a start command that waits needs next to nothing."""


def _is_at_work(case: Case, name: str) -> bool:
    signs = case.hints.signs.get(name)
    return signs is not None and (signs.on_cpu or 0) >= BUSY


OF_AN_AGENT = re.compile(r"argument (?:-javaagent:|-Dcom\.sun\.management\.jmxremote\.port)\S* of its process is gone")
AGENT_GONE = (
    "Stop it in order, and start it again by the start_command of its specification, when all partitions can "
    "spare it. Or load the agent while it runs (`jcmd PID JVMTI.agent_load`, Jolokia's `start PID`). It was "
    "started without the agent that its metrics come from, and may serve as before. Find what started it "
    "without its environment (KAFKA_OPTS, JMX_PORT), or its next start is the same. "
)


def _has_lost_its_agent(case: Case, name: str) -> bool:
    changes = case.hints.changes.get(name)
    return changes is not None and any(map(OF_AN_AGENT.match, changes.changes))


def _unowned(case: Case, view: NodeView) -> Cause:
    """It serves, and nobody knows its process: started by another way, its pid file lost; or nobody's process can be seen."""
    name, pid_file = case.name(view.id), case.spec.node(view.id).driver.service.pid_file
    unowned = [case.name(node.id) for node in case.observation.nodes if node.is_unowned]
    known = [node for node in case.observation.nodes if node.process is not None and node.process.is_running]
    if len(unowned) > 1 and not known:
        return case.cause(
            WaitReason.PART_UNKNOWN,
            "keeperless-activities",
            *EXPLAINED_BY[Role.BROKER],
            *EXPLAINED_BY[Role.CONTROLLER],
            observed=f"{some(unowned)} serve, by their metrics, and it sees the process of none of them",
            expected="it sees the processes that the nodes' pid files name",
            fix="It runs in a container, or in a PID namespace of its own. Start it in the machine's (`--pid=host` of a "
            "container, no PrivatePIDs= in its unit). Nothing is stopped or started meanwhile.",
        )
    return case.cause(
        WaitReason.PART_UNKNOWN,
        name,
        *EXPLAINED_BY[case.spec.role(view.id)],
        observed=f"it serves, by its metrics, and {pid_file} names no process of it that runs",
        expected=f"{pid_file} has the pid of {name}",
        fix="Write the pid of its process there, or stop that process and start the node the usual way. Where it is the one "
        "that a step has started, its start command puts Kafka into the background (`-daemon`, `nohup`, `&`) and ends: let it "
        "stay in the foreground, or `exec` Kafka, at every node, or the next restart ends in the same. Where something else "
        "starts it (a supervisor, a unit's Restart=, a watchdog), switch that off first, until the migration has ended.",
    )


def _mute(case: Case, view: NodeView, said: str, obstacle: Obstacle | None, own: Sequence[str]) -> tuple[str, str]:
    """What is seen of one whose endpoint nobody answers at, and what to do."""
    name, endpoint = case.name(view.id), case.spec.node(view.id).metrics.url
    complaint = complaint_in(own, case.lasts)
    words = f". The last complaint in the log of {name}: {complaint}" if complaint else last_word(case, view.id)
    if obstacle is Obstacle.LATE:
        return (
            f"its process runs, and its metrics endpoint takes our connection, and gives no answer in time. {said}{words}",
            SLOW_PAGE,
        )
    mute = f"its process runs, and its metrics endpoint gives no answer. {said}"
    if _has_lost_its_agent(case, name):
        return f"{mute}{words}", AGENT_GONE
    if (door := door_of(case, name, endpoint, is_agent=True)) is not None:
        return f"{mute}{door.observed}{words}", f"{door.fix}{NOBODY_THERE}"
    return f"{mute}{words}", NOBODY_THERE


OF_OURS = {Obstacle.UNRESOLVED: unresolved_cause, Obstacle.OURS: lacking_cause}
"""What keeps us from asking a broker, and says nothing of it."""


def each_mute(case: Case, unheard: Collection[int]) -> list[Cause]:
    return [_of_mute(case, broker_id) for broker_id in mute(case, unheard)]


def mute(case: Case, unheard: Collection[int]) -> list[int]:
    """Brokers that do not answer, though asked by themselves, where another one does. Of who is silent in all nothing more is
    told than that."""
    asked = case.hints.asked
    if all(found.why for found in asked.values()):
        return []
    silent = [i for i, found in asked.items() if found.why and found.obstacle not in OF_OURS]
    return [i for i in silent if i not in case.absent_brokers and i not in unheard]


WITHOUT_ZOOKEEPER = (
    "First restore ZooKeeper's ensemble, as its own entries say: a broker that waits for it answers no "
    "request. Restart no broker meanwhile: none that needs ZooKeeper starts without it."
)


def _lacks_zookeeper(case: Case, broker_id: int) -> bool:
    """Whether it needs an ensemble that has no quorum."""
    found = set(case.hints.servers.values())
    is_lost = Serving.YES not in found and bool(found & {Serving.NO, Serving.REFUSED, Serving.UNREACHED})
    return is_lost and broker_id in case.facts.in_zookeeper


def _of_mute(case: Case, broker_id: int) -> Cause:
    asked = case.hints.asked[broker_id]
    well = [case.name(i) for i, found in case.hints.asked.items() if not found.why]
    expected, fix = "every broker answers", _mended(case, broker_id)
    if _lacks_zookeeper(case, broker_id):
        fix = WITHOUT_ZOOKEEPER
    said = f"{limited(case)}{complaints(case, broker_id)}"
    is_explained = asked.obstacle in AT_ONE_BROKER or _lacks_zookeeper(case, broker_id)
    own = _of_itself(case, broker_id) if not is_explained else None
    if asked.obstacle in AT_ONE_BROKER:
        expected, fix = AT_ONE_BROKER[asked.obstacle]
    elif own is not None:
        said, expected, fix = own
    proxied = of_proxy_header(case, [broker_id])
    if proxied is not None:
        said, expected, fix = f": {proxied[1]}", PROXY_HEADER.expected, proxied[2]
    return case.cause(
        WaitReason.PART_UNKNOWN,
        case.name(broker_id),
        WaitReason.PARTITIONS_NOT_IN_SYNC,
        observed=f"asked by itself at {asked.address}, {asked.why}; {some(well)} answer{'s' * (len(well) == 1)}. Kafka as a "
        f"whole gives no answer because of it{said}",
        expected=expected,
        fix=fix,
        is_proved=proxied is not None or own is not None,
    )


def _of_itself(case: Case, broker_id: int) -> tuple[str, str, str] | None:
    """What it says that it lacks; what would be right, and the fix."""
    if (lacks := lack_of(case, broker_id)) is not None:
        return f". It has printed: {lacks.quote}", lacks.told.expected, lacks.told.fix
    return None


def _mended(case: Case, broker_id: int) -> str:
    name = case.name(broker_id)
    lift = [f"{how_to_lift(limit)} If that is not it: look" for limit in case.tight_limits[:1]]
    return (
        f"{lift[0] if lift else 'Check'} what {name} waits for: its threads (`jstack PID`, twice within seconds), "
        "its log, its heap and garbage collection, its disks. NetworkProcessorAvgIdlePercent and "
        "RequestHandlerAvgIdlePercent near 0 mean that it has no free thread for requests; `ss -tn` there shows "
        "connections whose Recv-Q it does not read. Clients of the partitions that it leads wait as well. If "
        f"nothing else helps, {restart_of(case, broker_id)}: while it is registered, no other broker leads in its "
        "place."
    )


def limited(case: Case) -> str:
    """What may have been reached: a broker says nothing of it."""
    limits = [limit.in_words for limit in case.hints.limits]
    return f". Its connections are limited: {some(limits)}" if limits else ""


AT_ONE_BROKER = {
    Obstacle.TLS: (
        "keeperless-activities and every broker come to TLS with each other",
        "Compare its key and trust store with those of a broker that lets us in (`openssl s_client -connect` its listener): a "
        "certificate that was renewed is loaded with a restart. Correct its store, or, where the new authority is right, put "
        "that into ssl.cafile of client_properties. Restart no other broker before: it would load the like.",
    ),
    Obstacle.FORBIDDEN: (
        "every broker lets keeperless-activities in",
        "Compare its listeners, SASL mechanisms, JAAS section and users with those of a broker that lets us in. What is in its "
        "file is loaded with a restart: restart no other broker before.",
    ),
    Obstacle.GARBLED: (
        "what a broker answers arrives as it was sent",
        "Ask it on its own machine (kafka-broker-api-versions.sh --bootstrap-server). Where that works, leave the broker "
        "running: its bytes are changed or mixed up on the way, by a network card or its offloading (ethtool -K), "
        "a cable or switch (`ethtool -S`, `netstat -s`: errors, bad checksums), a proxy or balancer that mixes connections. "
        "Followers may have been given the same: see that their copies can be read (kafka-dump-log.sh --deep-iteration) before "
        "one of them leads.",
    ),
}
"""What a broker may have that the others have not."""
