"""Changes of replication factors, as the rest of the product sees them."""

from collections.abc import Collection, Iterable

from domain.cluster import ClusterSpec
from domain.decisions import Revert, Wait
from domain.diagnosis.blockers import Diagnosis, generic_causes
from domain.diagnosis.causes.case import Case, Cause, Facts
from domain.health.liveness import broker_liveness
from domain.kinds import Kind
from domain.observed.observation import Observation
from domain.policy import MigrationPolicy
from domain.replication_factor.decide import START
from domain.replication_factor.planning import FINDING_CODES
from domain.replication_factor.policy import ReplicationFactorPolicy
from domain.replication_factor.waits import WAITS
from domain.replication_factor.wanted import ReplicationFactorWanted

NAME = "replication-factor"

REPLICATION_FACTOR = Kind(
    name=NAME,
    finding_codes=FINDING_CODES,
    loss_names=lambda spec: frozenset(),
    loss_forms=(),
    next_steps=lambda record, spec, end: (),
    gates=(START,),
    final_gates=frozenset({START}),
    policy=ReplicationFactorPolicy,
    wanted=ReplicationFactorWanted,
    aimed=lambda spec, wanted: spec,
    achieved=lambda spec, wanted: spec,
)


def _of_wait(case: Case, wait: Wait | Revert, explained: Collection[str]) -> Iterable[Cause]:
    words = WAITS[wait.reason]
    observed = ", ".join(wait.objects) or words.about
    found = case.cause(wait.reason, "replicas", observed=observed, expected=words.expected, fix=words.means)
    return () if wait.reason in explained else (found,)


def _case_of(observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> Case:
    liveness = {broker.id: broker_liveness(observation.node(broker.id)) for broker in spec.brokers}
    return Case(observation=observation, spec=spec, policy=policy, facts=Facts(liveness=liveness))


DIAGNOSIS = Diagnosis[Case](
    case_of=_case_of,
    causes=generic_causes,
    of_wait=_of_wait,
    unproven=lambda case, explained: (),
    searches={},
    of_losses=frozenset(),
)
