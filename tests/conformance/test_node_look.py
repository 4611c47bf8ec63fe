"""The look that is sent to a node: on this machine by its own Python, and on the simulated one."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from activities.adapters.nodes.drivers import SpecDrivers
from activities.diagnosis.machine_notes import request_of as note_request
from activities.observing.node_survey import look_at_node, request_of, run_program
from activities.on_node import command_of
from activities.ports.nodes import FileContent, NodeDriver
from domain.cluster import NodeSpec
from domain.diagnosis.machines.notes import MachineNote
from domain.observed.survey import NodeLook
from domain.observed.topic_directories import DiskIds
from playground.fakes.cluster import FakeCluster
from tests.conformance.test_node_driver import local_node

TOPIC_ID, OTHER = "RzS9cdZ8QFyaV6xGT_q1-w", "Zm9vYmFyZm9vYmFyZm9vYg"


@dataclass
class Given:
    """A node's driver, and what to do so that a host is not known there."""

    driver: NodeDriver
    node: NodeSpec
    forget_host: Callable[[str], None]

    async def write(self, path: str, text: str = "") -> None:
        await self.driver.write_file(path, FileContent(text.encode(), 0o600, 0, 0))

    async def partition(self, name: str, topic_id: str | None) -> None:
        folder = f"{self.node.log_dirs[0]}/{name}"
        await self.write(f"{folder}/00000000000000000000.log")
        if topic_id is not None:
            await self.write(f"{folder}/partition.metadata", f"version: 0\ntopic_id: {topic_id}\n")


@pytest.fixture(params=["local", "fake"])
def given(request: pytest.FixtureRequest, tmp_path: Path) -> Given:
    if request.param == "fake":
        cluster = FakeCluster()
        node: NodeSpec = cluster.spec.brokers[0]
        return Given(cluster.driver(node), node, cluster.faults.unreachable_hosts.add)
    node = local_node(tmp_path, "sleep", "1").model_copy(
        update={"log_dirs": (str(tmp_path / "data"),), "kafka_home": str(tmp_path / "kafka")}
    )
    return Given(SpecDrivers().driver(node), node, lambda host: None)


async def look(given: Given, **request: Any) -> NodeLook:
    asked = {"classes": [], "own_port": None, "reach": [], **request}
    return await look_at_node(given.driver, given.node, None, asked, {"orders": TOPIC_ID})


async def test_versions_directories_and_partitions(given: Given) -> None:
    await given.driver.remove_tree(f"{given.node.kafka_home}/libs")
    await given.write(f"{given.node.kafka_home}/libs/kafka_2.13-3.9.1.jar")
    await given.write(f"{given.node.kafka_home}/libs/kafka-clients-3.9.1.jar")
    for name, topic_id in (
        ("orders-0", TOPIC_ID),
        ("orders-1", None),
        ("orders-2", OTHER),
        ("unknown-0", OTHER),
        ("orders-3.0123456789abcdef-delete", None),
        ("__cluster_metadata-0", None),
    ):
        await given.partition(name, topic_id)
    found = await look(given)
    log_dir = given.node.log_dirs[0]
    assert found.kafka_versions == ("3.9.1",)
    assert found.topic_ids == DiskIds(without=(f"{log_dir}/orders-1",), ids={f"{log_dir}/orders-2": OTHER})
    (directory,) = found.log_dirs
    assert (directory.path, directory.is_writable) == (log_dir, True)
    assert 0 < directory.free <= directory.total
    assert found.archive is not None
    assert found.archive.path == str(Path(given.node.properties_file).parent)
    assert (found.open_files, found.maps, found.sockets) == (None, None, None), "no process runs"


async def test_a_directory_that_is_not_there_yet_is_the_one_above(given: Given) -> None:
    await given.write(str(Path(given.node.log_dirs[0]).parent / "something"))
    given.node = given.node.model_copy(update={"log_dirs": (f"{given.node.log_dirs[0]}/new/deep",)})
    found = await look(given)
    assert given.node.log_dirs[0].startswith(found.log_dirs[0].path)
    assert found.log_dirs[0].path != given.node.log_dirs[0]


async def test_nothing_is_written(given: Given) -> None:
    await given.partition("orders-0", TOPIC_ID)
    folder = str(Path(given.node.log_dirs[0]).parent)
    before = await given.driver.list_dir(folder)
    await look(given)
    assert await given.driver.list_dir(folder) == before


async def test_a_host_that_nobody_knows(given: Given) -> None:
    known = {"what": "here", "host": "127.0.0.1", "port": None, "protocol": ""}
    unknown = {"what": "there", "host": "no-such-host.invalid", "port": None, "protocol": ""}
    given.forget_host("no-such-host.invalid")
    found = await look(given, reach=[known, unknown])
    assert [reached.problem is None for reached in found.reached] == [True, False]


def test_a_controller_is_asked_for_plugins_ports_and_every_broker() -> None:
    cluster = FakeCluster()
    controller = cluster.spec.controllers[0]
    broker = {"create.topic.policy.class.name": "com.example.Policy ", "principal.builder.class": ""}
    request = request_of(cluster.spec, controller, (), broker, {})
    assert request["classes"] == ["com.example.Policy"]
    assert request["own_port"] == [controller.host, controller.port]
    assert [target["host"] for target in request["reach"]] == [c.host for c in cluster.spec.controllers]


async def test_how_a_machine_is_set(given: Given) -> None:
    answer = await run_program(given.driver, command_of("note_machine", note_request(given.node, None)))
    told = json.loads(answer)
    note = MachineNote(about="x", at=datetime.now(UTC), identity=None, facts=told["facts"])
    assert note.facts["sysctl"]["vm.max_map_count"].isdigit()
    assert not note.facts.keys() & {"limit", "process", "environment", "group"}, "no process runs"
    assert told["has_process"] is False
    assert all(isinstance(seconds, float) and isinstance(line, str) for seconds, line in told["kernel"])


def test_the_request_fits_on_a_command_line() -> None:
    """Linux takes 128 KiB in one argument."""
    cluster = FakeCluster()
    request = request_of(cluster.spec, cluster.spec.controllers[0], (), {}, {})
    assert len(json.dumps(request)) < 32_768
