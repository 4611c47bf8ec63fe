"""What a start command gives besides the file, and which of that the migration cannot live with."""

from collections.abc import Iterator

import pytest

from domain.checks.unapplied import outvoting
from domain.cluster import ControllerSpec, NodeSpec, Role
from domain.configuration.properties import parse
from domain.diagnosis.machines.start import Override, overrides_in, shown_overrides
from domain.rolling.change import Sources
from domain.zk_to_kraft.node_config import controller_file, is_staged, node_file
from domain.zk_to_kraft.steps import NodeStage
from domain.zk_to_kraft.wanted_file import wanted_file
from tests.unit.conftest import cluster_spec
from tests.unit.test_node_config_table import FILES

SPEC = cluster_spec()
SCRIPT = "cd /opt; exec bin/kafka-server-start.sh $0 --override log.dirs=/d --override 'broker.id=1'"


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (("java", "kafka.Kafka", "{properties}"), {}),
        (("x", "{properties}", "--override", "log.dirs=/d"), {"log.dirs": "/d"}),
        (("x", "{properties}", "--override=log.dirs=/d"), {"log.dirs": "/d"}),
        (("x", "{properties}", "-override", "log.dirs=/d"), {"log.dirs": "/d"}),
        (("x", "--override", "a=1", "--override", "a=b=c"), {"a": "b=c"}),
        (("x", "--override", "zookeeper.connect"), {"zookeeper.connect": ""}),
        (("sh", "-c", SCRIPT, "{properties}"), {"log.dirs": "/d", "broker.id": "1"}),
        (("sh", "-c", "exec x --override it's=1", "{properties}"), {"it's": "1"}),
        (("x", "--overrides", "a=b", "--over", "c=d"), {}),
    ],
)
def test_overrides_are_read_as_kafka_takes_them(command: tuple[str, ...], found: dict[str, str]) -> None:
    """Tried with Kafka 3.9.2: one dash, two dashes and `=`; the last one counts; no abbreviation."""
    assert overrides_in(command) == found


def test_no_value_that_may_be_a_secret_is_kept() -> None:
    found = shown_overrides({"log.dirs": "/d"}, {"log.dirs": "/e", "ssl.key.password": "s3cret"})
    assert found == (
        Override(key="log.dirs", value="/d", is_specified=True),
        Override(key="ssl.key.password", value="***", is_specified=False),
    )


def files(node: NodeSpec, text: str) -> Iterator[str]:
    """A node's file at every stage, forward and on a rollback without an original."""
    if isinstance(node, ControllerSpec):
        text = controller_file(SPEC, node, None, text)
        yield text
        yield node_file(text, SPEC, node, NodeStage.KRAFT)
        return
    yield text
    for stage in (NodeStage.MIGRATION, NodeStage.KRAFT):
        text = node_file(text, SPEC, node, stage)
        yield text
    for stage in (NodeStage.MIGRATION, NodeStage.ZOOKEEPER):
        text = wanted_file(Sources(text, None, FILES["secured"]), SPEC, node, stage).text
        yield text


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("node", [SPEC.brokers[0], SPEC.controllers[0]], ids=lambda node: SPEC.node_name(node.id))
def test_every_key_that_a_stage_changes_is_staged(name: str, node: NodeSpec) -> None:
    found = [parse(text) for text in files(node, FILES[name])]
    keys = {key for each in found for key in each}
    changed = {key for key in keys if len({each.get(key) for each in found}) > 1}
    assert changed
    assert {key for key in changed if not is_staged(key, SPEC.role(node.id))} == set()


@pytest.mark.parametrize("key", ["log.dirs", "log.dir", "metadata.log.dir", "process.roles", "listener.security.protocol.map"])
def test_an_override_of_a_staged_key_is_found_with_what_to_do(key: str) -> None:
    node = SPEC.brokers[0]
    given = [Override(key=key, value="x", is_specified=True), Override(key="num.io.threads", value="***", is_specified=True)]
    (finding,) = outvoting(given, "broker-1", node, Role.BROKER, is_staged)
    assert (finding.code, finding.object) == ("PF44", f"broker-1 {key}")
    assert f"`--override {key}=x`" in finding.observed
    assert finding.fix.startswith(f"Write the line {key} with this value into {node.properties_file}. Take `--override {key}`")


def test_an_override_of_a_controllers_address_is_found_and_no_secret_is_told() -> None:
    given = [Override(key="listeners", value="CONTROLLER://:1", is_specified=True)]
    given += [Override(key="password.encoder.secret", value="***", is_specified=False)]
    node = SPEC.controllers[0]
    found = list(outvoting(given, "controller-3001", node, Role.CONTROLLER, is_staged))
    assert [finding.object for finding in found] == ["controller-3001 listeners", "controller-3001 password.encoder.secret"]
    assert "`--override password.encoder.secret=***`" in found[1].observed
    assert list(outvoting(given[:1], "broker-1", SPEC.brokers[0], Role.BROKER, is_staged)) == []
