"""The revert window where ZooKeeper has counted fewer changes of a partition than the quorum has told the brokers."""

import base64
from collections.abc import Callable

import pytest

from activities.zk_to_kraft.window.partition_states import CHANGES_AT_ONCE
from domain.quorum_log.record_types import RecordType
from playground.fakes.topics import FakeTopic
from playground.fakes.znodes import claim_record, state_path
from playground.metadata_files import message
from tests.unit.fake_walk import Killed, LedgerInMemory, Walk
from tests.unit.fake_window import attempt, end_of, in_dual_write, next_step

TOPIC_ID = base64.urlsafe_b64decode(f"{FakeTopic('orders', ()).topic_id}==")
"""Of the simulated cluster's first topic."""
PATH = state_path("orders", 0)


@pytest.fixture(scope="module")
async def dual_write() -> Walk:
    return await in_dual_write()


@pytest.fixture
async def walk(dual_write: Walk) -> Walk:
    return dual_write.copy(ledger=LedgerInMemory(dual_write.cluster))


def record(epoch: int, partition: int = 0) -> tuple[int, bytes]:
    """The quorum's record of a partition with this epoch, as `FakeLog.stray` takes it."""
    lists = {"replicas": [1, 2, 3], "isr": [1, 2, 3], "removingReplicas": [], "addingReplicas": []}
    fields = {"partitionId": partition, "topicId": TOPIC_ID, "leader": 1, "leaderEpoch": 5, "partitionEpoch": epoch}
    tagged = {"leaderRecoveryState": 0, "eligibleLeaderReplicas": None, "lastKnownElr": None}
    kind, version, body = RecordType.PARTITION, 0, fields | lists | tagged
    return kind, message(kind, version, body)[3:]


def tell(walk: Walk, *records: tuple[int, bytes]) -> None:
    """The quorum has these records, and ZooKeeper nothing to write because of them."""
    walk.cluster.metadata_log.stray = records
    walk.cluster.advance(len(records))


class Commits:
    """Called after each call of a port: the state after each transaction, and how many controllers were killed by then.

    `meanwhile`: called once, when the first one is fenced.
    """

    def __init__(self, walk: Walk, meanwhile: Callable[[], None] = lambda: None) -> None:
        self._walk, self._meanwhile, self._kills = walk, [meanwhile], 0
        self.seen: list[tuple[bytes, int, int]] = []

    async def __call__(self, call: str) -> None:
        if call.endswith("rename") and self._meanwhile:
            self._meanwhile.pop()()
        self._kills += call.endswith("kill")
        if call == "zookeeper commit":
            self.seen.append((*state(self._walk), self._kills))


def state(walk: Walk) -> tuple[bytes, int]:
    found = walk.cluster.znodes.find(PATH)
    return found.data, found.version


async def test_a_state_that_lags_is_raised_before_anything_is_killed(walk: Walk) -> None:
    request = await next_step(walk)
    data, version = state(walk)
    tell(walk, record(version + 7))
    commits = Commits(walk)
    outcome = await attempt(walk, request, commits)
    assert outcome.is_done, outcome.blocked
    assert [seen[1:] for seen in commits.seen] == [(version + 7, 0), (version + 7, 3)]
    assert commits.seen[0][0] == data, "nothing but the version changes"
    assert any("lagged behind what brokers know" in change for change in outcome.changes), outcome.changes
    assert end_of(walk)["controller"] == "zookeeper"


async def test_a_state_that_is_ahead_is_left_alone(walk: Walk) -> None:
    request = await next_step(walk)
    before = state(walk)
    tell(walk, record(before[1]), record(9, partition=77))
    commits = Commits(walk)
    outcome = await attempt(walk, request, commits)
    assert outcome.is_done, outcome.blocked
    assert commits.seen == [(*before, 3)]
    assert not any("lagged" in change for change in outcome.changes)


async def test_what_changes_after_the_survey_is_raised_when_all_are_dead(walk: Walk) -> None:
    request = await next_step(walk)
    _, version = state(walk)
    commits = Commits(walk, lambda: tell(walk, record(version + 2)))
    outcome = await attempt(walk, request, commits)
    assert outcome.is_done, outcome.blocked
    assert [seen[1:] for seen in commits.seen] == [(version + 2, 3), (version + 2, 3)]


async def test_who_dies_while_raising_is_followed_by_one_who_ends_it(walk: Walk) -> None:
    request = await next_step(walk)
    _, version = state(walk)
    tell(walk, record(version + CHANGES_AT_ONCE + 5))
    seen: list[int] = []

    async def die(call: str) -> None:
        if call == "zookeeper commit":
            seen.append(state(walk)[1])
            raise Killed

    with pytest.raises(Killed):
        await attempt(walk, request, die)
    assert seen == [version + CHANGES_AT_ONCE]
    commits = Commits(walk)
    outcome = await attempt(walk, request, commits)
    assert outcome.is_done, outcome.blocked
    assert {seen[1] for seen in commits.seen} == {version + CHANGES_AT_ONCE + 5}
    assert [seen[2] for seen in commits.seen][-2:] == [0, 3]


async def test_a_controller_of_zookeeper_that_has_read_too_small_versions_is_followed_by_another(walk: Walk) -> None:
    """Somebody has deleted `/controller` by hand: a broker rules, and the partitions' replicas do not listen."""
    request = await next_step(walk)
    _, version = state(walk)

    def depose() -> None:
        tell(walk, record(version + 3))
        walk.cluster.znodes.create("/controller", claim_record(2, -1), owner=77)
        walk.cluster.znodes["/controller_epoch"] = b"1000"

    commits = Commits(walk, depose)
    outcome = await attempt(walk, request, commits)
    assert outcome.is_done, outcome.blocked
    assert version + 3 in [seen[1] for seen in commits.seen]
    assert walk.cluster.side.controller_epoch > 1000, "another election"
    assert end_of(walk)["controller"] == "zookeeper"


async def test_who_died_between_the_raise_and_the_hand_over_has_left_a_controller_that_must_not_stay(walk: Walk) -> None:
    """A broker rules already, by somebody's hand. What was raised behind its back it has not read."""
    request = await next_step(walk)
    _, version = state(walk)
    commits: list[int] = []

    async def die(call: str) -> None:
        if call.endswith("rename") and not commits:
            commits.append(0)
            tell(walk, record(version + 3))
            del walk.cluster.znodes["/migration"]
            walk.cluster.znodes["/controller_epoch"] = b"1000"
            walk.cluster.znodes.create("/controller", claim_record(2, -1), owner=77)
        if call == "zookeeper commit":
            raise Killed

    with pytest.raises(Killed):
        await attempt(walk, request, die)
    assert state(walk)[1] == version + 3
    outcome = await attempt(walk, request)
    assert outcome.is_done, outcome.blocked
    assert walk.cluster.side.controller_epoch > 1000, "another election"
