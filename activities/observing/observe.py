"""`observe`: one look at everything, all parts at once. What does not answer is named, and never stops the look."""

import asyncio
import math
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from activities.last_words import last_words
from activities.node_files import look_at_disk
from activities.observing.configuration_hook import is_paused
from activities.observing.in_time import time_for
from activities.observing.member_trees import ensure_not_torn
from activities.observing.running_values import with_running_values
from activities.observing.standbys import with_standbys
from activities.observing.zookeeper_view import view_of
from activities.ports.nodes import NodeDriver
from activities.ports.ports import Ports
from activities.ports.zookeeper import session
from domain.cluster import NodeSpec, Role, shown
from domain.errors import BrokerApart, KeeperlessError, NotLetIn, Obstacle, Permanent, Transient, obstacle_of
from domain.observed.observation import NodeMetrics, NodeView, Observation, Unanswered, ZooKeeperView
from domain.observed.parts import GAUGES_OF_ANOTHER, no_answer
from domain.policy import MigrationPolicy
from domain.records import ClusterRecord
from domain.rolling.configuration_management import part_name

T = TypeVar("T")

KAFKA_JAR = re.compile(r"kafka_2\.\d+-(\d+\.\d+\.\d+(?:[.-]\w+)*)\.jar")
"""Kafka's core jar: Scala's version, then Kafka's."""

INSTALLATION_SECONDS = 5.0
"""To list one folder, which may lie on a network's file system."""

NODE_SECONDS = 20.0
"""For a node's process and files where nobody waits for the whole: a disk that hangs gives no answer at all."""

DEFAULT_POLICY = MigrationPolicy()


@dataclass(frozen=True)
class Early:
    """Where something has not answered after `seconds`, what has by then is given to `tell`, once. The rest is waited for
    meanwhile."""

    seconds: float
    tell: Callable[[Observation], None]


@dataclass
class _Answers:
    """Of one look so far: what has given none, what has given none yet, and what is known of each node."""

    unanswered: list[Unanswered] = field(default_factory=list)
    awaited: set[str] = field(default_factory=set)
    nodes: dict[int, NodeView] = field(default_factory=dict)

    def node(self, node_id: int) -> NodeView:
        return self.nodes.get(node_id, NodeView(id=node_id))

    def learn(self, node_id: int, **known: object) -> None:
        self.nodes[node_id] = self.node(node_id).model_copy(update=known)


async def observe(
    cluster: ClusterRecord,
    ports: Ports,
    part_seconds: float | None = None,
    early: Early | None = None,
) -> Observation:
    """Look once at ZooKeeper, at Kafka and at every node, each within its own time limit. Where something is wrong, say why.

    `part_seconds`: how long to wait for ZooKeeper, for Kafka and for each node's files, where somebody waits for the whole;
    `None`: as long as each has time. `early`: who is told before, where something is late.
    """
    started_at, answers = datetime.now(UTC), _Answers()
    look_at_zookeeper = partial(_look_at_zookeeper, cluster, ports) if cluster.spec.zookeeper is not None else _nothing
    zookeeper = asyncio.create_task(_answer("zookeeper", look_at_zookeeper, answers, part_seconds))
    kafka = asyncio.create_task(_answer("kafka", partial(ports.kafka.view, cluster), answers, part_seconds))

    def seen(*late: Unanswered) -> Observation:
        return Observation(
            cluster=cluster.spec.name,
            spec_revision=cluster.revision,
            started_at=started_at,
            ended_at=datetime.now(UTC),
            zookeeper=zookeeper.result() if zookeeper.done() else None,
            kafka=kafka.result() if kafka.done() else None,
            nodes=tuple(answers.node(node.id) for node in cluster.spec.nodes),
            unanswered=tuple(sorted([*answers.unanswered, *late], key=lambda part: part.what)),
        )

    def tell(early: Early) -> None:
        why = no_answer(early.seconds)
        early.tell(seen(*(Unanswered(what=what, why=why, is_cut_short=True) for what in answers.awaited)))

    telling = asyncio.get_running_loop().call_later(early.seconds, tell, early) if early is not None else None
    try:
        nodes = (_look_at_node(cluster, node, ports, answers, part_seconds) for node in cluster.spec.nodes)
        await asyncio.gather(zookeeper, kafka, *nodes)
    finally:
        if telling is not None:
            telling.cancel()
    observation = await with_running_values(seen(), cluster, ports.kafka)
    return await with_standbys(observation, cluster.spec, ports.metrics)


async def observe_for(
    kind: str,
    cluster: ClusterRecord,
    ports: Ports,
    policy: MigrationPolicy = DEFAULT_POLICY,
    names_seconds: float | None = None,
    part_seconds: float | None = None,
    early: Early | None = None,
) -> Observation:
    """The same, with what a kind of migration looks at besides. The policy says what counts as wrong.

    `names_seconds`: as in `Probe`. All that is searched so late has what is left of the time for the whole (`in_time`).
    """
    observation = await observe(cluster, ports, part_seconds, early)
    return await ports.kinds[kind].probe(observation, cluster, ports, policy, names_seconds)


async def _nothing() -> None:
    """Of a cluster without ZooKeeper."""


async def _answer(
    what: str,
    ask: Callable[[], Awaitable[T]],
    answers: _Answers,
    seconds: float | None = None,
    patience: float = math.inf,
) -> T | None:
    """The answer, or `None` with the reason noted. Only errors that a port promises: anything else is a bug and raises.
    `patience`: what it has without `seconds`."""
    limit = time_for(patience if seconds is None else seconds)
    answers.awaited.add(what)
    try:
        async with asyncio.timeout(None if limit == math.inf else limit):
            return await ask()
    except KeeperlessError as error:
        answers.unanswered.append(_unanswered(what, error))
    except TimeoutError:
        answers.unanswered.append(Unanswered(what=what, why=no_answer(limit), is_cut_short=limit < patience))
    finally:
        answers.awaited.discard(what)
    return None


def _unanswered(what: str, error: KeeperlessError) -> Unanswered:
    apart = error if isinstance(error, BrokerApart) else None
    return Unanswered(
        what=what,
        why=str(error),
        is_refused=isinstance(error, Permanent | NotLetIn),
        broker_id=apart.broker_id if apart is not None else None,
        address=apart.address if apart is not None else None,
        obstacle=obstacle_of(error),
        listed=tuple(sorted(apart.listed)) if apart is not None else (),
    )


async def _installed_version(driver: NodeDriver, kafka_home: str) -> str | None:
    """Kafka's version by the name of its jar, for nodes whose metrics tell no text (the Prometheus exporter's)."""
    found = await installed_jars(driver, kafka_home)
    return found.pop() if len(found) == 1 else None


async def installed_jars(driver: NodeDriver, kafka_home: str) -> set[str]:
    """The versions of Kafka whose jar is there: one, in an installation that is whole."""
    names = await driver.list_dir(f"{kafka_home}/libs") or ()
    return {match[1] for name in names if (match := KAFKA_JAR.fullmatch(name))}


async def _look_at_zookeeper(cluster: ClusterRecord, ports: Ports) -> ZooKeeperView:
    """Of two ensembles a session shows one, and the next look's the other."""

    async def read() -> ZooKeeperView:
        async with session(ports.zookeepers, cluster) as tree:
            return await view_of(tree)

    torn, view = await asyncio.gather(ensure_not_torn(cluster, ports.zookeepers), read(), return_exceptions=True)
    if isinstance(torn, BaseException):
        raise torn
    if isinstance(view, BaseException):
        raise view
    return view


async def _look_at_node(cluster: ClusterRecord, node: NodeSpec, ports: Ports, answers: _Answers, seconds: float | None) -> None:
    name = cluster.spec.node_name(node.id)
    driver = ports.drivers.driver(node)
    disk = partial(look_at_disk, driver, node.properties_file, node.log_dirs, cluster.spec.cluster_id, node.id)
    paused = partial(_is_configuration_paused, driver, node)

    async def look_at_files() -> None:
        answers.learn(node.id, disk=await _answer(f"files of {name}", disk, answers, seconds, NODE_SECONDS))

    async def look_at_configuration() -> None:
        answers.learn(node.id, is_configuration_paused=await _answer(part_name(name), paused, answers, seconds))

    await asyncio.gather(_look_at_process(cluster, node, ports, answers, seconds), look_at_files(), look_at_configuration())
    if answers.node(node.id).is_unstarted:
        answers.learn(node.id, last_output=())


async def _look_at_process(
    cluster: ClusterRecord, node: NodeSpec, ports: Ports, answers: _Answers, seconds: float | None
) -> None:
    """All that is not in its files."""
    name = cluster.spec.node_name(node.id)
    driver = ports.drivers.driver(node)
    process = await _answer(f"process of {name}", driver.process, answers, seconds, NODE_SECONDS)
    answers.learn(node.id, process=process)
    if process is not None and not process.is_running and await _is_serving(ports, node, cluster.spec.role(node.id)):
        # It may have started since.
        process = await _answer(f"process of {name}", driver.process, answers, seconds, NODE_SECONDS)
        answers.learn(node.id, process=process, is_unowned=process is not None and not process.is_running)
    if process is None or answers.node(node.id).is_unowned:
        return
    if process.is_running:
        metrics = await _answer(f"metrics of {name}", partial(_gauges, ports, node), answers)
        answers.learn(node.id, metrics=metrics)
        if metrics is not None and metrics.kafka_version is None:
            listed = partial(_installed_version, driver, node.kafka_home)
            version = await _answer(f"installation of {name}", listed, answers, seconds, INSTALLATION_SECONDS)
            answers.learn(node.id, metrics=metrics.model_copy(update={"kafka_version": version}))
    elif process.last_identity is not None:
        lines = await _answer(f"output of {name}", partial(last_words, driver), answers, seconds, NODE_SECONDS)
        answers.learn(node.id, last_output=lines or ())


async def _is_serving(ports: Ports, node: NodeSpec, role: Role) -> bool:
    """Whether its endpoint answers with gauges of its role although no process is known: its pid file is lost or another's, it
    was started by other hands, or its processes cannot be seen from here. Silence is what a dead node has."""
    try:
        metrics = await _gauges(ports, node)
    except KeeperlessError:
        return False
    return (metrics.broker_state if role is Role.BROKER else metrics.active_controller_count) is not None


async def _gauges(ports: Ports, node: NodeSpec) -> NodeMetrics:
    """Its own: the address of another's tells nothing of it."""
    metrics = await ports.metrics.read(node.metrics)
    if metrics.node_id not in {None, node.id}:
        told = f"{shown(node.metrics.url)}: {GAUGES_OF_ANOTHER} {metrics.node_id}"
        raise Transient(told, obstacle=Obstacle.ANOTHERS)
    return metrics


async def _is_configuration_paused(driver: NodeDriver, node: NodeSpec) -> bool | None:
    hook = node.driver.configuration_management
    return None if hook is None else await is_paused(driver, hook)
