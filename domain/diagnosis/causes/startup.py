"""Nodes that run and do not serve yet, or end and do not come to their end: what they wait for, by log, metrics and threads."""

import re
from collections.abc import Iterator
from datetime import timedelta

from domain.checks.check import some
from domain.cluster import Role, shown
from domain.diagnosis.causes.case import EXPLAINED_BY, Case, Cause
from domain.diagnosis.causes.quotes import complaints, last_word, leaders_word
from domain.diagnosis.causes.reachability import CORRECT_ENDPOINT
from domain.diagnosis.logs.connecting import refusals_in
from domain.diagnosis.logs.lines import CLOCKS, ENDED, ZONES, age_of, of_this_process, stamp_of
from domain.diagnosis.logs.replication import ROLL_LESS, rolled_in
from domain.diagnosis.logs.running import loading_in, waiting_in
from domain.diagnosis.machines.notes import ZOOKEEPER
from domain.observed.observation import NodeView
from domain.topic_ids import IDS_FIRST
from domain.waits import WaitReason

STARTING = timedelta(seconds=60)
"""Kafka registers the gauges of its state as it starts, before anything that takes long."""
OF_BROKERS = {"broker_state": "kafka.server:type=KafkaServer,name=BrokerState"}
OF_CONTROLLERS = {
    "raft_log_end": "kafka.server:type=raft-metrics",
    "active_controller_count": "kafka.controller:type=KafkaController,name=ActiveControllerCount",
}
"""By field of `NodeMetrics`: the MBeans that say whether a node serves."""


def not_shown(case: Case, view: NodeView) -> str:
    """An MBean that Kafka has registered long since, and that its metrics endpoint answers without; else empty."""
    metrics, process = view.metrics, view.process
    if metrics is None or process is None or process.started_at is None:
        return ""
    wanted = OF_BROKERS if case.spec.role(view.id) is Role.BROKER else OF_CONTROLLERS
    missing = [name for field, name in wanted.items() if getattr(metrics, field) is None]
    return missing[0] if missing and case.observation.ended_at - process.started_at > STARTING else ""


LEFT_OUT_BY_KAFKA = (
    "Remove that setting, which takes effect immediately and restarts nothing: kafka-configs.sh --alter "
    "--entity-type brokers --entity-default (or --entity-name ID) --delete-config "
    "metrics.jmx.include,metrics.jmx.exclude (the one that is set). Kafka itself has shown fewer gauges "
    "since it was set for running brokers. Agents and their files are not the cause."
)


def _left_out_by_kafka(case: Case) -> list[str]:
    """What somebody has set since of which MBeans its reporter shows (KIP-544)."""
    changes = case.hints.changes.get(ZOOKEEPER)
    return [line for line in (changes.changes if changes is not None else ()) if line.startswith("metrics.jmx.")]


def unmeasured(case: Case, view: NodeView, missing: str, code: WaitReason = WaitReason.NODE_NOT_READY) -> Cause:
    name, url = case.name(view.id), shown(case.spec.node(view.id).metrics.url)
    set_since = _left_out_by_kafka(case) if case.spec.role(view.id) is Role.BROKER else []
    lacks = f"{url} lacks {missing}" + (f". Set in ZooKeeper since: {some(set_since)}" if set_since else "")
    return case.cause(
        code,
        name,
        *EXPLAINED_BY[case.spec.role(view.id)],
        observed=f"its process runs, and its metrics endpoint lacks what says whether it serves: {lacks}",
        expected="Kafka's own gauges at the endpoint",
        fix=LEFT_OUT_BY_KAFKA
        if set_since
        else (
            "Restore the agent's configuration, so that it shows Kafka's gauges (includeObjectNames and rules of the "
            "JMX exporter, Jolokia's access rules). Compare it with a node that shows them. The JMX exporter reads "
            f"its file again by itself. Or the endpoint is another program's. {CORRECT_ENDPOINT}"
        ),
    )


ENDING = timedelta(seconds=5)
"""A JVM ends within a second or two of it."""
LAST_LINES = 20
"""After it only those say something that keep the process."""


def lingering(case: Case, view: NodeView) -> Iterator[Cause]:
    """Kafka has ended and its JVM has not, while a step of ours, which kills nobody, waits for that.

    Only the process that the step is to stop: one that it has started since stands below the same words in the same log.
    And only what that has said since the step began: it is advised to kill it.
    """
    mark, process = view.mark, view.process
    if mark is None or process is None or not process.is_running or process.identity != mark.before_identity:
        return
    age, now = _ended_ago(case, view), case.observation.ended_at
    if age is None or case.step_since is None or not ENDING <= age <= now - case.step_since + CLOCKS:
        return
    name, pid = case.name(view.id), process.pid
    yield case.cause(
        WaitReason.NODE_NOT_READY,
        name,
        *EXPLAINED_BY[case.spec.role(view.id)],
        observed=f"Kafka has shut down, by its log, and its process {pid} has not ended",
        expected="a process that ends once Kafka has shut down",
        fix=f"Fix what keeps it: a Java agent or a plug-in with a shutdown hook that waits (`jstack {pid}` names it). "
        f"Or end the process: kill -9 {pid} loses nothing, because Kafka has closed its logs. The step then "
        "continues by itself. Every other node with that agent will wait in the same way.",
    )


def _ended_ago(case: Case, view: NodeView) -> timedelta | None:
    """How long ago Kafka has ended in its process, by what is known to be of that; `None` where it has not, or nobody knows.

    The time of the file is that of its last line, whatever the node's zone: `age_of` alone takes what is old for new.
    """
    output, now = case.hints.outputs.get(case.name(view.id)), case.observation.ended_at
    if output is None or output.changed_at is None or not output.lines:
        return None
    ended = [stamp for line in output.lines[-LAST_LINES:] if ENDED.search(line) and (stamp := stamp_of(line)) is not None]
    newest, apparent = stamp_of(output.lines[-1]), age_of(output.lines[-1], now)
    if not ended or newest is None or apparent is None:
        return None
    quiet = now - output.changed_at
    is_of_then = (quiet - apparent + CLOCKS) % ZONES <= 2 * CLOCKS
    return quiet + (newest - ended[-1]) if is_of_then else None


ASKS = re.compile(
    r"(?:Starting|Beginning|Retrying|Error during) controlled shutdown|Remaining partitions to move during controlled shutdown|"
    r"in PENDING_CONTROLLED_SHUTDOWN state, still waiting for the active controller"
)
LET_GO = re.compile(
    r"Controlled shutdown request returned successfully|asked us to exit controlled shutdown|"
    r"Proceeding to do an unclean shutdown|Timed out waiting for the controller to approve controlled shutdown|"
    r"exception waiting for controlled shutdown future"
)
"""By what it answered, or because it was asked for long enough (KafkaServer, BrokerServer, BrokerLifecycleManager)."""
ELECT_ANOTHER = (
    "If it has been in the same lock for minutes, let the brokers elect another controller, which loses "
    f"nothing as long as ZooKeeper has the metadata (in zkCli.sh: delete /controller). {IDS_FIRST}"
)


def _asks_the_controller(case: Case, view: NodeView) -> tuple[str, str]:
    """Whom it waits for, as a further sentence, and where that is to be looked at; empty where it does not, or nobody knows."""
    asked: list[str] = []
    for line in of_this_process(case.log(view.id)):
        asked = [] if LET_GO.search(line) else [*asked, line] if ASKS.search(line) else asked
    asks = _controller(case)
    if not asked or asks is None:
        return "", ""
    node_id, is_elected = asks
    thread = "controller-event-thread" if is_elected else f"quorum-controller-{node_id}-event-handler"
    name, process, begun = case.name(node_id), case.observation.node(node_id).process, stamp_of(asked[0])
    since = f" since {begun:%H:%M:%S} by its log," if begun is not None else ""
    pid = process.pid if process is not None and process.is_running else "PID"
    return (
        f". It asks {name}, the controller, to move its leaders to others,{since} and has not been let go",
        f"Look at {name} first: its log, and whether its thread {thread} gets on (`jcmd {pid} Thread.print` there, twice "
        f"within seconds). What that stands in, a disk, ZooKeeper, a plug-in, has to answer. "
        f"{ELECT_ANOTHER if is_elected else ''}",
    )


def _controller(case: Case) -> tuple[int, bool] | None:
    """Who moves leaders, and whether that is a broker: of ZooKeeper's the one that holds /controller."""
    zookeeper, leader = case.observation.zookeeper, case.leader
    claim = zookeeper.controller if zookeeper is not None else None
    if claim is not None and claim.is_ephemeral:
        is_known = any(broker.id == claim.broker_id for broker in case.spec.brokers)
        return (claim.broker_id, True) if is_known else None
    return (leader.id, False) if leader is not None else None


def ending(case: Case, view: NodeView) -> Cause:
    """A step of ours waits for its end."""
    asks, first = _asks_the_controller(case, view)
    name, metrics = case.name(view.id), view.metrics
    pid = view.process.pid if view.process is not None else ""
    state = f", BrokerState {metrics.broker_state}" if metrics is not None and metrics.broker_state is not None else ""
    return case.cause(
        WaitReason.NODE_NOT_READY,
        name,
        *EXPLAINED_BY[case.spec.role(view.id)],
        observed=f"the step that restarts it has asked it to stop, or is about to, and its process {pid} still "
        f"runs{state}{asks}"
        + complaints(case, view.id)
        + (leaders_word(case, view.id) if case.spec.role(view.id) is Role.BROKER else "")
        + last_word(case, view.id),
        expected="it ends, and is started again by the step",
        fix=f"{first}Give a broker's controlled shutdown its time (controlled.shutdown.max.retries, "
        "policy.stop_deadline): it is never killed. If its log does not move, its last line shows what hangs, "
        "for instance a plug-in that is closed (`Closing reporter`). Fix that, and the step continues by itself.",
        since=case.step_since,
        is_only_late=not first,
    )


SHUTTING_DOWN = frozenset({6, 7})
"""BrokerState: PENDING_CONTROLLED_SHUTDOWN, SHUTTING_DOWN (org.apache.kafka.metadata.BrokerState)."""
AWAIT_SERVING = (
    "Wait a minute. If it lasts, its last line shows what it waits for: ZooKeeper, the controllers, or a "
    "plug-in (reporter, authorizer, login module) whose own service does not answer; `jstack` of its process "
    "names that."
)
AWAITED = {
    "controller quorum voters future": (
        "Check that its machine resolves every host in controller.quorum.voters (getent hosts): it looks up the "
        "controllers. It continues by itself."
    ),
    "broker metadata publishers to be installed": (
        "Check that a controller leads, and that this node reaches the controllers' listener: it reads the quorum's "
        "log. It continues by itself."
    ),
    "controller to acknowledge that we are caught up": (
        "Check that a controller leads, what it answers to `registerBroker`, and that this node reaches the "
        "controllers' listener (a firewall, TLS, SASL, controller.quorum.voters): it has to register, and to read "
        "the quorum's whole log. It continues by itself."
    ),
    "initial broker metadata update to be published": (
        "Wait a minute: it reads its logs, and applies topics, configs and ACLs from the quorum's log. How long that "
        "takes depends on its disks."
    ),
    "broker to be unfenced": (
        "Check that a controller leads, and what it answers to the heartbeats (`Unable to send broker heartbeat`, "
        "`received error` in this node's log). The active controller unfences it when its heartbeats arrive and it "
        "has the log up to its own registration. It continues by itself."
    ),
    "all of the authorizer futures to be completed": (
        "Check what its authorizer waits for: Kafka's own waits for the quorum's log, a plug-in for its own service. "
        "It continues by itself."
    ),
    "all of the SocketServer Acceptors to be started": (
        "Wait: its listeners open last, when the authorizer lets them. It continues by itself."
    ),
}
"""By what a broker or controller waits for, in its own words: all waits of Kafka 3.9 (BrokerServer, ControllerServer)."""
LOADS = "It reads its logs, and where its stop was not clean checks all that was not flushed"
AWAIT_LOGS = (
    "Wait: nothing is lost, and a restart would begin again. The time depends on its disks and on what was "
    "not flushed; num.recovery.threads.per.data.dir (1 by default) sets how many logs of a directory it "
    "reads in parallel, from its next start on. If the numbers do not change, check its disk."
)
AWAIT_END = (
    "Give its controlled shutdown time (controlled.shutdown.max.retries); its log shows what it waits for. "
    "When it has ended, start it: no other node restarts before it serves. It was asked to stop."
)


def not_ready(case: Case, view: NodeView) -> Cause:
    name, metrics = case.name(view.id), view.metrics
    state = (
        f"BrokerState {metrics.broker_state}, expected 3" if metrics is not None and metrics.broker_state is not None else ""
    )
    lines = case.log(view.id)
    refused, loading, awaited = refusals_in(lines), loading_in(lines), waiting_in(lines)
    said = [found.quote for found in refused] + ([f"{LOADS}: {loading}"] if loading else [])
    said += [f"It waits for {awaited}, by its log"] if awaited else []
    fixes = [found.told.fix for found in refused] + ([AWAIT_LOGS] if loading else [])
    is_ending = metrics is not None and metrics.broker_state in SHUTTING_DOWN
    begun = "it is ending, and does not end" if is_ending else "it runs and does not serve yet"
    observed = ". ".join([begun, *filter(None, [state]), *said])
    is_explained = bool(refused or loading)
    if not is_explained:
        observed += complaints(case, view.id)
        observed += leaders_word(case, view.id) if case.spec.role(view.id) is Role.BROKER else ""
        observed += "" if awaited else last_word(case, view.id)
    rolled = rolled_in([case.log(view.id)])
    fix = fixes[0] if fixes else AWAIT_END if is_ending else AWAITED.get(awaited, AWAIT_SERVING)
    return case.cause(
        WaitReason.NODE_NOT_READY,
        name,
        *EXPLAINED_BY[case.spec.role(view.id)],
        observed=f"{observed}{rolled}",
        expected=f"{name} serves",
        fix=f"{ROLL_LESS if rolled else ''}{fix}",
        since=view.process.started_at if view.process is not None else None,
        is_only_late=not (refused or rolled),
    )
