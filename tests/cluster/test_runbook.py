"""A migration that nobody leads any more is brought to its end with the runbook alone: all that is ours is stopped, and a plain
shell runs the commands and the checks, one after the other, as they stand.
"""

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from domain.configuration.properties import ENCODING, parse
from domain.questions import Runbook, RunbookAction
from playground.processes import running
from playground.rig import Rig
from playground.services import Program
from playground.waypoints import DUAL_WRITE, ONE_KRAFT, Waypoint

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

COMMAND_SECONDS = 400
"""The longest check waits for replicas five minutes."""


def runbook_at(rig: Rig, waypoint: Waypoint) -> Runbook:
    """Led to a point by us, and written there. Then everything of ours ends: workers, API, Temporal."""
    migration_id = rig.migrate()
    rig.forward_to(waypoint, migration_id)
    url = f"{rig.services.api_url}/migrations/{migration_id}/runbook"
    answer = httpx.get(url, headers={"Accept": "application/json"}, timeout=60, trust_env=False)
    page = httpx.get(url, timeout=60, trust_env=False)
    rig.services.stop()
    rig.temporal.stop()
    assert [program for program in Program if running(rig.services.launch(program))] == []
    assert answer.is_success, answer.text
    book = Runbook.model_validate_json(answer.text)
    assert book.unknown == ()
    assert all(command in page.text for action in book.back for command in action.commands)
    return book


def follow(actions: Sequence[RunbookAction]) -> None:
    """As a person would: an action's commands, then its check; no further than the first that fails."""
    began = time.monotonic()
    for action in actions:
        print(f"[{time.monotonic() - began:5.1f} s] {action.title}")
        for command in (*action.commands, action.check):
            done = subprocess.run(
                ["sh", "-c", command], capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False, cwd="/"
            )
            assert done.returncode == 0, f"{action.title}\n{command}\n{done.stdout}\n{done.stderr}"
    print(f"[{time.monotonic() - began:5.1f} s] done: {len(actions)} actions")


@pytest.mark.chaos
def test_back_with_the_runbook_alone(rig: Rig) -> None:
    """From dual write, one broker already in KRaft mode. ZooKeeper has counted fewer changes of some partitions."""
    before = rig.snapshot()
    rig.register()
    book = runbook_at(rig, ONE_KRAFT)
    rig.by_hand.let_states_lag("load.relaxed", "load.two-replicas")
    restarts = [action.node for action in book.back if action.title.startswith("Restart")]
    assert len(restarts) == 4, "the one in KRaft mode twice, the others once"

    follow(book.back)
    rig.load.await_acknowledged(200)
    assert rig.differences(before) == []
    assert rig.verify().lost == frozenset()


@pytest.mark.chaos
def test_forward_with_the_runbook_alone(rig: Rig) -> None:
    """From dual write, every broker hybrid, to the end; then ZooKeeper is shut down for good, and nobody misses it."""
    before = rig.snapshot()
    rig.register()
    book = runbook_at(rig, DUAL_WRITE)
    assert [a.node for a in book.forward if a.title.startswith("FINAL")][-1] is not None

    follow(book.forward)
    rig.by_hand.kill_zookeeper()
    rig.load.await_acknowledged(1000)
    for node in rig.cluster.spec.nodes:
        properties = parse(Path(node.properties_file).read_text(ENCODING))
        assert [key for key in properties if key.startswith("zookeeper.")] == []
        assert "process.roles" in properties
    assert rig.snapshot().content == before.content
    assert rig.verify().lost == frozenset()
