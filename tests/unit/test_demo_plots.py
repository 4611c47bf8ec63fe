"""What the command line offers, and what the plots do with the product's answers."""

from pathlib import Path
from typing import Any, cast

import pytest

from domain.decisions import Finding
from domain.plans import Basis, Estimate
from playground.by_hand import MIGRATION, ByHand
from playground.demo.directory import DEFAULT_DIRECTORY, Busy
from playground.demo.door import Door, PlanSeen
from playground.demo.meddling import NOT_ENOUGH, StandsInTheWay
from playground.demo.obstacles import CONTROLLER, DEAD, FOUND_BY_LOOKING, FOUND_BY_REHEARSAL, PAYMENTS_ZNODE, POISONED, TOPIC
from playground.demo.options import Plot, options_of
from playground.demo.performance import next_steps
from playground.demo.story import HEADINGS, TITLES

REPOSITORY = Path(__file__).parent.parent.parent


def test_a_story_that_there_is_not_is_answered_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options_of(["--story", "foo"])
    said = capsys.readouterr().err
    assert "'foo'" in said
    assert all(f"'{plot}'" in said.splitlines()[-1] for plot in Plot)


@pytest.mark.parametrize("plot", Plot)
def test_every_story_can_be_asked_for_and_has_a_title(plot: Plot) -> None:
    assert options_of(["--story", plot]).story is plot
    assert plot in TITLES
    assert plot in HEADINGS


def test_a_cluster_to_play_with_is_kept() -> None:
    assert options_of(["--story", "none"]).keep
    assert not options_of([]).keep


def test_the_next_steps_set_what_the_page_of_calls_begins_with() -> None:
    said, page = next_steps("http://api", Path("/demo/wanted.json")), (REPOSITORY / "docs" / "calls.md").read_text("utf-8")
    assert "docs/calls.md" in said
    assert "API=http://api\nCLUSTER=demo\nWANTED=/demo/wanted.json\n" in said
    assert {"API=", "CLUSTER=", "WANTED="} <= {f"{line.partition('=')[0]}=" for line in page.splitlines()}


def test_who_finds_a_demo_running_is_told_the_command_that_started_it() -> None:
    """`make` knows one directory only."""
    assert "make demo-stop" in str(Busy(DEFAULT_DIRECTORY.absolute(), 7))
    other = str(Busy(Path("/elsewhere"), 7))
    assert "playground.demo stop --directory /elsewhere" in other
    assert "make" not in other


class Tree:
    """By hand, on a tree in memory."""

    broker_ids = (1, 2)

    def __init__(self) -> None:
        self.znodes: dict[str, dict[str, Any]] = {
            TOPIC: {"partitions": {"0": [1, 2]}},
            POISONED: {"config": {}},
            PAYMENTS_ZNODE: {"topic_id": "x"},
            CONTROLLER: {},
        }

    def znode(self, path: str) -> dict[str, Any] | None:
        return self.znodes.get(path)

    def put_znode(self, path: str, value: dict[str, Any]) -> None:
        self.znodes[path] = value

    def delete_znode(self, path: str) -> None:
        del self.znodes[path]

    def topic_id_on_disk(self, _topic: str) -> str:
        return "x"

    def put_into_force(self, _broker: int, _assignments: dict[str, str]) -> None:
        """Nobody reads the files here."""


class Planning:
    """A product that names each obstacle that is there; what only a rehearsal finds, after one."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    async def plan(self, _cluster: str, _policy: object, *, rehearse: bool) -> PlanSeen:
        (nameless, migration, dead), (poisoned,) = FOUND_BY_LOOKING, FOUND_BY_REHEARSAL
        there = {
            nameless: "topic_id" not in self.tree.znodes[PAYMENTS_ZNODE],
            migration: MIGRATION in self.tree.znodes,
            dead: DEAD in self.tree.znodes[TOPIC]["partitions"]["0"],
            poisoned: rehearse and bool(self.tree.znodes[POISONED]["config"]),
        }
        findings = tuple(
            Finding(code=each.code, object=each.object, observed="there", expected="", fix="Mend it.")
            for each, is_there in there.items()
            if is_there
        )
        estimate = Estimate(seconds=115.5, basis=Basis.GUESS, parts=())
        restarts = {"broker-1": 2, "controller-3001": 1}
        return PlanSeen(id="p", is_blocked=bool(findings), findings=findings, unknown=(), restarts=restarts, estimate=estimate)

    async def start_planned(self, _cluster: str, plan_id: str) -> str:
        return f"migration of {plan_id}"


async def test_every_plan_is_told_the_one_that_finds_nothing_too() -> None:
    tree, told = Tree(), list[str]()
    door, by_hand = cast("Door", Planning(tree)), cast("ByHand", tree)
    stands = StandsInTheWay(door, by_hand, lambda text, _tone: told.append(text), 3, lambda _: 0)
    assert await stands.start("demo", {}) == "migration of p"
    assert [line.partition(": ")[2] for line in told if line.startswith("POST /plans, from a look")] == [
        "3 blockers",
        "no blocker, a migration may start",
    ]
    assert [line.partition(": ")[2] for line in told if line.startswith("POST /plans, with a rehearsal")] == [
        "1 blocker",
        "no blocker, a migration may start",
    ]
    assert told.index(NOT_ENOUGH) == told.index("POST /plans, from a look: no blocker, a migration may start") + 1
    assert told[-1] == "the plan: 3 restarts, about 2 minutes, comparisons left out (a guess)"
    assert stands.planned_seconds == 115.5
    assert sum("the demo " in line for line in told) == len((*FOUND_BY_LOOKING, *FOUND_BY_REHEARSAL))
