"""The invariant beside the rules: what it refuses, what it lets pass all the same, and that every effect asks it.

That it lets every step of `decide` pass is asserted where whole products are walked: `test_decide_exhaustive`,
`test_way_back_exhaustive` and `test_model`.
"""

from dataclasses import replace

import pytest

from domain.decisions import Step
from domain.errors import Unsafe
from domain.observed.observation import SharedPartitions
from domain.zk_to_kraft.invariant import Facts, ensure_allowed
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.situation import Claim, QuorumState, Situation
from domain.zk_to_kraft.steps import GateName, NodeStage, StepAction
from tests.unit.walk_of_situations import kafka_view
from tests.unit.well_situations import EARLY, HYBRID, KRAFT, LEFT, MIGRATION, NEW, SOAK, but

WELL = Facts(kafka_view())
BACK = Facts(kafka_view(), is_rollback=True)
LEADERLESS = Facts(kafka_view("orders-3"))
SILENT = Facts(None)
SHARING = kafka_view(shared=(SharedPartitions(brokers=(1, 3), count=2, example="orders-3"),))
FINALIZE, FAIL_OVER, GIVEN_UP = (
    Facts(kafka_view(), approved=frozenset({gate}))
    for gate in (GateName.FINALIZE, GateName.FAIL_OVER, GateName.FINALIZE_WITHOUT_RETURN)
)

FLAGLESS = but(3002, SOAK, mode=ControllerMode.FINAL, stage=KRAFT, is_flag_in_file=False)
THIN = but(3003, SOAK, mode=ControllerMode.DOWN, is_caught_up=False)


def roll(node_id: int, stage: NodeStage, *companions: int, gate: GateName | None = None) -> Step:
    return Step(action=StepAction.ROLL_NODE, node_id=node_id, stage=stage, companions=companions, gate=gate)


def on(action: StepAction, node_id: int | None = None, gate: GateName | None = None) -> Step:
    return Step(action=action, node_id=node_id, stage=MIGRATION, gate=gate)


def creation(node_id: int, *companions: int) -> Step:
    return on(StepAction.PROVISION_CONTROLLER, node_id).model_copy(update={"companions": companions})


END = roll(3002, KRAFT, gate=GateName.FINALIZE)
FAILOVER = on(StepAction.FAIL_OVER, 3001, GateName.FAIL_OVER)
WINDOW, WIPE, START = on(StepAction.LEAVE_KRAFT), on(StepAction.WIPE), on(StepAction.START_NODE, 3002)

REFUSED: dict[str, tuple[Situation, Step, Facts, str]] = {
    "1: the end without a gate": (SOAK, roll(3002, KRAFT), FINALIZE, "controller-3002: would run without"),
    "1: the end without an approval": (SOAK, END, WELL, "expected an approval of the end"),
    "1: the end under another approval": (SOAK, roll(3002, KRAFT, gate=GateName.FAIL_OVER), FAIL_OVER, "approval of the end"),
    "1: the end with a hybrid broker": (but(2, SOAK, mode=BrokerMode.HYBRID), END, FINALIZE, "broker-2: not in KRaft mode"),
    "1: a start from a file without the flag": (
        but(3002, SOAK, mode=ControllerMode.DOWN, is_flag_in_file=False),
        START,
        BACK,
        "would run without the migration flag",
    ),
    "1: a failover to a file without the flag": (but(3001, SOAK, stage=KRAFT), FAILOVER, FAIL_OVER, "approval of the end"),
    "1: provisioning without the flag": (
        SOAK,
        on(StepAction.PROVISION_CONTROLLER, 3002).model_copy(update={"stage": KRAFT}),
        FINALIZE,
        "approval of the end",
    ),
    "1: a failover without an approval": (SOAK, FAILOVER, WELL, "failover: not approved"),
    "1: a failover without a gate": (SOAK, on(StepAction.FAIL_OVER, 3001), FAIL_OVER, "failover: not approved"),
    "2: a broker that is needed": (
        but(2, SOAK, is_needed=True),
        roll(2, MIGRATION),
        BACK,
        "broker-2: needed for min.insync.replicas",
    ),
    "2: a companion that is needed": (but(2, HYBRID, is_needed=True), roll(1, KRAFT, 2), WELL, "broker-2: needed"),
    "3: a broker, without a leader": (HYBRID, roll(1, KRAFT), LEADERLESS, "orders-3: without a leader"),
    "3: on a rollback too": (SOAK, roll(1, MIGRATION), replace(LEADERLESS, is_rollback=True), "orders-3: without a leader"),
    "3: a controller, without a leader": (SOAK, END, replace(LEADERLESS, approved=FINALIZE.approved), "without a leader"),
    "3: nobody knows of leaders": (HYBRID, roll(1, KRAFT), SILENT, "partitions: unknown"),
    "4: the other controllers are no majority": (THIN, END, FINALIZE, "controller-3002: 1 others caught up"),
    "4: one of them lags": (but(3003, SOAK, is_caught_up=False), FAILOVER, FAIL_OVER, "expected more than half of all 3"),
    "4: a flag that is there already": (THIN, roll(3002, MIGRATION), WELL, "controller-3002: 1 others caught up"),
    "4: the window without a rollback": (HYBRID, WINDOW, WELL, "expected a rollback"),
    "4: the window once the log is final": (EARLY, WINDOW, BACK, "a final log"),
    "4: the window below a KRaft broker": (but(2, HYBRID, mode=BrokerMode.KRAFT), WINDOW, BACK, "broker-2: still uses"),
    "4: the wipe below a hybrid broker": (but(2, LEFT, mode=BrokerMode.HYBRID), WIPE, BACK, "broker-2: still uses"),
    "4: the wipe of what runs": (but(3002, LEFT, mode=ControllerMode.MIGRATING), WIPE, BACK, "controller-3002: still uses"),
    "4: the wipe before ZooKeeper leads": (replace(LEFT, claim=Claim.KRAFT), WIPE, BACK, "/controller: owned by kraft"),
    "5: a node": (but(3, HYBRID, mode=BrokerMode.UNKNOWN), roll(1, KRAFT), WELL, "broker-3: unknown"),
    "5: a node, and no restart": (but(3, SOAK, mode=BrokerMode.UNKNOWN), START, WELL, "broker-3: unknown"),
    "5: a node, and the window": (but(3, HYBRID, mode=BrokerMode.UNKNOWN), WINDOW, BACK, "broker-3: unknown"),
    "5: ZooKeeper": (replace(SOAK, claim=Claim.UNKNOWN), END, FINALIZE, "ZooKeeper: did not answer"),
    "5: the node that is to get its flag back": (
        but(3002, FLAGLESS, mode=ControllerMode.UNKNOWN),
        roll(3002, MIGRATION),
        WELL,
        "controller-3002: unknown",
    ),
    "6: two that share a partition": (HYBRID, roll(1, KRAFT, 3), Facts(SHARING), "both have orders-3"),
    "6: two companions that share one": (HYBRID, roll(2, KRAFT, 1, 3), Facts(SHARING), "both have orders-3"),
    "6: nobody knows who shares": (
        HYBRID,
        roll(1, KRAFT, 2),
        Facts(SHARING.model_copy(update={"shared": None})),
        "not known to share no partition",
    ),
    "6: two controllers that are down": (
        but(3003, but(3002, SOAK, mode=ControllerMode.DOWN), mode=ControllerMode.DOWN),
        roll(3002, MIGRATION, 3003),
        BACK,
        "not known to share no partition",
    ),
    "4: two controllers end together": (
        replace(SOAK, quorum=QuorumState.POST_MIGRATION),
        roll(3002, KRAFT, 3003),
        WELL,
        "controller-3002, controller-3003: 1 others caught up",
    ),
    "6: a controller that has served is created beside others": (
        but(3001, NEW, mode=ControllerMode.INTERRUPTED),
        creation(3001, 3002, 3003),
        WELL,
        "not known to share no partition",
    ),
    "6: a broker is created beside controllers": (NEW, creation(1, 3001), WELL, "not known to share no partition"),
    "6: new controllers are rolled together": (NEW, roll(3001, MIGRATION, 3002), WELL, "not known to share no partition"),
    "6: a broker beside a controller": (SOAK, roll(1, MIGRATION, 3002), BACK, "not known to share no partition"),
}

ALLOWED: dict[str, tuple[Situation, Step, Facts]] = {
    "a roll": (HYBRID, roll(1, KRAFT), WELL),
    "the end": (SOAK, END, FINALIZE),
    "the end once the log is final": (replace(SOAK, quorum=QuorumState.POST_MIGRATION), roll(3002, KRAFT), WELL),
    "a failover that is approved": (SOAK, FAILOVER, FAIL_OVER),
    "a failover that the policy allows": (SOAK, on(StepAction.FAIL_OVER, 3001), replace(WELL, is_failover_allowed=True)),
    "the only controller": (replace(SOAK, controllers=SOAK.controllers[:1]), roll(3001, KRAFT, gate=END.gate), FINALIZE),
    "two that share nothing": (HYBRID, roll(1, KRAFT, 2), Facts(SHARING)),
    "all controllers are created together": (NEW, creation(3001, 3002, 3003), WELL),
    "those that are missing are created together": (but(3001, NEW, mode=ControllerMode.MIGRATING), creation(3002, 3003), WELL),
    "the window": (HYBRID, WINDOW, BACK),
    "the wipe": (LEFT, WIPE, BACK),
    "a: a broker that is down and needed, without leaders": (
        but(2, SOAK, mode=BrokerMode.DOWN, is_needed=True),
        roll(2, MIGRATION),
        replace(LEADERLESS, is_rollback=True),
    ),
    "a: a controller that is down": (but(3002, THIN, mode=ControllerMode.DOWN), START, BACK),
    "a: a stopped controller ends what is approved": (but(3002, THIN, mode=ControllerMode.INTERRUPTED), END, FINALIZE),
    "b: a flag comes back whatever else is wrong": (
        but(3001, but(1, FLAGLESS, mode=BrokerMode.UNKNOWN), mode=ControllerMode.DOWN, is_caught_up=False),
        roll(3002, MIGRATION),
        SILENT,
    ),
    "c: the window of a copy that failed": (
        replace(but(3, HYBRID, mode=BrokerMode.UNKNOWN), is_copy_failed=True, claim=Claim.UNKNOWN),
        WINDOW,
        replace(SILENT, is_rollback=True),
    ),
    "d: final too early": (EARLY, roll(1, KRAFT), LEADERLESS),
    "e: a failover on a rollback": (SOAK, on(StepAction.FAIL_OVER, 3001), replace(SILENT, is_rollback=True)),
    "f: ZooKeeper after the end": (replace(SOAK, claim=Claim.UNKNOWN, quorum=QuorumState.POST_MIGRATION), END, WELL),
    "f: ZooKeeper that is given up": (
        replace(SOAK, claim=Claim.UNKNOWN),
        roll(3002, KRAFT, gate=GateName.FINALIZE_WITHOUT_RETURN),
        GIVEN_UP,
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_step_that_breaks_a_clause_is_refused(what: str) -> None:
    s, step, facts, words = REFUSED[what]
    with pytest.raises(Unsafe, match=words) as refused:
        ensure_allowed(s, step, facts)
    assert f"{step.action} was refused, and nothing was touched" in str(refused.value)


@pytest.mark.parametrize("what", ALLOWED)
def test_what_breaks_no_clause_is_allowed(what: str) -> None:
    ensure_allowed(*ALLOWED[what])
