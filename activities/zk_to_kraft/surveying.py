"""`with_survey`: adds to an observation what only an assessment before the start looks at. Small clusters take it in a second.

What does not answer joins `unanswered`, so that it is waited for. What we may never have is named in `missing`: then the
checks that need it say `unverifiable`.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from activities.observing.node_survey import CannotLook, Files, look_at_node, read_settings, request_of
from activities.observing.running_values import running_of
from activities.ports.ports import Ports
from activities.ports.zookeeper import session
from activities.survey.broker_logins import try_logins
from activities.survey.canaries import refused_canaries
from activities.survey.java_trials import trials_of, trials_of_new
from activities.survey.key_stores import NodeSettings
from activities.survey.start_commands import Overrides, overrides_of, signs_of_command
from activities.zk_to_kraft.listener_look import security_of, settings_of_node, stores_of
from activities.zk_to_kraft.zookeeper_survey import survey_servers, survey_zookeeper
from domain.checks.unapplied import PART, unapplied
from domain.cluster import ClusterSpec, ControllerSpec, NodeSpec
from domain.diagnosis.machines.start import JavaTrial
from domain.errors import KeeperlessError, Permanent
from domain.observed.observation import Observation, Process
from domain.observed.parts import Unanswered
from domain.observed.survey import (
    ListenerSecurity,
    LoginTried,
    NodeLook,
    NodeSurvey,
    Registration,
    StartedWith,
    Survey,
    Unapplied,
    ZooKeeperSurvey,
)
from domain.observed.topic_directories import TopicZnode, topic_of
from domain.policy import MigrationPolicy
from domain.records import ClusterRecord
from domain.zk_to_kraft.node_config import node_file
from domain.zk_to_kraft.steps import NodeStage
from domain.zk_to_kraft.wanted_file import files_ahead, files_of_new

T = TypeVar("T")

KEY_BYTES = 32


@dataclass
class Gaps:
    """What a survey did not get."""

    unanswered: list[Unanswered] = field(default_factory=list)
    missing: list[Unanswered] = field(default_factory=list)

    async def part(self, what: str, ask: Callable[[], Awaitable[T]]) -> T | None:
        try:
            return await ask()
        except (CannotLook, Permanent) as error:
            self.missing.append(Unanswered(what=what, why=str(error)))
        except KeeperlessError as error:
            self.unanswered.append(Unanswered(what=what, why=str(error)))
        return None


async def with_survey(observation: Observation, cluster: ClusterRecord, policy: MigrationPolicy, ports: Ports) -> Observation:
    """The observation with the survey that it lacks, and with whatever of that did not answer. `policy`: what it has made."""
    gaps = Gaps()
    servers = await survey_servers(ports.zookeepers, cluster.spec.ensemble.connect)
    running = [b.id for b in cluster.spec.brokers if _is_running(observation.node(b.id).process)]
    found, log_dirs, canaries, runs = await asyncio.gather(
        gaps.part("survey of zookeeper", partial(_zookeeper, cluster, ports)),
        gaps.part("log directories", partial(ports.kafka.log_dirs, cluster)),
        gaps.part("canaries", partial(refused_canaries, cluster, policy, ports)),
        gaps.part(PART, partial(ports.kafka.started_with, cluster, running)),
    )
    zookeeper, topics = found if found is not None else (None, ())
    registrations = zookeeper.registrations if zookeeper else ()
    topic_ids = {topic.name: topic.id or "" for topic in topics}
    nodes = await _nodes(observation, cluster, ports, registrations, topic_ids, runs or {}, gaps)
    survey = Survey(
        nodes=nodes,
        zookeeper=zookeeper,
        servers=servers,
        log_dirs=log_dirs,
        refused_canaries=canaries,
        missing=_sorted(gaps.missing),
        topics=_at_odds(topics, nodes),
    )
    unanswered = (*observation.unanswered, *gaps.unanswered)
    return observation.model_copy(update={"survey": survey, "unanswered": _sorted(unanswered)})


def _at_odds(topics: Iterable[TopicZnode], nodes: Iterable[NodeSurvey]) -> tuple[TopicZnode, ...]:
    """Without an id, or with another one on a broker's disk."""
    named = {topic_of(path) for node in nodes if node.look is not None for path in node.look.topic_ids.ids}
    return tuple(topic for topic in topics if topic.id is None or topic.name in named)


def _sorted(parts: list[Unanswered] | tuple[Unanswered, ...]) -> tuple[Unanswered, ...]:
    return tuple(sorted(parts, key=lambda part: part.what))


async def _zookeeper(cluster: ClusterRecord, ports: Ports) -> tuple[ZooKeeperSurvey, tuple[TopicZnode, ...]]:
    async with session(ports.zookeepers, cluster) as tree:
        return await survey_zookeeper(tree)


async def _nodes(
    observation: Observation,
    cluster: ClusterRecord,
    ports: Ports,
    registrations: tuple[Registration, ...],
    topic_ids: dict[str, str],
    runs: Mapping[int, StartedWith],
    gaps: Gaps,
) -> tuple[NodeSurvey, ...]:
    """All settings first: controllers are asked about what they will take over from the first broker."""
    spec, key = cluster.spec, secrets.token_bytes(KEY_BYTES)
    drivers = {node.id: ports.drivers.driver(node) for node in spec.nodes}
    read = (gaps.part(f"settings of {spec.node_name(n.id)}", partial(read_settings, drivers[n.id], n)) for n in spec.nodes)
    files = dict(zip((n.id for n in spec.nodes), await asyncio.gather(*read), strict=True))
    first = files[spec.brokers[0].id] or Files()
    of_first = {**first.properties, **running_of(first.properties, runs.get(spec.brokers[0].id))}

    async def trials(node: NodeSpec, pid: int | None) -> tuple[JavaTrial, ...]:
        own = files[node.id]
        if pid is not None:
            return await trials_of(drivers[node.id], node, pid, files_ahead((own or Files()).properties, spec, node))
        if isinstance(node, ControllerSpec) and first.properties and own is not None and not (own.lacks_base or own.malformed):
            return await trials_of_new(drivers[node.id], node, files_of_new(spec, node, own.properties, first.properties))
        return ()

    async def survey(node: NodeSpec) -> NodeSurvey:
        own = files[node.id] or Files()
        request = request_of(spec, node, registrations, of_first, own.properties)
        process = observation.node(node.id).process
        pid = _pid(process)

        async def ask() -> NodeLook:
            found = await look_at_node(drivers[node.id], node, pid, request, topic_ids)
            return found.model_copy(update={"trials": await trials(node, pid)})

        look = await gaps.part(f"look at {spec.node_name(node.id)}", ask)
        writing = await gaps.part(
            f"start command of {spec.node_name(node.id)}", partial(signs_of_command, drivers[node.id], node)
        )
        overrides = await overrides_of(drivers[node.id], node, process.pid if process is not None else "")
        edits = _unapplied(spec, node, process, own.properties, runs.get(node.id), overrides)
        owners = None if writing is None else (*own.owners, *writing)
        command = {"owners": owners, "overrides": overrides.told, "is_command_unread": overrides.running is None}
        found = own.survey(node.id, key, running_of(own.properties, runs.get(node.id)))
        return found.model_copy(update={"look": look, "unapplied": edits, **command})

    own = {node_id: (file or Files()).properties for node_id, file in files.items()}
    asked = {n.id: settings_of_node(n, drivers[n.id], first.properties, own[n.id]) for n in spec.nodes}
    nodes, security, logins = await asyncio.gather(
        asyncio.gather(*map(survey, spec.nodes)), _security(spec, asked, key, gaps), _logins(spec, asked, registrations, gaps)
    )
    return tuple(n.model_copy(update={"security": security.get(n.id), "logins": logins.get(n.id) or ()}) for n in nodes)


async def _security(spec: ClusterSpec, asked: dict[int, NodeSettings], key: bytes, gaps: Gaps) -> dict[int, ListenerSecurity]:
    """For the controllers' listener, where it is not plain."""
    if spec.controller_security_protocol == "PLAINTEXT":
        return {}
    looks = (gaps.part(f"security of {spec.node_name(n)}", partial(stores_of, spec, one)) for n, one in asked.items())
    found = dict(zip(asked, await asyncio.gather(*looks), strict=True))
    stores = {node_id: seen for node_id, seen in found.items() if seen is not None}
    return security_of(spec, {node_id: asked[node_id] for node_id in stores}, stores, key)


async def _logins(
    spec: ClusterSpec, asked: dict[int, NodeSettings], registrations: tuple[Registration, ...], gaps: Gaps
) -> dict[int, tuple[LoginTried, ...] | None]:
    ids = [controller.id for controller in spec.controllers]
    tries = (gaps.part(f"logins from {spec.node_name(n)}", partial(try_logins, asked[n], registrations)) for n in ids)
    return dict(zip(ids, await asyncio.gather(*tries), strict=True))


def _unapplied(
    spec: ClusterSpec,
    node: NodeSpec,
    process: Process | None,
    file: Mapping[str, str],
    runs: StartedWith | None,
    overrides: Overrides,
) -> tuple[Unapplied, ...] | None:
    """What the first restart would put into force; `None` where nobody told what it runs with."""
    if runs is None or process is None:
        return None
    return unapplied(lambda text: node_file(text, spec, node, NodeStage.MIGRATION), file, runs, overrides.given)


def _is_running(process: Process | None) -> bool:
    return process is not None and process.is_running


def _pid(process: Process | None) -> int | None:
    """`4711@123` is pid and start time; another driver's identity may be neither."""
    pid = process.pid if process is not None and process.is_running else ""
    return int(pid) if pid.isdecimal() else None
