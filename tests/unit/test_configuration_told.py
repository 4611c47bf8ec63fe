"""What people are told of configuration management: by the plan, by the runbook, and where a specification is wrong."""

import copy
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from domain.cluster import ClusterSpec
from domain.observed.observation import NodeView, Observation, PauseMark
from domain.of_kind import Wanted
from domain.plans import Asked
from domain.questions import Runbook, RunbookAction
from domain.rolling.change import NodeFile
from domain.rolling.configuration_management import NOTHING_PAUSED, NOTHING_WRITTEN
from domain.zk_to_kraft.planning.plan import plan_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.runbook.whole import runbook_of
from domain.zk_to_kraft.steps import NodeStage
from tests.unit.conftest import NOW, Point, broker_text, cluster_spec, observation, text_at, with_file, with_metrics, with_node

BARE = cluster_spec()
POLICY = ZkToKraftPolicy()
FLAG = "/run/agent/it's paused"
HOOK = {"pause": ["touch", FLAG], "is_paused": ["test", "-e", FLAG], "resume": ["rm", "-f", FLAG]}
MARK = PauseMark(step_id="m1/1", generation=1, is_ours=True, is_proven=True)


def hooked(*node_ids: int, hook: Any = None) -> ClusterSpec:
    """Nodes whose specification names a hook."""
    told = copy.deepcopy(BARE.model_dump(mode="json"))
    for node in (*told["brokers"], *told["quorum"]["controllers"]):
        if node["id"] in node_ids:
            node["driver"]["configuration_management"] = hook or HOOK
    return ClusterSpec.model_validate(told)


def seen(point: Point, node_id: int, mark: PauseMark | None, *, is_paused: bool) -> Observation:
    def change(node: NodeView) -> NodeView:
        assert node.disk is not None
        disk = node.disk.model_copy(update={"pause": mark})
        return node.model_copy(update={"is_configuration_paused": is_paused, "disk": disk})

    return with_node(observation(point), node_id, change)


def files(stage: NodeStage) -> dict[int, NodeFile]:
    brokers = {b.id: NodeFile(text_at(BARE, b.id, stage), broker_text(b.id), "/archive") for b in BARE.brokers}
    made = None if stage is NodeStage.ZOOKEEPER else NodeStage.MIGRATION
    texts = {c.id: None if made is None else text_at(BARE, c.id, made) for c in BARE.controllers}
    return brokers | {i: NodeFile(text, None, "/archive") for i, text in texts.items()}


def test_a_plan_says_of_each_node_how_it_is_paused_or_that_it_is_not() -> None:
    asked = Asked(id="p", kind="zk-to-kraft", policy=POLICY, wanted=Wanted(), requested_by="ann", requested_at=NOW)
    made = plan_of(observation(Point.BEFORE), hooked(2, 3001), files(NodeStage.ZOOKEEPER), asked, "o")
    told = {node.name: node.configuration_management for node in made.nodes}
    for name in ("broker-2", "controller-3001"):
        for order in ("touch", "test -e", "rm -f"):
            assert f"`{order} '/run/agent/it'\"'\"'s paused'`" in told[name]
    assert {told[name] for name in ("broker-1", "broker-3", "controller-3002")} == {NOTHING_PAUSED}
    assert not made.is_blocked
    rest = plan_of(observation(Point.SOAK), hooked(2, 3001), files(NodeStage.KRAFT), asked, "o")
    assert {node.name: node.configuration_management for node in rest.nodes}["broker-2"] == NOTHING_WRITTEN


def runbook(look: Observation, spec: ClusterSpec, stage: NodeStage) -> Runbook:
    return runbook_of(look, spec, POLICY, files(stage))


def hooks_in(actions: tuple[RunbookAction, ...]) -> list[tuple[int, str]]:
    found = [(i, a.node) for i, a in enumerate(actions) if "onfiguration management" in a.title]
    return [(i, node) for i, node in found if node is not None]


def test_a_runbook_pauses_before_any_file_changes_and_resumes_last() -> None:
    book = runbook(observation(Point.SOAK), hooked(2), NodeStage.KRAFT)
    assert hooks_in(book.forward) == [(1, "broker-2"), (len(book.forward) - 1, "broker-2")]
    assert hooks_in(book.back) == [(1, "broker-2"), (len(book.back) - 1, "broker-2")]
    assert hooks_in(runbook(observation(Point.SOAK), BARE, NodeStage.KRAFT).back) == []


def test_a_flag_that_is_lost_comes_back_before_anything_is_paused() -> None:
    text = text_at(BARE, 3003, NodeStage.KRAFT)
    look = with_file(with_metrics(observation(Point.DUAL_WRITE), 3003, write_behind_lag=None), 3003, text)
    found = files(NodeStage.MIGRATION) | {3003: NodeFile(text, None, "/archive")}
    book = runbook_of(look, hooked(2), POLICY, found)
    for way in (book.forward, book.back):
        assert way[1].title.startswith("IMMEDIATELY")
        assert hooks_in(way)[0] == (2, "broker-2")


def test_what_somebody_else_has_paused_a_runbook_leaves_alone() -> None:
    theirs = seen(Point.SOAK, 2, None, is_paused=True)
    assert hooks_in(runbook(theirs, hooked(2), NodeStage.KRAFT).back) == []
    ours = seen(Point.SOAK, 2, MARK, is_paused=True)
    assert len(hooks_in(runbook(ours, hooked(2), NodeStage.KRAFT).back)) == 2


def test_at_the_end_a_runbook_resumes_what_is_still_paused_and_nothing_else() -> None:
    left = seen(Point.FINAL, 2, MARK, is_paused=True)
    assert hooks_in(runbook(left, hooked(2), NodeStage.KRAFT).forward) == [(1, "broker-2")]
    assert runbook(observation(Point.FINAL), hooked(2), NodeStage.KRAFT).forward == ()


def test_the_commands_of_a_runbook_do_it_in_a_real_shell(tmp_path: Path) -> None:
    flag = tmp_path / "it's paused"
    hook = {order: [str(flag) if word == FLAG else word for word in command] for order, command in HOOK.items()}
    book = runbook(observation(Point.SOAK), hooked(2, hook=hook), NodeStage.KRAFT)
    pause, resume = book.back[1], book.back[-1]

    def holds(action: RunbookAction) -> bool:
        return subprocess.run(["sh", "-c", action.check], check=False).returncode == 0

    assert not holds(pause)
    for _ in range(2):
        subprocess.run(["sh", "-c", " && ".join(pause.commands)], check=True)
        assert holds(pause)
        assert not holds(resume)
    subprocess.run(["sh", "-c", " && ".join(resume.commands)], check=True)
    assert holds(resume)


@pytest.mark.parametrize("order", ["pause", "is_paused", "resume"])
@pytest.mark.parametrize("command", [[], [""], ["a\0b"], "puppet agent", None])
def test_a_hook_that_is_no_program_is_refused_with_its_field(order: str, command: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        hooked(2, hook=HOOK | {order: command})
    assert {("configuration_management", order)} == {tuple(e["loc"][3:5]) for e in caught.value.errors()}


def test_a_hook_has_all_three_and_no_other() -> None:
    for broken in ({k: v for k, v in HOOK.items() if k != "resume"}, HOOK | {"restart": ["true"]}):
        with pytest.raises(ValidationError):
            hooked(2, hook=broken)
    assert hooked().brokers[0].driver.configuration_management is None
