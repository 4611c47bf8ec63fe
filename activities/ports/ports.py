"""`Ports`: everything that activities reach the world through."""

from dataclasses import dataclass, field

from activities.ports.kafka import ClusterMetrics, KafkaAdmin
from activities.ports.kinds import ActivityKinds
from activities.ports.machines import MachineDoctor, NoDoctor
from activities.ports.nodes import NodeDrivers
from activities.ports.replicas import NoReplicas, ReplicaAdmin
from activities.ports.stores import ArtefactStore, Ledger
from activities.ports.zookeeper import ZooKeepers


@dataclass(frozen=True)
class Ports:
    """Everything that activities reach the world through, and the kinds of migration that they are part of."""

    ledger: Ledger
    drivers: NodeDrivers
    zookeepers: ZooKeepers
    kafka: KafkaAdmin
    metrics: ClusterMetrics
    artefacts: ArtefactStore
    kinds: ActivityKinds = field(default_factory=ActivityKinds)
    doctor: MachineDoctor = field(default_factory=NoDoctor)
    replicas: ReplicaAdmin = field(default_factory=NoReplicas)
