"""Kafka's own judgement of the files that a migration writes, on nodes that run."""

import shutil
from pathlib import Path

import pytest

from activities.adapters.nodes.drivers import SpecDrivers
from activities.survey.java_trials import trials_of, trials_of_new, try_java
from domain.cluster import NodeSpec
from domain.configuration.properties import parse
from domain.zk_to_kraft.steps import NodeStage
from domain.zk_to_kraft.wanted_file import files_ahead, files_of_new
from playground.cluster import PlaygroundCluster
from playground.jars import KafkaHome
from playground.java import java_home
from playground.stand_in import standing_for_broker

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


@pytest.fixture
def node(real_cluster: PlaygroundCluster) -> NodeSpec:
    return real_cluster.spec.brokers[0]


def with_command(node: NodeSpec, *more: str) -> NodeSpec:
    service = node.driver.service.model_copy(update={"start_command": (*node.driver.service.start_command, *more)})
    return node.model_copy(update={"driver": node.driver.model_copy(update={"service": service})})


async def pid_of(node: NodeSpec) -> int:
    return int((await SpecDrivers().driver(node).process()).pid)


def meta_of(node: NodeSpec) -> bytes:
    return Path(node.log_dirs[0], "meta.properties").read_bytes()


def text_of(node: NodeSpec) -> str:
    return Path(node.properties_file).read_text(encoding="utf-8")


async def test_kafka_takes_every_file_that_is_to_come(real_cluster: PlaygroundCluster, node: NodeSpec) -> None:
    before = meta_of(node)
    files = files_ahead(parse(text_of(node)), real_cluster.spec, node)
    found = await trials_of(SpecDrivers().driver(node), node, await pid_of(node), files)
    assert [trial.stage for trial in found] == [NodeStage.MIGRATION, NodeStage.KRAFT]
    assert {(trial.untried, trial.failed, trial.refused) for trial in found} == {(None, None, None)}
    assert meta_of(node) == before


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("num.io.threads=0", "num.io.threads"),
        ("log.cleaner.threads=hunter2", "log.cleaner.threads"),
        ("principal.builder.class=com.example.OwnBuilder", "principal.builder.class"),
        ("advertised.listeners=OTHER://127.0.0.1:1", "listener OTHER"),
    ],
)
async def test_a_file_that_kafka_does_not_take(line: str, told: str, node: NodeSpec) -> None:
    text = f"{text_of(node)}\n{line}\n"
    found = await try_java(SpecDrivers().driver(node), node, await pid_of(node), NodeStage.MIGRATION, text)
    assert found.failed is None
    assert told in (found.refused or "")
    assert "hunter2" not in (found.refused or "")


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("num.io.threads=4", None),
        ("listener.security.protocol.map=PLAINTEXT:PLAINTEXT", "CONTROLLER"),  # As a hybrid it only fails to start.
        ("log.cleaner.threads=hunter2", "log.cleaner.threads"),
    ],
)
async def test_a_file_is_tried_with_the_overrides_of_its_start_command(
    override: str, told: str | None, real_cluster: PlaygroundCluster, node: NodeSpec
) -> None:
    spec = with_command(node, "--override", override)
    text = files_ahead(parse(text_of(node)), real_cluster.spec, node)[NodeStage.KRAFT]
    found = await try_java(SpecDrivers().driver(spec), spec, await pid_of(node), NodeStage.KRAFT, text)
    assert (found.failed, found.overridden) == (None, (override.partition("=")[0],))
    assert (found.refused is None) is (told is None)
    assert (told or "") in (found.refused or "")
    assert "hunter2" not in (found.refused or "")


@pytest.mark.parametrize(
    ("base", "told"),
    [
        ("", None),
        ("inter.broker.protocol.version=3.6-IV2\nzookeeper.set.acl=true\ncontrol.plane.listener.name=X", None),
        ("early.start.listeners=PLAINTEXT", "early.start.listeners contains listener PLAINTEXT"),
        ("security.inter.broker.protocol=SSL\ninter.broker.listener.name=PLAINTEXT", "Only one of inter.broker.listener.name"),
    ],
)
async def test_a_controllers_first_file_is_tried_before_it_exists(
    base: str, told: str | None, real_cluster: PlaygroundCluster, node: NodeSpec
) -> None:
    """A11: some keys of a base file are dropped, and Kafka refuses others."""
    spec, controller = real_cluster.spec, real_cluster.spec.controllers[0]
    files = files_of_new(spec, controller, parse(base), parse(text_of(node)))
    found = await trials_of_new(SpecDrivers().driver(controller), controller, files)
    assert [trial.stage for trial in found] == [NodeStage.MIGRATION, NodeStage.KRAFT]
    assert {(trial.untried, trial.failed) for trial in found} == {(None, None)}
    assert {trial.refused is None for trial in found} == {told is None}
    assert all((told or "") in (trial.refused or "") for trial in found)


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ('- pattern: ".*"', None),
        ("- pattern: kafka.server<type=(.+): x", "mapping values are not allowed here"),
    ],
)
async def test_an_agent_that_could_not_read_its_file_any_more(
    rules: str, told: str | None, node: NodeSpec, tmp_path: Path
) -> None:
    """Somebody has pushed new rules for the exporter: the process that runs goes by the old ones until it ends."""
    file = tmp_path / "exporter.yml"
    file.write_text(f"rules:\n{rules}\n", encoding="utf-8")
    exporter = KafkaHome(Path(node.kafka_home)).prometheus
    options = ("-cp", f"{node.kafka_home}/libs/*", f"-javaagent:{exporter}=127.0.0.1:1:{file}")
    with standing_for_broker(str(java_home() / "bin" / "java"), *options) as pid:
        found = await try_java(SpecDrivers().driver(node), node, pid, NodeStage.MIGRATION, text_of(node))
    assert found.refused is None
    assert (found.failed is None) is (told is None)
    if told is not None:
        assert told in (found.failed or "")
        assert found.agents == f"{exporter} with {file}"


@pytest.mark.parametrize(("given", "is_told"), [("host=127.0.0.1", False), ("host=no.such.host.invalid", True)])
async def test_jolokia_is_tried_beside_the_one_that_runs(given: str, is_told: bool, node: NodeSpec) -> None:
    jolokia = KafkaHome(Path(node.kafka_home)).jolokia
    options = ("-cp", f"{node.kafka_home}/libs/*", f"-javaagent:{jolokia}=port=1,{given}")
    with standing_for_broker(str(java_home() / "bin" / "java"), *options) as pid:
        found = await try_java(SpecDrivers().driver(node), node, pid, NodeStage.MIGRATION, text_of(node))
    assert found.refused is None
    assert found.agents == (str(jolokia) if is_told else None)


async def test_jars_that_a_start_cannot_read(node: NodeSpec, tmp_path: Path) -> None:
    """The node that runs has them open, or has read what it needs."""
    shutil.copytree(f"{node.kafka_home}/libs", tmp_path / "libs")
    (jar,) = (tmp_path / "libs").glob("kafka_2.13-*.jar")
    content = jar.read_bytes()
    jar.write_bytes(content[: len(content) // 2])
    elsewhere = node.model_copy(update={"kafka_home": str(tmp_path)})
    with standing_for_broker(str(java_home() / "bin" / "java"), "-cp", f"{tmp_path}/libs/*") as pid:
        found = await try_java(SpecDrivers().driver(node), elsewhere, pid, NodeStage.MIGRATION, text_of(node))
    assert found.refused is None
    assert "kafka.Kafka" in (found.failed or "")


@pytest.mark.parametrize(("option", "is_told"), [("-XX:+UseSerialGC", False), ("-XX:+UseConcMarkSweepGC", True)])
async def test_options_that_somebody_has_put_into_a_file_since(
    option: str, is_told: bool, node: NodeSpec, tmp_path: Path
) -> None:
    options = tmp_path / "jvm.options"
    options.write_text("-Xmx4g\n", encoding="utf-8")
    given = ("-cp", f"{node.kafka_home}/libs/*", f"@{options}")
    with standing_for_broker(str(java_home() / "bin" / "java"), *given) as pid:
        options.write_text(f"-Xms4g -Xmx4g\n{option}\n", encoding="utf-8")
        found = await try_java(SpecDrivers().driver(node), node, pid, NodeStage.MIGRATION, text_of(node))
    assert (found.refused, found.failed is not None) == (None, is_told)
    if is_told:
        assert "Unrecognized VM option 'UseConcMarkSweepGC'" in (found.failed or "")
        assert f"it has options from {options}" in (found.failed or "")


@pytest.mark.parametrize(("mode", "is_told"), [(0o600, False), (0o640, True)])
async def test_remote_jmx_is_tried_with_its_passwords(mode: int, is_told: bool, node: NodeSpec, tmp_path: Path) -> None:
    """Somebody lets monitoring read them: the process that runs has read them, and the next one would end at once."""
    passwords, access = tmp_path / "jmxremote.password", tmp_path / "jmxremote.access"
    passwords.write_text("monitor not-a-secret\n", encoding="utf-8")
    access.write_text("monitor readonly\n", encoding="utf-8")
    passwords.chmod(mode)
    options = ("port=1", "rmi.port=1", "ssl=false", f"password.file={passwords}", f"access.file={access}")
    remote = [f"-Dcom.sun.management.jmxremote.{option}" for option in options]
    with standing_for_broker(str(java_home() / "bin" / "java"), "-cp", f"{node.kafka_home}/libs/*", *remote) as pid:
        found = await try_java(SpecDrivers().driver(node), node, pid, NodeStage.MIGRATION, text_of(node))
    assert found.refused is None
    assert (found.failed is not None, (found.agents or "").startswith("remote JMX")) == (is_told, is_told)
    if is_told:
        assert str(passwords) in (found.failed or "")


@pytest.mark.parametrize("is_there", [True, False])
async def test_values_that_kafka_reads_from_elsewhere_are_read(is_there: bool, node: NodeSpec, tmp_path: Path) -> None:
    """An agent that renders secrets has taken its file away since the node was started."""
    secrets = tmp_path / "secrets.properties"
    if is_there:
        secrets.write_text("threads=8\n", encoding="utf-8")
    provider = "config.providers=file\nconfig.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider"
    text = f"{text_of(node)}\n{provider}\nnum.io.threads=${{file:{secrets}:threads}}\n"
    found = await try_java(SpecDrivers().driver(node), node, await pid_of(node), NodeStage.MIGRATION, text)
    assert found.failed is None
    assert (found.refused is None) is is_there
    assert is_there or str(secrets) in (found.refused or "")


@pytest.mark.parametrize("name", ["com.example.Vault", "org.apache.kafka.common.config.provider.EnvVarConfigProvider"])
async def test_another_provider_is_not_asked(name: str, node: NodeSpec) -> None:
    """Nor are variables, which the start command may set by itself."""
    provider = f"config.providers=vault\nconfig.providers.vault.class={name}"
    text = f"{text_of(node)}\n{provider}\nnum.io.threads=${{vault:a:b}}\n"
    found = await try_java(SpecDrivers().driver(node), node, await pid_of(node), NodeStage.MIGRATION, text)
    assert (found.failed, found.refused) == (None, None)
    assert name in (found.untried or "")
