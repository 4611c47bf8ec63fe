"""Two ensembles behind one zookeeper.connect: seen by what their servers say, and told with whom to touch and whom not."""

from dataclasses import replace

import pytest

from activities.observing import member_trees
from activities.observing.member_trees import torn_trees
from domain.diagnosis.causes.ensemble import are_torn, majority_of, sides_of
from domain.diagnosis.causes.hints import Hints, Serving
from domain.errors import Obstacle
from domain.observed.ensemble import MemberTree, Trees
from domain.observed.observation import Unanswered
from domain.zk_to_kraft.blockers import blockers_of
from domain.zk_to_kraft.causes.case import case_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from tests.unit.conftest import Point, cluster_spec, observation

SPEC, POLICY, DUAL = cluster_spec(), ZkToKraftPolicy(), observation(Point.DUAL_WRITE)
A, B, C = "zk-1:2181", "zk-2:2181", "zk-3:2181"
FOLLOWS, LEADS = MemberTree(0x100000635, 255), MemberTree(0x100000635, 255, is_leader=True)
OTHER_LEADS, OTHER_FOLLOWS = MemberTree(0x200000017, 252, is_leader=True), MemberTree(0x200000017, 252)
ALONE = MemberTree(0x100000700, 250, is_alone=True)
ELECTED = MemberTree(0x200000000, 255, is_leader=True)
BUSY_LEADER = MemberTree(0x200000010, 255, is_leader=True, received=90_000)
QUIET_LEADER = MemberTree(0x200000010, 252, is_leader=True, received=40)
MANY = MemberTree(0x200000010, 255, received=900_000)
SAME_EPOCH = MemberTree(0x100000020, 250, is_leader=True)


def later(tree: MemberTree, by: int) -> MemberTree:
    return replace(tree, zxid=tree.zxid + by)


@pytest.mark.parametrize(
    ("first", "then", "is_so"),
    [
        ({A: FOLLOWS, B: LEADS, C: FOLLOWS}, {A: FOLLOWS, B: LEADS, C: FOLLOWS}, False),
        ({A: FOLLOWS, B: LEADS, C: OTHER_LEADS}, {A: FOLLOWS, B: LEADS, C: OTHER_LEADS}, True),
        ({A: FOLLOWS, B: LEADS, C: OTHER_FOLLOWS}, {A: FOLLOWS, B: LEADS, C: OTHER_FOLLOWS}, True),
        ({A: FOLLOWS, B: LEADS, C: OTHER_FOLLOWS}, {A: FOLLOWS, B: LEADS, C: FOLLOWS}, False),
        ({A: FOLLOWS, B: LEADS, C: SAME_EPOCH}, {A: FOLLOWS, B: LEADS, C: later(SAME_EPOCH, 9)}, True),
        ({B: BUSY_LEADER, C: QUIET_LEADER}, {B: later(BUSY_LEADER, 2), C: later(QUIET_LEADER, 2)}, True),
        ({A: LEADS, B: later(LEADS, 1)}, {A: later(LEADS, 5), B: later(LEADS, 4)}, False),
        ({A: FOLLOWS, B: ELECTED, C: FOLLOWS}, {A: FOLLOWS, B: ELECTED, C: FOLLOWS}, False),
        ({A: FOLLOWS, B: LEADS, C: ALONE}, {A: FOLLOWS, B: LEADS, C: ALONE}, True),
        ({A: FOLLOWS, C: ALONE}, {A: FOLLOWS, C: ALONE}, True),
        ({A: ALONE}, {A: ALONE}, False),
        ({A: ALONE, B: ALONE}, {A: later(ALONE, 3), B: later(ALONE, 3)}, False),
        ({A: FOLLOWS, B: LEADS}, {A: LEADS, B: FOLLOWS}, False),
        ({A: BUSY_LEADER, B: BUSY_LEADER, C: MANY}, {A: BUSY_LEADER, B: MANY, C: BUSY_LEADER}, False),
    ],
    ids=[
        "one ensemble",
        "two leaders",
        "the other leader is not asked",
        "one has just come",
        "two leaders of one epoch",
        "two leaders that are equally far",
        "one leader with two names",
        "just elected",
        "one is standalone",
        "standalone beside a follower",
        "a single server",
        "a single server with two names",
        "another one leads meanwhile",
        "a name with two addresses",
    ],
)
def test_servers_that_are_two_ensembles(first: Trees, then: Trees, is_so: bool) -> None:
    assert are_torn(first, then) is is_so


@pytest.mark.parametrize("other", [OTHER_LEADS, OTHER_FOLLOWS, ALONE])
def test_each_follower_is_on_its_leaders_side(other: MemberTree) -> None:
    sides = sides_of({C: other, A: later(FOLLOWS, -1), B: LEADS})
    assert [set(side.members) for side in sides] == [{A, B}, {C}]
    right = majority_of(sides, 3)
    assert right is not None
    assert right.names in {f"{A}, {B}", f"{B}, {A}"}
    assert majority_of(sides, 4) is None


@pytest.mark.parametrize(
    ("looks", "is_told", "asked"),
    [
        ([(FOLLOWS, LEADS, FOLLOWS)], False, 3),
        ([(FOLLOWS, LEADS, OTHER_LEADS)] * 2, True, 6),
        ([(FOLLOWS, LEADS, OTHER_LEADS), (FOLLOWS, LEADS, None)], False, 6),
        ([(None, LEADS, None)], False, 3),
    ],
)
async def test_it_is_asked_twice_before_it_is_believed(
    looks: list[tuple[MemberTree | None, ...]], is_told: bool, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member_trees, "PAUSE_SECONDS", 0.001)
    answers = [tree for look in looks for tree in look]
    calls: list[str] = []

    async def ask(address: str) -> MemberTree | None:
        calls.append(address)
        return answers.pop(0)

    assert bool(await torn_trees(ask, (A, B, C))) is is_told
    assert len(calls) == asked


def entries(torn: Trees, servers: dict[str, Serving]) -> list[tuple[str, str, str, str]]:
    why = "the servers of zookeeper.connect are two ensembles with two trees: …"
    torn_apart = Unanswered(what="zookeeper", why=why, obstacle=Obstacle.TORN)
    seen = DUAL.model_copy(update={"zookeeper": None, "unanswered": (torn_apart,)})
    looked = replace(case_of(seen, SPEC, POLICY), hints=Hints(torn=torn, servers=servers))
    return [(entry.code, entry.object, entry.observed, entry.fix) for entry in blockers_of(looked)[0]]


def test_who_is_outvoted_is_to_be_stopped_and_nobody_is_to_connect_anew() -> None:
    """Nothing else is told: what one side lacks is nothing that the cluster has lost."""
    ((code, about, observed, fix),) = entries({A: FOLLOWS, B: LEADS, C: OTHER_LEADS}, dict.fromkeys((A, B, C), Serving.YES))
    assert (code, about) == ("GF11", f"zookeeper {C}")
    assert f"{C} (leader, zxid 0x200000017, 252 znodes)" in observed
    assert fix.startswith("Check again after half a minute")
    assert "restart no broker and no controller" in fix
    assert f"Make sure first that {B}, {A} have the cluster" in fix
    assert f"Touch nothing of those. Stop {C}" in fix


def test_where_no_side_is_a_majority_a_person_has_to_find_out() -> None:
    ((code, about, _, fix),) = entries({B: LEADS, C: OTHER_LEADS}, dict.fromkeys((A, B, C), Serving.YES))
    assert (code, about, "get /controller" in fix) == ("GF11", "ZooKeeper", True)
    ((code, about, observed, _),) = entries({}, dict.fromkeys((A, B, C), Serving.YES))
    assert (code, about) == ("GF11", "ZooKeeper")
    assert observed.startswith("the servers of zookeeper.connect are two ensembles")
