"""What the preflight asks of one node: its settings, and what a program that is run there once says. Writes nothing.

The program is handed over as an argument of `python3 -c`, so that nothing has to be put on the node.
"""

import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

from activities.node_files import storage_of
from activities.on_node import command_of
from activities.ports.nodes import MemberMachine, NodeDriver
from domain.cluster import BrokerSpec, ClusterSpec, ControllerSpec, NodeSpec
from domain.configuration.kafka_properties import CLASSES_OF_CONTROLLERS
from domain.configuration.listener_security import inter_broker_listener, principal_of, protocol_of
from domain.configuration.odd_characters import OddCharacter, odd_characters
from domain.configuration.properties import ENCODING, parse
from domain.configuration.provided_values import is_provided
from domain.diagnosis.machines.file_owners import Sign, signs_in_file
from domain.diagnosis.machines.start import StartPlace, user_of_start
from domain.errors import Malformed, Permanent, Transient
from domain.observed.observation import OBSERVED_PROPERTIES
from domain.observed.survey import SURVEYED_PROPERTIES, NodeLook, NodeSurvey, Registration
from domain.observed.topic_directories import DiskIds, topic_of
from domain.redaction import is_name, shown_value

LOOK_TIME = timedelta(seconds=60)
UNNAMED = "lines without the name of a property"
OF_A_LOOK = {"unit", "unopened", "held_by", "denied", "unheld", "elsewhere", "unseen"}
"""Fields of a `StartPlace` that belong to the look at a node."""
NOTHING: Mapping[str, str] = MappingProxyType({})


class CannotLook(Exception):
    """This machine cannot say anything, and why."""


@dataclass(frozen=True)
class Files:
    """A node's settings as its file has them; of a controller that is to be made, its `base_properties`."""

    properties: Mapping[str, str] = field(default_factory=dict)
    lacks_base: bool = False
    odd_characters: tuple[OddCharacter, ...] = ()
    malformed: str = ""
    owners: tuple[Sign, ...] = ()

    def survey(self, node_id: int, key: bytes, running: Mapping[str, str] = NOTHING) -> NodeSurvey:
        """`running`: what the running broker has of values that a configuration provider gives."""
        shown = {name: shown_value(name, value) for name, value in self.properties.items() if name in SURVEYED_PROPERTIES}
        return NodeSurvey(
            id=node_id,
            settings=shown,
            digests=self._digests(key),
            principal=principal_of({**self.properties, **running}),
            lacks_base=self.lacks_base,
            running={name: value for name, value in running.items() if name in shown},
            odd_characters=self.odd_characters,
            malformed=self.malformed,
        )

    def _digests(self, key: bytes) -> dict[str, str]:
        """What has no property's name, as half of a value that was broken into lines, counts together."""
        hidden = {k: v for k, v in sorted(self.properties.items()) if k not in SURVEYED_PROPERTIES | OBSERVED_PROPERTIES}
        unnamed = [f"{name}={value}" for name, value in hidden.items() if not is_name(name, value)]
        found = {name: keyed_digest(key, name, value) for name, value in hidden.items() if is_name(name, value)}
        return found | ({UNNAMED: keyed_digest(key, UNNAMED, "\n".join(unnamed))} if unnamed else {})


def keyed_digest(key: bytes, name: str, value: str) -> str:
    """Tells whether two values are the same, and neither of them."""
    return hmac.new(key, f"{name}={value}".encode(), "sha256").hexdigest()[:16]


async def read_settings(driver: NodeDriver, node: NodeSpec) -> Files:
    path = node.base_properties if isinstance(node, ControllerSpec) else node.properties_file
    file = await driver.read_file(path) if path is not None else None
    if file is None:
        return Files(lacks_base=isinstance(node, ControllerSpec) and path is not None)
    text = file.content.decode(ENCODING)
    try:
        owners = signs_in_file(path or "", text, is_edited=not isinstance(node, ControllerSpec))
        return Files(parse(text, path or ""), odd_characters=odd_characters(text), owners=owners)
    except Malformed as error:
        return Files(malformed=str(error))


async def look_at_node(
    driver: NodeDriver, node: NodeSpec, pid: int | None, request: Mapping[str, object], topic_ids: Mapping[str, str]
) -> NodeLook:
    """Run the program. `topic_ids`: as ZooKeeper has them, empty for none; those on disk are held against them here, for there
    may be many."""
    asked = {
        "log_dirs": node.log_dirs,
        "archive": str(Path(node.properties_file).parent),
        "kafka_home": node.kafka_home,
        "pid": pid,
        "class_path": node.further_classes,
        **request,
    }
    answer = json.loads(await run_program(driver, command_of("look_at_node", asked)))
    answer["topic_ids"] = disk_ids(answer.pop("without_id"), answer["topic_ids"], topic_ids)
    place = await start_place(driver, node, pid)
    return NodeLook.model_validate(answer | place.model_dump(include=OF_A_LOOK))


def disk_ids(without: Sequence[str], on_disk: Mapping[str, str], topic_ids: Mapping[str, str]) -> DiskIds:
    """Topics that ZooKeeper does not have are left out."""
    other = {path: found for path, found in sorted(on_disk.items()) if topic_ids.get(topic_of(path), found) != found}
    return DiskIds(without=tuple(sorted(without)), ids=other)


async def start_place(driver: NodeDriver, node: NodeSpec, pid: int | None = None) -> StartPlace:
    """In what its process would be that is started from there. `pid`: of that which runs. Raises `CannotLook`, `Transient`.

    A broker locks all its log directories, a controller the one that has the quorum's log (KafkaRaftManager.scala).
    """
    service, metadata_dir = node.driver.service, (await storage_of(driver, node)).metadata_dir
    files = [service.output_file, f"{service.pid_file}.lock"]
    asked = {
        "folders": folders_of(node),
        "files": files,
        "data": node.log_dirs,
        "locked": node.log_dirs if isinstance(node, BrokerSpec) else [metadata_dir],
        "metadata": metadata_dir,
        "pid": pid,
        "reads": [node.properties_file, f"{node.kafka_home}/libs"],
        "user": user_of_start(service.start_command),
    }
    return StartPlace.model_validate_json(await run_program(driver, command_of("look_at_start", asked)))


def folders_of(node: NodeSpec) -> list[str]:
    """Which it writes into."""
    service, logs = node.driver.service, node.environment.get("LOG_DIR")
    files = [str(Path(path).parent) for path in (service.output_file, service.pid_file)]
    return list(dict.fromkeys([*node.log_dirs, *files, *([logs] if logs else [])]))


async def run_program(
    driver: NodeDriver | MemberMachine,
    arguments: Sequence[str],
    timeout: timedelta = LOOK_TIME,
    environment: Mapping[str, str] = NOTHING,
    stdin: bytes = b"",
) -> str:
    """What a program that answers with one JSON object prints there. Raises `CannotLook`, `Transient`."""
    try:
        ran = await driver.run(arguments, environment, timeout, stdin)
    except Permanent as error:
        raise CannotLook(f"python3 cannot be run there: {error}") from error
    if ran.exit_code:
        last = (ran.errors.strip().splitlines() or ["without a word"])[-1]
        raise CannotLook(f"python3 has ended with {ran.exit_code}: {last[:300]}")
    if not ran.output.rstrip().endswith("}"):
        raise Transient("the answer of a node's observation is not complete")
    return ran.output


def request_of(
    spec: ClusterSpec, node: NodeSpec, registrations: Sequence[Registration], broker: Mapping[str, str], own: Mapping[str, str]
) -> dict[str, Any]:
    """What this node is asked. `broker`: the settings of the broker whose file controllers are made from; `own`: the node's."""
    hosts: list[dict[str, Any]] = [
        {"what": f"host {c.host} of {spec.node_name(c.id)}", "host": c.host, "port": None, "protocol": ""}
        for c in spec.controllers
    ]
    if isinstance(node, BrokerSpec):
        return {"classes": [], "own_port": None, "reach": hosts}
    assert isinstance(node, ControllerSpec)  # noqa: S101 - there are two roles
    settings = {**broker, **own}
    listener = inter_broker_listener(settings)
    named = {settings[name].strip() for name in CLASSES_OF_CONTROLLERS if settings.get(name, "").strip()}
    plugins = sorted(name for name in named if not is_provided(name))
    found = [_target(r, listener, r.protocols.get(listener, protocol_of(settings, listener))) for r in registrations]
    return {
        "classes": plugins,
        "own_port": [node.host, node.port],
        "reach": [*hosts, *(target for target in found if target)],
    }


def _target(registration: Registration, listener: str, protocol: str) -> dict[str, Any] | None:
    host, _, port = registration.addresses.get(listener, "").rpartition(":")
    if not port.isdecimal():
        return None
    what = f"{listener} of broker-{registration.broker_id} at {host}:{port}"
    return {"what": what, "host": host.strip("[]"), "port": int(port), "protocol": protocol}
