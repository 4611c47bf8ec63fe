"""What the tests of `blockers` look at, and how they ask."""

from dataclasses import replace
from datetime import timedelta

from domain.diagnosis.blocker import Blocker
from domain.diagnosis.causes.hints import Hints
from domain.errors import Obstacle
from domain.observed.ensemble import MemberTree
from domain.observed.observation import MigrationZnode, Observation, PartitionFault, Process, Unanswered
from domain.policy import MigrationPolicy
from domain.rulings import Ruling
from domain.zk_to_kraft.assessment import assess
from domain.zk_to_kraft.blockers import blockers_of
from domain.zk_to_kraft.causes.case import MigrationCase, MigrationLookups, case_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.probed import with_probed
from tests.unit.conftest import (
    LEADER,
    LOG_END,
    NOW,
    Point,
    cluster_spec,
    mark_of,
    observation,
    stopped,
    with_file,
    with_metrics,
    with_part,
    with_zookeeper,
)

SPEC = cluster_spec()
POLICY = ZkToKraftPolicy(compare_copy=False, compare_messages=False)
STANDBY = 3001
STARTED = "[2026-11-20 02:59:00,000] INFO Registered `kafka:type=kafka.Log4jController` MBean"
SAID = "[2026-11-20 02:59:30,000]"
FRAMES = tuple(f"\tat kafka.raft.KafkaRaftManager.start{n}(RaftManager.scala:{n})" for n in range(90))
SERVERS = ("127.0.0.1:2181", "127.0.0.1:2182", "127.0.0.1:2183")


def looked_at(seen: Observation, policy: MigrationPolicy = POLICY, **more: object) -> MigrationCase:
    return replace(case_of(seen, SPEC, policy), **more)  # type: ignore[arg-type]


def found(seen: Observation, ruling: Ruling | None = None, policy: ZkToKraftPolicy = POLICY, **more: object) -> list[Blocker]:
    """The entries, with what is decided of this very look."""
    assessment = assess(seen, SPEC, policy, ruling or Ruling(), "")
    return list(blockers_of(looked_at(seen, policy, **more), assessment.decision, assessment.stands)[0])


def keys(entries: list[Blocker]) -> list[tuple[str, str]]:
    return [(entry.code, entry.object) for entry in entries]


def dead(seen: Observation, node_id: int, *lines: str) -> Observation:
    return with_part(seen, node_id, process=stopped(f"pid-{node_id}"), metrics=None, last_output=lines)


def silent(
    seen: Observation, node_id: int, why: str = "timed out", *, is_paused: bool = False, obstacle: Obstacle | None = None
) -> Observation:
    name = SPEC.node_name(node_id)
    begun = NOW - timedelta(minutes=2)
    process = Process(is_running=True, identity="77@1", last_identity="77@1", started_at=begun, is_paused=is_paused)
    seen = with_part(seen, node_id, process=process, metrics=None)
    part = Unanswered(what=f"metrics of {name}", why=why, obstacle=obstacle)
    return seen.model_copy(update={"unanswered": (*seen.unanswered, part)})


def without(seen: Observation, part: str, why: str = "no answer") -> Observation:
    return seen.model_copy(update={part: None, "unanswered": (*seen.unanswered, Unanswered(what=part, why=why))})


def unclaimed(seen: Observation) -> Observation:
    return with_probed(with_zookeeper(seen, controller=None), failover_hazards=())


def edited(seen: Observation, node_id: int, *, is_proven: bool = True) -> Observation:
    """As far as `stage_of_disk` is concerned it is nobody's stage any more."""
    return with_file(seen, node_id, "process.roles=nonsense\n", mark_of("w" * 64, is_proven=is_proven))


BEFORE = observation(Point.BEFORE)
HYBRID, DUAL, SOAK = observation(Point.HYBRID), observation(Point.DUAL_WRITE), observation(Point.SOAK)
GAPS = (PartitionFault(partition="orders-3", missing=(2,)),)
STALE_COPY = MigrationZnode(controller_id=3001, controller_epoch=1, offset=LOG_END + 400)


def behind(lag: int = 390, **hints: object) -> Blocker:
    """Dual write is 400 records behind, and lives, where it has a lag."""
    distant = with_metrics(DUAL, LEADER, raft_log_end=LOG_END + 400, write_behind_lag=lag)
    own = MigrationLookups(**{name: hints.pop(name) for name in ("unwritten", "crowded") if name in hints})  # type: ignore[arg-type]
    asked = Hints(of_kind=own, **hints)  # type: ignore[arg-type]
    (entry,) = [e for e in blockers_of(looked_at(distant, hints=asked))[0] if e.object == "/migration"]
    return entry


def trees_of(*znodes: int | None, leader: int) -> dict[str, MemberTree]:
    """Of members that are equally far; `None`: it does not tell."""
    given = enumerate(zip(SERVERS, znodes, strict=True))
    return {address: MemberTree(0x10000002F, n, index == leader) for index, (address, n) in given if n is not None}


def without_gauges(seen: Observation, node_id: int, seconds_ago: float) -> Observation:
    seen = with_metrics(seen, node_id, broker_state=None, migration_gauge=None, raft_log_end=None, raft_leader=None)
    process = seen.node(node_id).process
    assert process is not None
    begun = process.model_copy(update={"started_at": seen.ended_at - timedelta(seconds=seconds_ago)})
    return with_part(seen, node_id, process=begun)


def rolling(seen: Observation, node_id: int, before: str | None) -> Observation:
    """As while a step of ours takes it through a restart: its mark names the process that ran before."""
    view = seen.node(node_id)
    assert view.disk is not None
    assert view.disk.file is not None
    marked = mark_of(view.disk.file.sha256, is_proven=False).model_copy(update={"before_identity": before})
    return with_part(
        seen, node_id, disk=view.disk.model_copy(update={"file": view.disk.file.model_copy(update={"mark": marked})})
    )
