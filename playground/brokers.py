"""Brokers in ZooKeeper mode, and the controllers that a migration of them is to create."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from domain.cluster import (
    BrokerSpec,
    ControllerSpec,
    JolokiaEndpoint,
    MetricsEndpoint,
    NodeDriverSpec,
    NodeSpec,
    PlainProcess,
    PrometheusEndpoint,
)
from playground import processes
from playground.broker_properties import BrokerAddresses, render
from playground.jvm import Runtime
from playground.ports import LOOPBACK, PortLease
from playground.processes import Launch
from playground.secured import LISTENER, Security

BROKER_HEAP_MIB = 384
CONTROLLER_HEAP_MIB = 256
FIRST_CONTROLLER_ID = 3001

# The exporter's default rule: every attribute, as `kafka_controller_KafkaController_Value{name="ZkMigrationState",}`.
PROMETHEUS_CONFIGURATION = "rules:\n- pattern: '.*'\n"


@dataclass(frozen=True)
class NodePlan:
    """Where a node lives and listens, before its spec is written."""

    id: int
    name: str
    rack: str
    port: int
    metrics_port: int
    directory: Path
    has_prometheus: bool
    internal_port: int | None = None
    """Where brokers speak to each other, if not where clients do."""
    host: str = LOOPBACK

    @property
    def properties_file(self) -> Path:
        return self.directory / "server.properties"

    @property
    def base_properties(self) -> Path:
        return self.directory / "base.properties"

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def metrics(self) -> MetricsEndpoint:
        if self.has_prometheus:
            return PrometheusEndpoint(url=f"http://{self.host}:{self.metrics_port}/metrics")
        return JolokiaEndpoint(url=f"http://{self.host}:{self.metrics_port}/jolokia")


def plan_brokers(
    directory: Path,
    ports: PortLease,
    count: int,
    prometheus: Collection[int],
    racks: int | None = None,
    *,
    is_secured: bool = False,
    host: str = LOOPBACK,
) -> tuple[NodePlan, ...]:
    """Ids from 1, in turn in `rack-1`, `rack-2`, …: as many racks as are asked for, or each in one of its own."""
    return tuple(
        NodePlan(
            id_,
            f"broker-{id_}",
            f"rack-{(id_ - 1) % (racks or count) + 1}",
            ports.take(),
            ports.take(),
            directory / f"broker-{id_}",
            id_ in prometheus,
            ports.take() if is_secured else None,
            host,
        )
        for id_ in range(1, count + 1)
    )


def plan_controllers(
    directory: Path, ports: PortLease, count: int, prometheus: Collection[int], host: str = LOOPBACK
) -> tuple[NodePlan, ...]:
    """Ids from 3001; nothing of them exists yet."""
    return tuple(
        NodePlan(
            id_,
            f"controller-{id_}",
            f"rack-{index}",
            ports.take(),
            ports.take(),
            directory / f"controller-{id_}",
            id_ in prometheus,
            host=host,
        )
        for index, id_ in enumerate(range(FIRST_CONTROLLER_ID, FIRST_CONTROLLER_ID + count), start=1)
    )


def broker_spec(plan: NodePlan, runtime: Runtime) -> BrokerSpec:
    return BrokerSpec(
        id=plan.id,
        host=plan.host,
        rack=plan.rack,
        driver=_driver(plan, runtime, BROKER_HEAP_MIB),
        kafka_home=str(runtime.kafka.path),
        environment=processes.plain_environment(runtime.java_home),
        properties_file=str(plan.properties_file),
        log_dirs=(str(plan.data),),
        metrics=plan.metrics,
    )


def controller_spec(plan: NodePlan, runtime: Runtime, security: Security | None = None) -> ControllerSpec:
    return ControllerSpec(
        id=plan.id,
        host=plan.host,
        port=plan.port,
        rack=plan.rack,
        driver=_driver(plan, runtime, CONTROLLER_HEAP_MIB),
        kafka_home=str(runtime.kafka.path),
        environment=processes.plain_environment(runtime.java_home),
        properties_file=str(plan.properties_file),
        log_dirs=(str(plan.data),),
        metrics=plan.metrics,
        base_properties=str(plan.base_properties) if security is not None else None,
    )


def _driver(plan: NodePlan, runtime: Runtime, heap_mib: int) -> NodeDriverSpec:
    java = runtime.java(heap_mib, f"-Dkafka.logs.dir={plan.directory}", _agent(plan, runtime))
    return NodeDriverSpec(
        service=PlainProcess(
            start_command=(*java, "kafka.Kafka", "{properties}"),
            pid_file=str(plan.directory / "kafka.pid"),
            output_file=str(plan.directory / "kafka.log"),
        )
    )


def _agent(plan: NodePlan, runtime: Runtime) -> str:
    if plan.has_prometheus:
        configuration = plan.directory / "jmx-exporter.yml"
        return f"-javaagent:{runtime.kafka.prometheus}={plan.host}:{plan.metrics_port}:{configuration}"
    return f"-javaagent:{runtime.kafka.jolokia}=port={plan.metrics_port},host={plan.host}"


def write_broker_files(plan: NodePlan, zookeeper_connect: str, security: Security | None = None) -> None:
    plan.data.mkdir(parents=True, exist_ok=True)
    internal = f"{LISTENER}://{plan.host}:{plan.internal_port}" if plan.internal_port is not None else ""
    lines = security.properties(plan.name) if security is not None else ""
    addresses = BrokerAddresses(plan.id, plan.host, plan.port, plan.rack, plan.data, zookeeper_connect, internal, lines)
    plan.properties_file.write_text(render(addresses), encoding="utf-8")
    write_agent_files(plan)


def write_base_file(plan: NodePlan, security: Security) -> None:
    """What a controller has of its own: its certificate."""
    plan.base_properties.write_text(security.properties(plan.name), encoding="utf-8")


def write_agent_files(plan: NodePlan) -> None:
    """What the metrics agent in the start command needs; controllers have nothing else of ours."""
    plan.directory.mkdir(parents=True, exist_ok=True)
    if plan.has_prometheus:
        (plan.directory / "jmx-exporter.yml").write_text(PROMETHEUS_CONFIGURATION, encoding="utf-8")


def node_launch(node: NodeSpec, name: str) -> Launch:
    """How a node is started: from its spec alone, as the product starts it."""
    service = node.driver.service
    return Launch(
        name=name,
        command=tuple(part.replace("{properties}", node.properties_file) for part in service.start_command),
        pid_file=Path(service.pid_file),
        output_file=Path(service.output_file),
        environment=node.environment,
        mark=node.properties_file,
    )
