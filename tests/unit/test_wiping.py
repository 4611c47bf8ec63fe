"""What the wipe removes, what it keeps, and what it refuses."""

from typing import Any

import pytest

from activities.node_files import FENCED_META, METADATA_LOG, before_path, mark_path, sha256_of
from domain.contracts import StepRequest
from domain.errors import Superseded, Unsafe
from domain.zk_to_kraft.steps import StepAction
from playground.fakes.machine import text_file
from playground.fakes.storage_tool import write_meta
from tests.unit.fake_walk import KillAfter, LedgerInMemory, Walk
from tests.unit.fake_window import attempt, go_on, in_dual_write, next_step


@pytest.fixture(scope="module")
async def before_the_wipe() -> Walk:
    walk = await in_dual_write()
    await go_on(walk, StepAction.WIPE)
    return walk


@pytest.fixture
async def walk(before_the_wipe: Walk) -> Walk:
    return before_the_wipe.copy(ledger=LedgerInMemory(before_the_wipe.cluster))


def controller(walk: Walk, node_id: int = 3001) -> Any:
    return walk.cluster.nodes[node_id]


async def wipe(walk: Walk, *accepted: str) -> StepRequest:
    walk.accepted = accepted
    request = await next_step(walk)
    assert request.step.action == StepAction.WIPE
    return request


async def test_nothing_is_left_but_the_archived_files(walk: Walk) -> None:
    files = {c.id: controller(walk, c.id).machine.read(c.properties_file) for c in walk.cluster.spec.controllers}
    outcome = await attempt(walk, await wipe(walk))
    assert outcome.is_done, outcome.blocked
    assert "controller-3001 wiped" in outcome.changes
    for spec in walk.cluster.spec.controllers:
        machine, file = controller(walk, spec.id).machine, files[spec.id]
        assert not machine.names(spec.log_dirs[0])
        assert machine.read(spec.properties_file) is None
        assert machine.read(mark_path(spec.properties_file)) is None
        assert machine.read(before_path(spec.properties_file, sha256_of(file.content))) == file
    for broker in walk.cluster.spec.brokers:
        names = walk.cluster.nodes[broker.id].machine.names(broker.log_dirs[0]) or ()
        assert METADATA_LOG not in names
        assert "meta.properties" in names
    assert (await walk.decision()).decision == "done"


async def test_directories_that_only_the_file_names_are_wiped_too(walk: Walk) -> None:
    node = controller(walk)
    text = node.machine.read(node.spec.properties_file).content.decode()
    extra = (
        text.replace(f"log.dirs={node.spec.log_dirs[0]}", f"log.dirs={node.spec.log_dirs[0]},/more")
        + "metadata.log.dir=/raft\n"
    )
    assert "/more" in extra
    node.machine.write(node.spec.properties_file, text_file(extra))
    for path in ("/more", "/raft"):
        node.machine.write(f"{path}/{FENCED_META}", text_file("x"))
    node.machine.write(f"/raft/{METADATA_LOG}/00000000000000000000.log", text_file(""))
    assert (await attempt(walk, await wipe(walk))).is_done
    assert (node.machine.names("/more"), node.machine.names("/raft")) == ((), ())


async def test_what_kafka_did_not_write_stays(walk: Walk) -> None:
    node = controller(walk)
    node.machine.write(f"{node.spec.log_dirs[0]}/notes.txt", text_file("precious"))
    assert (await attempt(walk, await wipe(walk))).is_done
    assert node.machine.names(node.spec.log_dirs[0]) == ("notes.txt",)


async def test_a_controller_that_somebody_else_made_needs_its_loss_accepted(walk: Walk) -> None:
    request = await wipe(walk)
    node = controller(walk)
    node.machine.remove(mark_path(node.spec.properties_file))
    refused = await attempt(walk, request)
    assert "file-changed" in (refused.blocked or "")
    assert node.machine.read(node.spec.properties_file) is not None
    assert (await attempt(walk, await wipe(walk, "storage-of-controller-3001"))).is_done
    assert node.machine.read(node.spec.properties_file) is None


@pytest.mark.parametrize("node_id", [3002, 2])
async def test_a_node_that_does_not_answer_is_told_before_anything_is_touched(walk: Walk, node_id: int) -> None:
    request, calls = await wipe(walk), KillAfter()
    walk.cluster.faults.silent_nodes = {node_id}
    outcome = await attempt(walk, request, calls)
    assert not outcome.is_done
    assert "the step has not begun" in (outcome.blocked or "")
    assert not [call for call in calls.calls if "remove" in call or "write" in call]
    walk.cluster.faults.silent_nodes = set()
    assert (await attempt(walk, request)).is_done


async def test_the_last_look_at_a_controller_is_right_before_it_goes(walk: Walk) -> None:
    """Somebody takes the fence off and starts it, after the look that allowed the wipe."""
    request, node = await wipe(walk), controller(walk, 3003)

    async def start(call: str) -> None:
        if call == "node 3001 remove_tree" and node.process is None:
            node.machine.rename(f"{node.spec.log_dirs[0]}/{FENCED_META}", f"{node.spec.log_dirs[0]}/meta.properties")
            node.start()

    with pytest.raises(Unsafe, match="controller-3003 runs"):
        await attempt(walk, request, start)
    assert node.has_metadata_log


async def test_a_broker_that_is_not_back_keeps_its_log(walk: Walk) -> None:
    """Somebody restarts it as a hybrid one after the look that allowed the wipe: its log is in use."""
    request, node = await wipe(walk), walk.cluster.nodes[3]
    flag = "\nzookeeper.metadata.migration.enable=true\ncontroller.quorum.voters=3001@x:1\n"

    async def restart(call: str) -> None:
        if call == "node 1 remove_tree":
            file = node.machine.read(node.spec.properties_file)
            node.machine.write(node.spec.properties_file, text_file(file.content.decode() + flag))
            node.die()
            node.start()
            node.process.looks = 100
            node.machine.write(f"{node.spec.log_dirs[0]}/{METADATA_LOG}/x.log", text_file(""))

    with pytest.raises(Unsafe, match="ZooKeeper mode"):
        await attempt(walk, request, restart)
    assert node.has_metadata_log


async def test_another_run_s_cluster_is_left_alone(walk: Walk) -> None:
    request = await wipe(walk)
    walk.ledger.held_by = 2
    with pytest.raises(Superseded):
        await attempt(walk, request)
    assert controller(walk).machine.read(controller(walk).spec.properties_file) is not None


async def test_it_is_not_taken_while_anything_else_is_to_be_done(walk: Walk) -> None:
    request = await wipe(walk)
    walk.cluster.znodes["/migration"] = b"{}"
    outcome = await attempt(walk, request)
    assert "leave-kraft" in (outcome.blocked or "") or "step" in (outcome.blocked or "")
    assert controller(walk).machine.read(controller(walk).spec.properties_file) is not None


async def test_another_node_s_directory_that_the_file_names_is_not_wiped(walk: Walk) -> None:
    """Its path was copied from a broker's file, after the look that allowed the wipe."""
    request, node = await wipe(walk), controller(walk)
    write_meta(node.machine, "/data/broker-1", {"version": "1", "cluster.id": walk.cluster.spec.cluster_id}, 1)
    node.machine.write(f"/data/broker-1/{METADATA_LOG}/00000000000000000000.log", text_file("living"))

    async def copy_path(call: str) -> None:
        file = node.machine.read(node.spec.properties_file)
        if call == "node 1 remove_tree" and b"/data/broker-1" not in file.content:
            node.machine.write(
                node.spec.properties_file, text_file(file.content.decode() + "\nmetadata.log.dir=/data/broker-1\n")
            )

    with pytest.raises(Unsafe, match="belongs to node 1"):
        await attempt(walk, request, copy_path)
    assert node.machine.names("/data/broker-1") == (METADATA_LOG, "meta.properties")
    assert FENCED_META in node.machine.names(node.spec.log_dirs[0])
