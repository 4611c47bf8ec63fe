"""Where replicas are, and what the plan of the active migration saw."""

import json

from pydantic import TypeAdapter

from activities.ports.ports import Ports
from domain.errors import BrokerApart, KeeperlessError, Transient
from domain.observed.observation import Observation, Unanswered
from domain.observed.replicas import Layout, Throttles
from domain.policy import MigrationPolicy
from domain.records import ClusterRecord, MigrationRecord
from domain.replication_factor.kind import NAME
from domain.replication_factor.sight import ReplicaSight

LAYOUT, THROTTLES = TypeAdapter(Layout), TypeAdapter(Throttles)


async def with_replicas(
    observation: Observation,
    cluster: ClusterRecord,
    ports: Ports,
    policy: MigrationPolicy | None = None,
    names_seconds: float | None = None,
) -> Observation:
    """The observation, with replicas, throttles, and what the active migration's plan saw. What does not answer is named."""
    part, migration = ReplicaSight(), await ports.ledger.active_migration(cluster.spec.name)
    if migration is not None and migration.kind == NAME:
        part = await _of_plan(migration, ports)
    try:
        now = await ports.replicas.layout(cluster)
        brokers, topics = [broker.id for broker in now.brokers], {one.topic for one in now.partitions}
        throttles = await ports.replicas.throttles(cluster, brokers, topics)
    except (Transient, BrokerApart) as error:
        silent = Unanswered(what="replicas", why=str(error))
        return observation.model_copy(update={"part": part, "unanswered": (*observation.unanswered, silent)})
    return observation.model_copy(update={"part": part.model_copy(update={"now": now, "throttles": throttles})})


async def _of_plan(migration: MigrationRecord, ports: Ports) -> ReplicaSight:
    """What its plan saw is kept as the artefact that the plan names."""
    part = ReplicaSight(wanted=migration.wanted)
    plan = None if migration.plan_id is None else await ports.ledger.plan(migration.plan_id)
    if plan is None:
        return part
    seen = json.loads(await ports.artefacts.get(plan.observation))["part"]
    if seen is None or seen.get("now") is None or seen.get("throttles") is None:
        raise KeeperlessError(f"the plan {plan.id} has not seen where replicas are")
    before, throttled = LAYOUT.validate_python(seen["now"]), THROTTLES.validate_python(seen["throttles"])
    return part.model_copy(update={"before": before, "throttled_before": throttled})
