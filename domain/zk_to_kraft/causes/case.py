"""`MigrationCase`: what causes of this kind judge by, and what it says to causes of every kind."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from domain.checks.check import some
from domain.cluster import ClusterSpec
from domain.diagnosis.causes.case import Case, Facts, LostChange
from domain.health.liveness import Liveness
from domain.observed.observation import Observation, Suspect
from domain.observed.topic_directories import TopicOnDisk
from domain.policy import MigrationPolicy
from domain.waits import WaitReason
from domain.zk_to_kraft.causes.failed_writes import GIVEN_UP, failed_in, in_words, is_of_a_change
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode, left_out
from domain.zk_to_kraft.probed import probed
from domain.zk_to_kraft.reduction import situation_of
from domain.zk_to_kraft.situation import Claim, ControllerSituation, DualWrite, QuorumState, Registration, Situation
from domain.zk_to_kraft.steps import NodeStage
from domain.zk_to_kraft.waits import ZkWait

IN_ZOOKEEPER = frozenset({BrokerMode.ZOOKEEPER, BrokerMode.HYBRID, ControllerMode.MIGRATING})
IN_QUORUM = frozenset({BrokerMode.HYBRID, BrokerMode.KRAFT})
"""Modes of nodes with a session with ZooKeeper, and of brokers that register with the controllers."""
OF_ZOOKEEPER = frozenset({QuorumState.ABSENT, QuorumState.PRE_MIGRATION, QuorumState.UNKNOWN})
"""States of the quorum in which ZooKeeper has the cluster's metadata, as far as is known."""
FLAG = "zookeeper.metadata.migration.enable=true"


@dataclass(frozen=True)
class Unwritten:
    """What ZooKeeper has not got yet of the quorum's log. `changes`: counted by kind, as `300 config`; `configured`: of configs
    whose, most often changed first; `more`: how many came while it was read, in `seconds`."""

    changes: tuple[str, ...]
    configured: tuple[str, ...]
    more: int
    seconds: float


@dataclass(frozen=True)
class MigrationLookups:
    """What only this kind looks up for people.

    `assigned`: by broker id that is not registered, the partitions that it is assigned to. `strays`: configs and ACLs that
    ZooKeeper cannot hold. `unreadable`: znodes that the copy could not read. `topics`: those without an id in ZooKeeper, with
    their ids on brokers' disks. `unwritten`: where dual write is behind. `crowded`: then, znodes that are nearly as large as
    ZooKeeper takes.
    """

    assigned: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    strays: tuple[Suspect, ...] = ()
    unreadable: tuple[Suspect, ...] = ()
    topics: tuple[TopicOnDisk, ...] = ()
    unwritten: Unwritten | None = None
    crowded: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MigrationCase(Case):
    """With the situation that `decide` looks at."""

    situation: Situation

    @property
    def found(self) -> MigrationLookups:
        of_kind = self.hints.of_kind
        return of_kind if isinstance(of_kind, MigrationLookups) else MigrationLookups()

    @property
    def lost_change(self) -> LostChange | None:
        leader = self.leader
        if leader is None or self.situation.quorum is not QuorumState.MIGRATION:
            return None
        failed = [one for one in failed_in(self.hints.logs.get(leader.id, ()), GIVEN_UP) if is_of_a_change(one)]
        untold = frozenset(broker.id for broker in self.situation.brokers if broker.mode is BrokerMode.HYBRID)
        name = self.name(leader.id)
        return LostChange(name, in_words(failed[0]), untold, before_a_failover(self)) if failed else None


def case_of(observation: Observation, spec: ClusterSpec, policy: MigrationPolicy) -> MigrationCase:
    situation = situation_of(observation, spec, policy)
    return MigrationCase(
        observation=observation, spec=spec, policy=policy, facts=_facts(situation, observation), situation=situation
    )


def _facts(situation: Situation, observation: Observation) -> Facts:
    is_kraft_in_charge = situation.quorum is QuorumState.MIGRATION
    of_zookeeper = frozenset(b.id for b in situation.brokers if b.mode is BrokerMode.ZOOKEEPER)
    return Facts(
        liveness={node.id: _liveness(node.mode) for node in situation.nodes},
        hidden_gauges={view.id: hidden for view in observation.nodes if (hidden := left_out(view))},
        in_zookeeper=frozenset(node.id for node in situation.nodes if node.mode in IN_ZOOKEEPER),
        in_quorum=frozenset(b.id for b in situation.brokers if b.mode in IN_QUORUM),
        not_caught_up=frozenset(c.id for c in situation.controllers if not c.is_caught_up),
        never_registered=frozenset(probed(observation).unregistered or ()),
        started_with_zookeeper=frozenset(b.id for b in situation.brokers if b.stage is not NodeStage.KRAFT),
        left_behind=of_zookeeper if is_kraft_in_charge else frozenset(),
        uses_zookeeper=situation.quorum is not QuorumState.POST_MIGRATION,
        is_kraft_in_charge=is_kraft_in_charge,
        is_zookeeper_in_charge=situation.quorum in {QuorumState.ABSENT, QuorumState.PRE_MIGRATION},
        is_claim_lost=is_kraft_in_charge and situation.claim in {Claim.ZOOKEEPER, Claim.NOBODY},
        is_registration_wrong=situation.registration is Registration.DIFFERS,
        is_leader_stuck=_is_leader_stuck(situation),
        is_leaderless=situation.claim is Claim.NOBODY and situation.quorum in OF_ZOOKEEPER,
        patience=frozenset({WaitReason.SOAK_NOT_OVER}),
        holds_up={
            "broker-not-registered": (ZkWait.COPY_NOT_COMPLETE,),
            "controller-without-session": (ZkWait.COPY_NOT_COMPLETE, ZkWait.DUAL_WRITE_NOT_CURRENT),
            "no-stable-leader": (ZkWait.DUAL_WRITE_NOT_CURRENT,),
        },
    )


def _is_leader_stuck(situation: Situation) -> bool:
    """The copy, though all brokers are there for it, or dual write."""
    are_all_hybrid = all(broker.mode is BrokerMode.HYBRID for broker in situation.brokers)
    copies = situation.quorum is QuorumState.PRE_MIGRATION and are_all_hybrid
    return copies or (situation.quorum is QuorumState.MIGRATION and situation.dual_write is not DualWrite.CURRENT)


def _liveness(mode: BrokerMode | ControllerMode) -> Liveness:
    return Liveness(mode.value) if mode.value in {state.value for state in Liveness} else Liveness.SERVING


def before_a_failover(case: MigrationCase) -> str:
    """A further sentence for whoever is told to restart the active controller: what the quorum, or the migration, would not
    survive. What our own step is held up by (`activities.zk_to_kraft.starting`), a person has to be told."""
    first = "; ".join(_first(case))
    return f" But restart the active controller not before this is so: {first}." if first else ""


def _first(case: MigrationCase) -> Iterator[str]:
    leader = case.leader
    controllers = case.situation.controllers
    flagless = [case.name(c.id) for c in controllers if c.mode is ControllerMode.FINAL or not c.is_flag_in_file]
    if flagless:
        yield f"{some(flagless)} has the flag {FLAG}, in its file and as it runs, or it ends the migration"
    others = [c for c in controllers if leader is None or c.id != leader.id]
    missing = [c for c in others if c.mode is not ControllerMode.MIGRATING or not c.is_caught_up or _is_shut(case, c)]
    if others and 2 * (len(others) - len(missing)) <= len(controllers):
        names = some([case.name(c.id) for c in missing])
        yield f"{names} runs, follows and accepts connections, or no majority is left to elect another"
    hazards = dict.fromkeys((*(probed(case.observation).failover_hazards or ()), *case.found.strays))
    if hazards:
        yield f"{some([hazard.what for hazard in hazards])} is fixed, on which the next one would fail"


def _is_shut(case: MigrationCase, controller: ControllerSituation) -> bool:
    spec = next(c for c in case.spec.controllers if c.id == controller.id)
    return f"{spec.host}:{spec.port}" in case.hints.shut
