"""What is told of machines, ours among them."""

from dataclasses import replace

import pytest

from domain.diagnosis.causes.hints import Hints
from domain.diagnosis.machines.notes import OURS, MachineChanges
from domain.diagnosis.machines.vital_signs import VitalSigns
from domain.errors import Obstacle
from domain.observed.observation import (
    LogDir,
    NodeDisk,
    Process,
    StorageState,
)
from domain.rulings import Ruling
from domain.zk_to_kraft.assessment import assess
from domain.zk_to_kraft.blockers import blockers_of
from tests.unit.blocked import BEFORE, DUAL, POLICY, SERVERS, SPEC, STANDBY, found, keys, looked_at, silent, without
from tests.unit.conftest import (
    NOW,
    signs_of,
    with_file,
    with_part,
)


def test_what_a_machine_says_is_told_with_what_is_told_of_the_node() -> None:
    seen = silent(BEFORE, 1)
    signs = {"broker-1": signs_of(stuck_threads=4), "broker-2": signs_of()}
    (entry,) = found(seen, hints=Hints(signs=signs))
    assert (entry.code, entry.object) == ("part-unknown", "broker-1")
    assert "gives no answer" in entry.observed
    assert "4 of its threads wait in the kernel" in entry.observed
    assert entry.fix.startswith("Check the disk of its data")


def test_a_machine_that_is_busy_is_looked_at_after_what_the_node_itself_lacks() -> None:
    """Everything on it waits for a CPU then, the well too."""
    busy = signs_of(on_cpu=0.05, awaiting_cpu=0.95)
    (entry,) = found(silent(BEFORE, 1, obstacle=Obstacle.FORBIDDEN), hints=Hints(signs={"broker-1": busy}))
    assert "wait for a CPU 95%" in entry.observed
    assert entry.fix.startswith("Let keeperless-activities read it")
    assert "Find what else has its CPUs" in entry.fix


def test_what_our_own_machine_says_is_an_entry() -> None:
    seen = silent(BEFORE, 1)
    entries = found(seen, hints=Hints(own_signs=signs_of(open_files=99, most_open_files=100)))
    assert keys(entries) == [("part-unknown", "broker-1"), ("machine", "keeperless-activities")]
    assert "99 files open" in entries[1].observed


def metrics_address(node_id: int) -> str:
    return SPEC.node(node_id).metrics.url.split("/")[2]


@pytest.mark.parametrize(
    ("theirs", "is_told"), [(signs_of(), True), (signs_of(unaccepted=((9092, 17, ""),)), False), (signs_of(unread=1), True)]
)
def test_who_hangs_and_acknowledges_nothing_is_no_trouble_of_our_own_machine(theirs: VitalSigns, *, is_told: bool) -> None:
    """A JVM that a debugger holds accepts nobody: its queue is full, and its kernel lets who knocks wait."""
    own = signs_of(unheard=(metrics_address(2),))
    entries = found(silent(DUAL, 2), hints=Hints(signs={"broker-2": theirs}, own_signs=own))
    assert keys(entries) == [("part-unknown", "broker-2")]
    assert (f"what keeperless-activities sends to it at {metrics_address(2)}" in entries[0].observed) is is_told


def test_what_nobody_in_trouble_owns_is_unheard_of_by_our_own_machine() -> None:
    own = signs_of(unheard=(metrics_address(2), "10.9.9.9:5432"))
    entries = found(silent(DUAL, 2), hints=Hints(own_signs=own))
    assert keys(entries) == [("part-unknown", "broker-2"), ("machine", "keeperless-activities")]
    assert "what it sends to 10.9.9.9:5432 is not acknowledged" in entries[1].observed
    (entry,) = found(DUAL, hints=Hints(own_signs=signs_of(unheard=(metrics_address(2),))))
    assert entry.object == "keeperless-activities"


@pytest.mark.parametrize("written", ["SASL_SSL://10.0.0.2:9093", "PLAINTEXT://[::1:9092, CLIENT_TLS://10.0.0.2:9093"])
def test_addresses_are_known_of_listeners_however_they_are_called_and_whatever_else_stands_there(written: str) -> None:
    seen = with_file(silent(DUAL, 2), 2, f"broker.id=2\nadvertised.listeners={written}\n")
    entries = {entry.code: entry for entry in found(seen, hints=Hints(own_signs=signs_of(unheard=("10.0.0.2:9093",))))}
    assert set(entries) == {"part-unknown", "file-changed"}
    assert "what keeperless-activities sends to it at 10.0.0.2:9093" in entries["part-unknown"].observed


def test_of_nodes_with_names_the_numbers_tell_whose_an_address_is() -> None:
    """All have one port: it says nothing."""
    nodes = [
        node.model_copy(update={"metrics": node.metrics.model_copy(update={"url": f"http://kafka-{node.id}:7071/metrics"})})
        for node in SPEC.brokers
    ]
    named = SPEC.model_copy(update={"brokers": tuple(nodes)})
    numbers = {f"kafka-{number}": (f"10.0.0.{number}",) for number in (1, 2, 3)}
    assessment = assess(silent(DUAL, 2), named, POLICY, Ruling(), "")
    for unheard, objects in (("10.0.0.2:7071", ["broker-2"]), ("10.0.0.3:7071", ["broker-2", "keeperless-activities"])):
        hints = Hints(own_signs=signs_of(unheard=(unheard,)), numbers=numbers)
        looked = replace(looked_at(silent(DUAL, 2), hints=hints), spec=named)
        entries, _ = blockers_of(looked, assessment.decision, assessment.stands)
        assert [entry.object for entry in entries] == objects
        assert "is not acknowledged" in entries[-1].observed


@pytest.mark.parametrize("node_id", [2, STANDBY])
def test_a_directory_that_a_mount_covers_is_to_be_uncovered_and_not_formatted(node_id: int) -> None:
    path, view = "/data/x", DUAL.node(node_id)
    assert view.disk is not None
    empty = LogDir(path=path, state=StorageState.EMPTY, cluster_id=None, node_id=None)
    seen = with_part(DUAL, node_id, disk=view.disk.model_copy(update={"log_dirs": (empty,)}))
    name = SPEC.node_name(node_id)
    (entry,) = (one for one in found(seen) if one.code == "PF03")
    assert "umount" not in entry.fix
    covered = {name: signs_of(covered=((path, "/dev/sdb1 (ext4) at /data/x"),))}
    (entry,) = (one for one in found(seen, hints=Hints(signs=covered)) if one.code == "PF03")
    assert "/dev/sdb1 (ext4) at /data/x" in entry.observed
    assert entry.fix.startswith("Unmount that (`umount /data/x`")
    assert "kafka-storage.sh" not in entry.fix


def test_a_queue_that_is_full_is_no_entry_of_a_node_that_is_well() -> None:
    """Whoever sends much fills it; where something else is wrong with the node it says why."""
    full = {"broker-2": signs_of(unsent=(("127.0.0.1:4711", 70_000, None),))}
    assert found(BEFORE, hints=Hints(signs=full)) == []
    (entry,) = found(silent(BEFORE, 2), hints=Hints(signs=full))
    assert "waits in its machine's queues" in entry.observed


def test_a_machine_that_nothing_else_is_told_of_has_an_entry_of_its_own() -> None:
    seen = BEFORE
    signs = {"broker-2": signs_of(unheard=(SERVERS[0], "10.9.9.9:1"))}
    (entry,) = found(seen, hints=Hints(signs=signs))
    assert (entry.code, entry.object) == ("machine", "broker-2")
    assert entry.docs.endswith("blockers.md#machine")
    assert "not acknowledged" in entry.observed


def test_of_keeperless_activities_in_another_network_that_alone_is_told() -> None:
    """All that it asks is refused, and nothing is wrong with any of it."""
    seen = without(without(DUAL, "zookeeper"), "kafka")
    for node in SPEC.nodes:
        seen = silent(seen, node.id)
    changes = MachineChanges(since=NOW, changes=("network namespace of its process: that of then → another one",))
    (entry,) = found(seen, hints=Hints(changes={OURS: changes}))
    assert (entry.code, entry.object) == ("machine", "keeperless-activities")
    assert "network namespace" in entry.observed
    assert "Restart no node" in entry.fix
    assert "ip netns exec" in entry.fix
    assert len(found(seen)) > 1, "where it is where it was, each is told"
    (other,) = [one for one in found(silent(DUAL, 2), hints=Hints(changes={OURS: changes})) if one.code == "part-unknown"]
    assert other.object == "broker-2", "what answers others tells that the way is there"


def test_of_keeperless_activities_where_no_node_is_that_alone_is_told() -> None:
    """On a standby host, or in a container without the volumes: it would name every file as lost."""
    seen = DUAL
    for node in SPEC.nodes:
        gone = Process(is_running=False, identity=None, last_identity=None, started_at=None)
        seen = with_part(seen, node.id, disk=NodeDisk(file=None, log_dirs=()), process=gone, metrics=None)
    seen = with_part(seen, 2, is_unowned=True)
    (entry,) = found(seen)
    assert (entry.code, entry.object) == ("machine", "keeperless-activities")
    assert "broker-2 serve, by their metrics" in entry.observed
    assert "Restore no file" in entry.fix
    for part in ({"disk": None}, {"process": None}, {"process": DUAL.node(1).process}, {"disk": DUAL.node(1).disk}):
        assert all(one.object != "keeperless-activities" for one in found(with_part(seen, 1, **part))), "not nothing"


def test_a_node_that_was_started_without_its_agent_is_to_be_started_as_it_is_written() -> None:
    line = "argument -javaagent:/opt/jolokia.jar of its process is gone (it was (not shown))"
    changes = {"broker-2": MachineChanges(since=NOW, changes=(line,))}
    (entry,) = found(silent(DUAL, 2), hints=Hints(changes=changes))
    assert entry.fix.startswith("Stop it in order, and start it again by the start_command")
    (entry,) = found(silent(DUAL, 2))
    assert "without the agent" not in entry.fix
