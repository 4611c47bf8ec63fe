"""From every intermediate situation of a whole migration `decide` leads on to the end, and restarts nobody twice.

A small simulator of what servers do: a step is a sequence of small effects, and whoever carries it out may die between any
two of them. What servers do by themselves (boot, register, catch up, elect, copy) happens only while nothing is decided, so
a wait that nothing can end shows as a deadlock.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest

from domain.decisions import Decision, Done, Gate, Step, Wait
from domain.zk_to_kraft.conditions import Approval, Compared, Terms
from domain.zk_to_kraft.decide import decide
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.phases import Phase, phase_of
from domain.zk_to_kraft.situation import (
    BrokerSituation,
    Claim,
    ControllerSituation,
    DualWrite,
    QuorumState,
    Registration,
    Replication,
    Situation,
)
from domain.zk_to_kraft.steps import NodeStage, StepAction

MODE_OF_STAGE = {
    NodeStage.ZOOKEEPER: BrokerMode.ZOOKEEPER,
    NodeStage.MIGRATION: BrokerMode.HYBRID,
    NodeStage.KRAFT: BrokerMode.KRAFT,
}
BOOTING, SERVES, REGISTERED, WELL = range(4)
"""How far a started node is: a broker registers after it serves, and catches up after that."""


@dataclass(frozen=True)
class Node:
    """`file`: the stage of its file, `None` before there is one. `process`: the stage that it was started with, or `None`."""

    id: int
    file: NodeStage | None
    process: NodeStage | None
    health: int = WELL


@dataclass(frozen=True)
class World:
    """A cluster, and how often each node was started for which stage."""

    brokers: tuple[Node, ...]
    controllers: tuple[Node, ...]
    zookeeper_controller: int
    leader: int | None = None
    is_last_elected: bool = True
    log: QuorumState = QuorumState.PRE_MIGRATION
    claim: Claim = Claim.ZOOKEEPER
    offset_keeps_up: bool = False
    approval: Approval = Approval.NONE
    starts: Counter[tuple[int, NodeStage]] = field(default_factory=Counter)
    order: tuple[Step, ...] = ()

    def with_node(self, node: Node) -> "World":
        def swap(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
            return tuple(node if each.id == node.id else each for each in nodes)

        return replace(self, brokers=swap(self.brokers), controllers=swap(self.controllers))

    def node(self, node_id: int) -> Node:
        return next(node for node in (*self.brokers, *self.controllers) if node.id == node_id)


def beginning(brokers: int = 3, controllers: int = 3, zookeeper_controller: int = 1, *, is_last_elected: bool = True) -> World:
    return World(
        brokers=tuple(Node(i, NodeStage.ZOOKEEPER, NodeStage.ZOOKEEPER) for i in range(1, brokers + 1)),
        controllers=tuple(Node(3000 + i, None, None) for i in range(1, controllers + 1)),
        zookeeper_controller=zookeeper_controller,
        is_last_elected=is_last_elected,
    )


def seen(world: World) -> Situation:
    """What a complete observation of this world is reduced to."""
    leader = world.leader
    return Situation(
        brokers=tuple(
            BrokerSituation(
                b.id,
                _mode_of_broker(b),
                b.file,
                is_zookeeper_controller=world.claim is Claim.ZOOKEEPER and b.id == world.zookeeper_controller,
                is_file_ours=True,
            )
            for b in world.brokers
        ),
        controllers=tuple(
            ControllerSituation(
                c.id,
                _mode_of_controller(c),
                c.file,
                is_leader=c.id == leader,
                is_caught_up=leader is not None and c.process is not None and c.health == WELL,
                is_flag_in_file=c.file is not NodeStage.KRAFT,
                is_file_ours=True,
            )
            for c in world.controllers
        ),
        quorum=world.log if leader is not None or world.log is QuorumState.POST_MIGRATION else QuorumState.ABSENT,
        is_copy_made=world.log in {QuorumState.MIGRATION, QuorumState.POST_MIGRATION},
        claim=world.claim,
        dual_write=_dual_write(world),
        registration=_registration(world),
        replication=Replication.IN_SYNC
        if all(b.health == WELL and b.process for b in world.brokers)
        else Replication.CATCHING_UP,
    )


def _mode_of_broker(b: Node) -> BrokerMode:
    if b.process is None:
        return BrokerMode.INTERRUPTED
    return BrokerMode.IN_TRANSITION if b.health == BOOTING else MODE_OF_STAGE[b.process]


def _mode_of_controller(c: Node) -> ControllerMode:
    if c.process is None:
        return ControllerMode.ABSENT if c.file is None else ControllerMode.INTERRUPTED
    if c.health == BOOTING:
        return ControllerMode.IN_TRANSITION
    return ControllerMode.FINAL if c.process is NodeStage.KRAFT else ControllerMode.MIGRATING


def _dual_write(world: World) -> DualWrite:
    if world.leader is None:
        return DualWrite.UNKNOWN
    is_current = world.log is QuorumState.MIGRATION and world.offset_keeps_up
    return DualWrite.CURRENT if is_current else DualWrite.NOT_CURRENT


def _registration(world: World) -> Registration:
    if world.leader is None:
        return Registration.UNKNOWN
    newer = [b for b in world.brokers if b.process is not NodeStage.ZOOKEEPER]
    return Registration.AGREES if all(b.process and b.health >= REGISTERED for b in newer) else Registration.DIFFERS


# What a step does, effect by effect


def effects(world: World, step: Step) -> Iterator[World]:
    """The worlds that a step passes through: whoever carries it out may die in any of them."""
    node, stage = world.node(step.node_id), NodeStage(step.stage)
    world = replace(world, order=(*world.order, step))
    if step.gate is not None and world.approval is Approval.VALID:
        world = replace(world, approval=Approval.CONSUMED)
        yield world
    if node.file is not stage:
        node = replace(node, file=stage)
        world = world.with_node(node)
        yield world
    if node.process is not None and step.action == StepAction.ROLL_NODE:
        node = replace(node, process=None)
        world = _stopped(world.with_node(node), node)
        yield world
    if node.process is None:
        starts = world.starts + Counter({(node.id, stage): 1})
        yield replace(world, starts=starts).with_node(replace(node, process=stage, health=BOOTING))


def _stopped(world: World, node: Node) -> World:
    """Who led anything leads it no longer."""
    if node.id == world.leader:
        return replace(world, leader=None, offset_keeps_up=False)
    if node.id == world.zookeeper_controller and world.claim is Claim.ZOOKEEPER:
        heirs = [b.id for b in world.brokers if b.id != node.id]
        return replace(world, zookeeper_controller=max(heirs, default=node.id))
    return world


# What servers do by themselves, one move at a time


def moved(world: World) -> World | None:
    """The next thing that happens while nobody does anything; `None` when nothing will ever happen again."""
    for node in (*world.brokers, *world.controllers):
        if node.process is not None and node.health < WELL and _may_advance(world, node):
            return world.with_node(replace(node, health=node.health + 1))
    elected = _elected(world)
    if elected is not None:
        return elected
    return _migrated(world)


def _may_advance(world: World, node: Node) -> bool:
    """A broker that needs the quorum waits for its leader; controllers need nobody to boot."""
    needs_quorum = node.id < 3000 and node.process is not NodeStage.ZOOKEEPER and node.health >= SERVES
    return world.leader is not None or not needs_quorum


def _elected(world: World) -> World | None:
    running = [c for c in world.controllers if c.process is not None and c.health == WELL]
    if world.leader is not None or len(running) <= len(world.controllers) // 2:
        return None
    leader = (max if world.is_last_elected else min)(running, key=lambda c: c.id)
    is_final = leader.process is NodeStage.KRAFT and world.log is QuorumState.MIGRATION
    return replace(world, leader=leader.id, log=QuorumState.POST_MIGRATION if is_final else world.log)


def _migrated(world: World) -> World | None:
    """Kafka's own moves: claim, copy, dual write; each needs a leader that has the flag."""
    if world.leader is None or world.node(world.leader).process is not NodeStage.MIGRATION:
        return None
    are_registered = all(b.process is NodeStage.MIGRATION and b.health >= REGISTERED for b in world.brokers)
    if world.log is QuorumState.PRE_MIGRATION and are_registered:
        if world.claim is Claim.ZOOKEEPER:
            return replace(world, claim=Claim.KRAFT)
        return replace(world, log=QuorumState.MIGRATION)
    if world.log is QuorumState.MIGRATION and not world.offset_keeps_up:
        return replace(world, offset_keeps_up=True)
    return None


# The tests


def advanced(world: World, decision: Decision) -> World | None:
    """One whole decision carried out, or one move of the servers awaited."""
    if isinstance(decision, Step):
        return list(effects(world, decision))[-1]
    if isinstance(decision, Gate):
        return replace(world, approval=Approval.VALID)
    assert isinstance(decision, Wait)
    return moved(world)


def decided(world: World) -> Decision:
    return decide(seen(world), Terms(approval=world.approval, compared=Compared.CLEAN))


def led_to_the_end(world: World) -> Iterator[World]:
    """All worlds on the way, the end included. Fails on a deadlock, and on going round in circles."""
    for _ in range(500):
        yield world
        decision = decided(world)
        if isinstance(decision, Done):
            return
        after = advanced(world, decision)
        assert after is not None, f"deadlock: {decision} in {seen(world)}"
        assert after != world, f"nothing changes: {decision} in {seen(world)}"
        world = after
    pytest.fail("no end after 500 decisions")


def intermediate(world: World) -> Iterator[World]:
    """Every world that an interruption can leave behind: between decisions, and between the effects of a step."""
    for stop in led_to_the_end(world):
        yield stop
        decision = decided(stop)
        if isinstance(decision, Step):
            yield from effects(stop, decision)


def expected_starts(world: World) -> dict[tuple[int, NodeStage], int]:
    nodes = (*world.brokers, *world.controllers)
    return {(node.id, stage): 1 for node in nodes for stage in (NodeStage.MIGRATION, NodeStage.KRAFT)}


ENSEMBLES = [
    *(
        pytest.param(beginning(3, 3, who, is_last_elected=is_last), id=f"{who}-{is_last}")
        for who in (1, 2, 3)
        for is_last in (True, False)
    ),
    pytest.param(beginning(1, 1), id="one of each"),
    pytest.param(beginning(4, 5, 2), id="four and five"),
]


@pytest.mark.parametrize("start", ENSEMBLES)
def test_every_interruption_is_led_on_to_the_end(start: World) -> None:
    worlds = list(intermediate(start))
    for world in worlds:
        last = list(led_to_the_end(world))[-1]
        assert dict(last.starts) == expected_starts(start), "each node starts once for each stage, and no more"
        assert phase_of(seen(last)) is Phase.KRAFT
    print(f"{len(worlds)} intermediate worlds, each led on to KRAFT")


@pytest.mark.parametrize("start", ENSEMBLES)
def test_an_interruption_of_the_interrupted_is_led_on_too(start: World) -> None:
    """Whoever takes over dies as well, in every place where that is possible, until only moves of servers are left."""
    seen_once: list[World] = []
    queue = [start]
    while queue:
        world = queue.pop()
        if world in seen_once:
            continue
        seen_once.append(world)
        decision = decided(world)
        if isinstance(decision, Done):
            assert dict(world.starts) == expected_starts(start)
            continue
        after = list(effects(world, decision)) if isinstance(decision, Step) else [advanced(world, decision)]
        assert after != [None], f"deadlock: {decision} in {seen(world)}"
        queue += [replace(each, order=()) for each in after if each is not None]
    print(f"{len(seen_once)} worlds")


@pytest.mark.parametrize("start", ENSEMBLES)
def test_who_leads_goes_last(start: World) -> None:
    """The ZooKeeper controller in roll 1, the quorum's leader in the finalisation."""
    worlds = list(led_to_the_end(start))
    steps = worlds[-1].order
    rolls = [s.node for s in steps if s.action == StepAction.ROLL_NODE and s.stage == NodeStage.MIGRATION]
    assert rolls[-1] == start.zookeeper_controller
    assert sorted(rolls) == [b.id for b in start.brokers]
    finals = [s.node for s in steps if s.node > 3000 and s.stage == NodeStage.KRAFT]
    before = next(world for world in worlds if world.approval is Approval.VALID)
    assert finals[-1] == before.leader
    assert len(finals) == len(start.controllers)


def test_the_phases_come_in_their_order() -> None:
    phases = [phase_of(seen(world)) for world in intermediate(beginning())]
    in_order = list(dict.fromkeys(phases))
    assert in_order == [
        Phase.PREFLIGHT,
        Phase.CONTROLLERS_UP,
        Phase.BROKERS_TO_HYBRID,
        Phase.COPYING,
        Phase.DUAL_WRITE,
        Phase.BROKERS_TO_KRAFT,
        Phase.SOAK,
        Phase.FINALIZING,
        Phase.KRAFT,
    ]
    assert phases == sorted(phases, key=in_order.index), "no phase comes back"


def test_an_election_at_any_moment_changes_nothing_of_the_outcome() -> None:
    """The leader is lost between any two decisions; another one, or the same, is elected."""
    start = beginning()
    for world in led_to_the_end(start):
        if world.leader is not None:
            last = list(led_to_the_end(replace(world, leader=None, offset_keeps_up=False)))[-1]
            assert dict(last.starts) == expected_starts(start)


def test_finalised_early_goes_forward_without_a_gate() -> None:
    """Somebody's mistake while all brokers are hybrid: POST_MIGRATION in the log. Nobody is asked any more."""
    hybrid = next(w for w in led_to_the_end(beginning()) if phase_of(seen(w)) is Phase.DUAL_WRITE)
    mistake = replace(hybrid, log=QuorumState.POST_MIGRATION)
    assert phase_of(seen(mistake)) is Phase.FINALIZED_EARLY
    worlds = list(led_to_the_end(mistake))
    assert not any(isinstance(decided(world), Gate) for world in worlds)
    assert dict(worlds[-1].starts) == expected_starts(beginning())


def test_finalised_early_goes_forward_from_zookeeper_mode_too() -> None:
    """Somebody put one broker back, and then the log became final: there is only one way for it."""
    hybrid = next(w for w in led_to_the_end(beginning()) if phase_of(seen(w)) is Phase.DUAL_WRITE)
    put_back = hybrid.with_node(replace(hybrid.node(1), file=NodeStage.ZOOKEEPER, process=NodeStage.ZOOKEEPER))
    worlds = list(led_to_the_end(replace(put_back, log=QuorumState.POST_MIGRATION)))
    assert dict(worlds[-1].starts) == expected_starts(beginning())


@pytest.mark.parametrize("start", ENSEMBLES)
def test_a_hold_leaves_no_node_stopped_and_starts_none_that_ran(start: World) -> None:
    """Whoever carried a step out has died in the middle of it, and then somebody holds: what was stopped is finished."""
    stops = [world for world in intermediate(start) if world.approval is Approval.NONE]
    for stop in stops:
        stopped = {node.id for node in _made(stop) if node.process is None}
        world, held = stop, Terms(is_held=True, compared=Compared.CLEAN)
        while (after := advanced(world, decide(seen(world), held))) is not None:
            world = after
        assert all(node.process is not None for node in _made(world))
        assert {step.node_id for step in world.order[len(stop.order) :]} == stopped
        assert len(stopped) <= 1
        begun_held = decide(seen(stop), replace(held, has_begun=False))
        assert isinstance(begun_held, Wait), "who has done nothing yet starts nobody"
    assert any(node.process is None for stop in stops for node in _made(stop))


def _made(world: World) -> list[Node]:
    return [node for node in (*world.brokers, *world.controllers) if node.file is not None]
