"""What is told of ZooKeeper's servers, and of whom they turn away."""

from datetime import timedelta

import pytest

from domain.diagnosis.causes.hints import Hints, MemberFiles, Serving, settled
from domain.diagnosis.machines.notes import MachineChanges
from domain.observed.ensemble import MemberTree
from domain.observed.observation import Observation, Unanswered
from domain.zk_to_kraft.blockers import blockers_of
from tests.unit.blocked import (
    BEFORE,
    DUAL,
    FRAMES,
    HYBRID,
    SAID,
    SERVERS,
    SOAK,
    STANDBY,
    STARTED,
    behind,
    dead,
    found,
    keys,
    looked_at,
    trees_of,
    unclaimed,
    without,
)
from tests.unit.conftest import (
    CLUSTER_ID,
    LOG_END,
    NOW,
    Point,
    observation,
    signs_of,
    with_metrics,
    with_zookeeper,
)


@pytest.mark.parametrize(
    ("states", "named"),
    [
        ((Serving.YES, Serving.YES, Serving.YES), []),
        ((Serving.UNKNOWN, Serving.UNKNOWN, Serving.UNKNOWN), []),
        ((Serving.SILENT, Serving.YES, Serving.YES), [0]),
        ((Serving.YES, Serving.NO, Serving.YES), [1]),
        ((Serving.YES, Serving.BUSY, Serving.YES), [1]),
        ((Serving.YES, Serving.STUCK, Serving.NO), [1, 2]),
        ((Serving.UNREACHED, Serving.NO, Serving.UNREACHED), [0, 2]),
        ((Serving.REFUSED, Serving.SILENT, Serving.NO), [0, 1]),
        ((Serving.REFUSED, Serving.REFUSED, Serving.REFUSED), [0, 1, 2]),
    ],
)
def test_the_members_that_are_gone_are_named_and_who_waits_for_them_is_not(
    states: tuple[Serving, ...], named: list[int]
) -> None:
    hints = Hints(servers=dict(zip(SERVERS, states, strict=True)))
    is_lost = len(named) > 1
    seen = without(DUAL, "zookeeper") if is_lost else DUAL
    assert keys(found(seen, hints=hints)) == [("GF11", f"zookeeper {SERVERS[i]}") for i in named]


def test_an_ensemble_that_answers_and_commits_nothing_has_its_quorum() -> None:
    """As where a thread of the leader stands in a lock."""
    entries = found(without(DUAL, "zookeeper"), hints=Hints(servers=dict.fromkeys(SERVERS, Serving.STUCK)))
    assert all("The ensemble has its quorum, and commits nothing" in entry.observed for entry in entries)
    assert all("Thread.print" in entry.fix and "restart that one server" in entry.fix for entry in entries)
    (_, *others) = found(
        without(DUAL, "zookeeper"), hints=Hints(servers=dict(zip(SERVERS, (Serving.STUCK,) * 2 + (Serving.NO,), strict=True)))
    )
    assert all("has its quorum" not in entry.observed for entry in others)


def test_a_silent_ensemble_whose_servers_all_serve_is_told_by_its_error() -> None:
    seen = without(DUAL, "zookeeper", "NoAuth for /brokers")
    (entry,) = found(seen, hints=Hints(servers=dict.fromkeys(SERVERS, Serving.YES)))
    assert (entry.code, entry.object, entry.observed) == ("GF11", "ZooKeeper", "NoAuth for /brokers")


def test_after_the_end_nobody_needs_zookeeper() -> None:
    hints = Hints(servers=dict.fromkeys(SERVERS, Serving.REFUSED))
    assert found(without(observation(Point.FINAL), "zookeeper"), hints=hints) == []


@pytest.mark.parametrize(("session", "told"), [("CONNECTING", ["broker-2"]), ("CONNECTED", []), (None, [])])
def test_a_broker_that_has_lost_zookeeper_by_itself_is_named(session: str | None, told: list[str]) -> None:
    assert [about for _, about in keys(found(with_metrics(DUAL, 2, zookeeper_session=session)))] == told


def test_in_an_outage_of_zookeeper_no_broker_is_blamed_for_its_session() -> None:
    seen = without(with_metrics(DUAL, 2, zookeeper_session="CONNECTING"), "zookeeper")
    hints = Hints(servers=dict.fromkeys(SERVERS, Serving.REFUSED))
    assert keys(found(seen, hints=hints)) == [("GF11", f"zookeeper {address}") for address in SERVERS]


def test_whom_nobody_reaches_from_here_may_have_a_quorum_all_the_same() -> None:
    seen = without(DUAL, "zookeeper")
    entries = found(seen, hints=Hints(servers=dict.fromkeys(SERVERS, Serving.UNREACHED)))
    assert all("cannot be seen from the host" in entry.observed for entry in entries)
    (gone, *_) = found(seen, hints=Hints(servers=dict.fromkeys(SERVERS, Serving.REFUSED)))
    assert "The ensemble has no quorum" in gone.observed


@pytest.mark.parametrize("cluster_id", [None, "another"])
def test_the_clusters_id_that_somebody_has_taken_away_is_named_before_a_broker_dies_of_it(cluster_id: str | None) -> None:
    (entry,) = found(with_zookeeper(DUAL, cluster_id=cluster_id))
    assert (entry.code, entry.object) == ("PF03", "/cluster/id")
    assert CLUSTER_ID in entry.fix
    final = with_zookeeper(observation(Point.FINAL), cluster_id=cluster_id)
    assert found(final) == [], "nobody needs ZooKeeper any more"


def test_a_member_that_is_standalone_is_split_brain_whoever_asks() -> None:
    torn = dict(zip(SERVERS, (Serving.ALONE, Serving.YES, Serving.YES), strict=True))
    lost = DUAL.model_copy(update={"zookeeper": None})
    for seen in (DUAL, lost):
        (entry,) = [e for e in blockers_of(looked_at(seen, hints=Hints(servers=torn)))[0] if e.code == "GF11"]
        assert (entry.object, "version-2" in entry.fix) == (f"zookeeper {SERVERS[0]}", True)
    single = {SERVERS[0]: Serving.ALONE}
    assert blockers_of(looked_at(DUAL, hints=Hints(servers=single)))[0] == ()


@pytest.mark.parametrize(("seen", "number"), [(DUAL, "the epoch of KRaft's claim"), (HYBRID, "or a larger one")])
def test_a_controller_epoch_that_is_gone_is_told_before_the_next_election(seen: Observation, number: str) -> None:
    gone = with_zookeeper(seen, controller_epoch=None)
    (entry,) = [e for e in blockers_of(looked_at(gone))[0] if e.object == "/controller_epoch"]
    assert (entry.code, number in entry.fix) == ("PF11", True)


def test_servers_that_ask_everybody_for_a_login_are_told_as_such() -> None:
    refused = Unanswered(what="zookeeper", why="ZooKeeper 127.0.0.1:1: SessionClosedRequireSaslError")
    seen = without(BEFORE, "zookeeper").model_copy(update={"unanswered": (refused,)})
    entries = found(seen, hints=Hints(servers=dict.fromkeys(SERVERS, Serving.YES)))
    (entry,) = [entry for entry in entries if entry.object == "ZooKeeper"]
    assert entry.fix.startswith("The servers ask every client for a login")


def test_what_keeps_a_server_of_zookeeper_is_told_with_it() -> None:
    seen = without(BEFORE, "zookeeper")
    of_servers = dict.fromkeys(SERVERS, Serving.NO)
    signs = {f"zookeeper {SERVERS[0]}": signs_of(unaccepted=((3888, 51, "10.9.9.9"),))}
    entries = {entry.object: entry for entry in found(seen, hints=Hints(servers=of_servers, signs=signs))}
    entry = entries[f"zookeeper {SERVERS[0]}"]
    assert "51 connections wait at its port 3888" in entry.observed
    assert entry.fix.startswith("Find what makes them")
    assert "connections wait" not in entries[f"zookeeper {SERVERS[1]}"].observed


@pytest.mark.parametrize(("serving", "is_cured"), [(Serving.NO, True), (Serving.SILENT, False), (Serving.STUCK, False)])
def test_a_member_that_runs_and_does_not_serve_is_told_with_what_its_log_complains_of(serving: Serving, is_cured: bool) -> None:
    log = (
        "[2026-11-23 08:26:36,822] WARN Exception when following the leader (org.apache.zookeeper.server.quorum.Follower)",
        "java.net.SocketTimeoutException: Read timed out",
        "\tat java.base/java.net.SocketInputStream.socketRead0(Native Method)",
    )
    hints = Hints(servers={**dict.fromkeys(SERVERS, Serving.YES), SERVERS[0]: serving}, server_logs={SERVERS[0]: log})
    (entry,) = found(DUAL, hints=hints)
    assert "SocketTimeoutException: Read timed out" in entry.observed
    assert ("initLimit" in entry.fix) is is_cured


EMPTY = {"cluster_id": None, "controller_epoch": None, "controller": None, "migration": None, "broker_ids": ()}
"""Of an ensemble that came back without its data."""
KEPT = ("/brokers/ids", "/brokers/topics", "/brokers/seqid", "/config/changes", "/config/topics", "/admin/delete_topics")


@pytest.mark.parametrize("seen", [BEFORE, HYBRID, DUAL, SOAK], ids=["before", "hybrid", "dual write", "soak"])
def test_an_ensemble_that_came_back_empty_is_one_entry_that_keeps_everybody_from_making_it_anew(seen: Observation) -> None:
    empty = with_zookeeper(seen, **EMPTY, assigned_broker_ids=(), topics_without_id=())
    cut = with_metrics(empty, 2, zookeeper_session="CONNECTING")
    hints = Hints(missing=KEPT, forgotten=("orders",), servers=dict.fromkeys(SERVERS, Serving.YES))
    entries = [e for e in found(cut, hints=hints) if e.code in {"GF02", "GF11", "PF03", "PF11", "dual-write-not-current"}]
    assert keys(entries) == [("GF11", "ZooKeeper")]
    assert entries[0].fix.startswith("Create nothing there, restart no broker")
    assert "highest zxid" in entries[0].fix


@pytest.mark.parametrize(
    ("seen", "forgotten"),
    [
        (with_zookeeper(HYBRID, cluster_id="another", broker_ids=(7, 8), assigned_broker_ids=(7, 8)), ()),
        (with_zookeeper(HYBRID, cluster_id="another"), ("orders",)),
        (with_zookeeper(unclaimed(DUAL), cluster_id="another"), ()),
    ],
    ids=["its brokers", "its topics", "its controller"],
)
def test_where_another_ensemble_answers_nobody_is_told_to_write_there(seen: Observation, forgotten: tuple[str, ...]) -> None:
    entries = found(seen, hints=Hints(forgotten=forgotten))
    (entry,) = [entry for entry in entries if entry.code in {"GF02", "GF11", "PF03", "PF11", "dual-write-not-current"}]
    assert (entry.object, "Write nothing there" in entry.fix, "zookeeper.connect" in entry.fix) == ("ZooKeeper", True, True)


def test_an_identifier_that_is_missing_is_still_told_by_itself() -> None:
    entries = found(with_zookeeper(HYBRID, cluster_id=None, controller_epoch=None))
    assert keys(entries)[:2] == [("PF03", "/cluster/id"), ("PF11", "/controller_epoch")]


@pytest.mark.parametrize(("is_lost", "is_warned"), [(True, True), (False, False)])
def test_a_member_without_data_is_not_started_while_the_others_have_no_quorum(is_lost: bool, is_warned: bool) -> None:
    states = dict(zip(SERVERS, (Serving.REFUSED, Serving.REFUSED if is_lost else Serving.YES, Serving.YES), strict=True))
    files = {SERVERS[0]: MemberFiles(myid="1", has_snapshot=False), SERVERS[1]: MemberFiles(myid="2")}
    seen = without(DUAL, "zookeeper") if is_lost else DUAL
    entries = {entry.object: entry for entry in found(seen, hints=Hints(servers=states, server_files=files))}
    bare = entries[f"zookeeper {SERVERS[0]}"]
    assert ("no snapshot" in bare.observed, bare.fix.startswith("Do not start it as it is")) == (is_warned, is_warned)
    if is_lost:
        assert entries[f"zookeeper {SERVERS[1]}"].fix.startswith("Start it")


def test_two_members_with_one_myid_are_told_and_nobody_is_told_to_end_the_one_that_is_well() -> None:
    states = dict(zip(SERVERS, (Serving.YES, Serving.REFUSED, Serving.YES), strict=True))
    files = {SERVERS[0]: MemberFiles(myid="1"), SERVERS[1]: MemberFiles(myid="1"), SERVERS[2]: MemberFiles(myid="3")}
    log = (
        "[2026-11-23 08:26:36,822] ERROR Exception while listening to address zk1/10.0.0.1:3888 (…QuorumCnxManager)",
        "java.net.BindException: Address already in use",
    )
    hints = Hints(servers=states, server_files=files, server_logs={SERVERS[1]: log})
    (entry,) = found(DUAL, hints=hints)
    assert f"Its dataDir/myid says 1, and so does that of {SERVERS[0]}" in entry.observed
    assert ("end it" in entry.fix, "myid of all members" in entry.fix) == (False, True)


NOT_SERVING = {**dict.fromkeys(SERVERS, Serving.YES), SERVERS[2]: Serving.REFUSED}


def test_a_member_that_the_kernel_has_killed_is_told_so_where_its_log_says_nothing_of_an_end() -> None:
    killed = MachineChanges(since=NOW, killed="1 process of control group /system.slice/zookeeper.service")
    changes = {f"zookeeper {SERVERS[2]}": killed}
    start = "2026-11-20 02:59:00,000 [myid:3] - INFO  [main:QuorumPeerConfig@177] - Reading configuration from: /etc/zk/zoo.cfg"
    for log in ((), (start,)):
        (entry,) = found(DUAL, hints=Hints(servers=NOT_SERVING, server_logs={SERVERS[2]: log}, changes=changes))
        assert "The kernel has killed 1 process of control group /system.slice/zookeeper.service for want" in entry.observed
        assert entry.fix.startswith("Run `journalctl -k` there: it shows which process")
        assert "a rollback is not possible" in entry.fix
    ended = (start, "2026-11-20 02:59:10,000 [myid:3] - ERROR [main:QuorumPeerMain@101] - x", "java.io.IOException: Map failed")
    (entry,) = found(DUAL, hints=Hints(servers=NOT_SERVING, server_logs={SERVERS[2]: ended}, changes=changes))
    assert "The kernel has killed" not in entry.observed, "it has said itself why it ends"
    states = {**NOT_SERVING, SERVERS[2]: Serving.NO}
    (entry,) = found(DUAL, hints=Hints(servers=states, changes=changes))
    assert "The kernel has killed" not in entry.observed, "it runs"


def test_a_member_whose_machine_was_booted_is_told_so_before_it_is_started() -> None:
    booted = MachineChanges(since=NOW - timedelta(hours=1), booted_at=NOW)
    (entry,) = found(DUAL, hints=Hints(servers=NOT_SERVING, changes={f"zookeeper {SERVERS[2]}": booted}))
    assert f"Its machine was booted at {NOW:%d %b %H:%M:%S} UTC" in entry.observed
    assert entry.fix.startswith("See first that all its volumes are mounted")
    assert "Then start it." in entry.fix


@pytest.mark.parametrize(
    ("files", "words", "fix"),
    [
        (MemberFiles("3", full=("/zk/data",)), "No room is left for /zk/data", "Make room on that volume"),
        (
            MemberFiles("3", full=("/zk/data",), deleted=(("4711 (rsyslogd)", 5 << 30),)),
            "Deleted there, and open still, so that their room is not given back: files of process 4711 (rsyslogd), 5120 MiB",
            "Make that program reopen its files",
        ),
        (MemberFiles("3", read_only=("/zk/data",)), "/zk/data can only be read", "Check what the kernel says of that disk"),
    ],
)
@pytest.mark.parametrize("serving", [Serving.REFUSED, Serving.NO])
def test_a_member_that_cannot_write_is_not_only_to_be_started(
    serving: Serving, files: MemberFiles, words: str, fix: str
) -> None:
    """Whatever its log says, or where that is not read."""
    states, own = {**NOT_SERVING, SERVERS[2]: serving}, {SERVERS[2]: files}
    (entry,) = found(DUAL, hints=Hints(servers=states, server_files=own))
    assert words in entry.observed
    assert fix in entry.fix
    assert "Then start it if it does not run." in entry.fix


def test_a_member_that_listens_at_another_port_is_not_to_be_started_again() -> None:
    name = f"zookeeper {SERVERS[0]}"
    states = {**dict.fromkeys(SERVERS, Serving.YES), SERVERS[0]: Serving.REFUSED}
    (entry,) = found(DUAL, hints=Hints(servers=states, signs={name: signs_of(elsewhere=(4711, ("0.0.0.0:2182",)))}))
    assert "its process 4711 runs, and listens at 0.0.0.0:2182" in entry.observed
    assert entry.fix.startswith("Do not start another one")
    assert "Start it" not in entry.fix
    states, signs = dict.fromkeys(SERVERS, Serving.REFUSED), signs_of(elsewhere=(4711, ("0.0.0.0:2182",)))
    lost = DUAL.model_copy(update={"zookeeper": None})
    entries = found(lost, hints=Hints(servers=states, signs={f"zookeeper {server}": signs for server in SERVERS}))
    assert all("cannot be seen: its members run, and listen elsewhere" in one.observed for one in entries)


@pytest.mark.parametrize(
    ("line", "words", "fix"),
    [
        ("WARN Session 0x1 for server zk1/10.0.0.1:2181, Closing socket connection. Packet len 4194312 is out of range!",
         "Packet len 4194312 is out of range", "jute.maxbuffer"),
        ("ERROR SASL authentication with Zookeeper Quorum member failed: javax.security.sasl.SaslException: no mechanism (x)",
         "SASL authentication with Zookeeper Quorum member failed", "Look at the way"),
    ],
)  # fmt: skip
def test_why_a_broker_alone_has_lost_zookeeper_is_told_by_its_log(line: str, words: str, fix: str) -> None:
    seen = with_metrics(DUAL, 2, zookeeper_session="CONNECTING")
    (entry,) = found(seen, hints=Hints(logs={2: (STARTED, f"{SAID} {line}")}))
    assert (words in entry.observed, fix in entry.fix) == (True, True)


@pytest.mark.parametrize(
    ("thrown", "fix"),
    [
        ("java.net.BindException: Cannot assign requested address", "ip_local_port_range"),
        ("java.nio.channels.UnsupportedAddressTypeException", "getent ahosts NAME"),
        ("java.net.SocketException: Protocol family unavailable", "preferIPv4Stack"),
        ("java.net.UnknownHostException: zk1: Temporary failure in name resolution", "getent hosts"),
        (
            "EndOfStreamException: Unable to read additional data from server sessionid 0x0, likely server has closed socket",
            "maxClientCnxns",
        ),
    ],
)
def test_why_a_running_broker_gets_no_connection_is_told_by_the_exception_below_its_warning(thrown: str, fix: str) -> None:
    session = (
        f"{SAID} WARN Session 0x0 for server zk1/10.0.0.1:2181, Closing socket connection. (org.apache.zookeeper.ClientCnxn)"
    )
    lines = (STARTED, session, thrown, *FRAMES)
    (entry,) = found(with_metrics(DUAL, 2, zookeeper_session="CONNECTING"), hints=Hints(logs={2: lines}))
    assert (entry.code, entry.object) == ("GF11", "broker-2")
    assert thrown in entry.observed
    assert fix in entry.fix


@pytest.mark.parametrize("is_dead", [True, False])
def test_whom_a_member_that_serves_turns_away_is_told_with_what_that_member_says(is_dead: bool) -> None:
    closed = "EndOfStreamException: Unable to read additional data from server sessionid 0x0, likely server has closed socket"
    session = f"{SAID} WARN Session 0x0 for server zk1/10.0.0.1:2181, Closing socket connection. (x.ClientCnxn)"
    timeout = "kafka.zookeeper.ZooKeeperClientTimeoutException: Timed out waiting for connection while in state: CONNECTING"
    died = (f"{SAID} ERROR Fatal error during KafkaServer startup. (x)", timeout) if is_dead else ()
    full = (
        "[2026-11-20 05:59:30,000] WARN Message:Error accepting new connection: Too many connections from /10.0.0.1 - max is 60"
    )
    seen = dead(DUAL, 2) if is_dead else with_metrics(DUAL, 2, zookeeper_session="CONNECTING")
    logs = {2: (STARTED, session, closed, *FRAMES, *died)}
    servers = dict.fromkeys(SERVERS, Serving.YES)
    (entry,) = found(seen, hints=Hints(logs=logs, servers=servers, server_logs={SERVERS[1]: (full,)}))
    assert entry.object == "broker-2"
    assert f"zookeeper {SERVERS[1]}, which serves, says: Too many connections from /10.0.0.1 - max is 6" in entry.observed
    assert entry.fix.startswith("Raise maxClientCnxns")
    (entry,) = found(seen, hints=Hints(logs=logs, servers=servers))
    assert "which serves" not in entry.observed


def test_why_a_controller_does_not_follow_is_told_by_the_exception_below_its_warning() -> None:
    behind = with_metrics(DUAL, STANDBY, raft_log_end=LOG_END - 400)
    warned = f"{SAID} WARN [RaftManager id=3001] Error connecting to node kafka-c2:9093 (id: 3002 rack: null) (x.NetworkClient)"
    thrown = "java.net.UnknownHostException: kafka-c2: Temporary failure in name resolution"
    (entry,) = found(behind, hints=Hints(logs={STANDBY: (STARTED, warned, thrown, *FRAMES)}))
    assert thrown in entry.observed
    assert "getent hosts" in entry.fix


def test_a_broker_whose_partitions_files_somebody_has_deleted_is_told_so() -> None:
    root = next(found.path for found in DUAL.node(2).disk.log_dirs)  # type: ignore[union-attr]
    failed = (
        f"{SAID} ERROR Error while deleting segments for orders-0 (x)",
        f"java.nio.file.NoSuchFileException: {root}/o-0/0.log",
    )
    (entry,) = found(dead(DUAL, 2, *failed))
    assert "tmpreaper" in entry.fix


@pytest.mark.parametrize(
    ("answers", "are_well"),
    [
        ((Serving.NO, Serving.YES, Serving.YES), True),
        ((Serving.LEADS, Serving.YES, Serving.YES), True),
        ((Serving.NO, Serving.LEADS, Serving.YES), False),
        ((Serving.NO, Serving.NO, Serving.YES), False),
        ((Serving.NO, Serving.UNKNOWN, Serving.YES), False),
        ((Serving.NO,), False),
    ],
)
def test_a_leader_that_is_told_to_serve_no_client_is_whom_all_others_follow(
    answers: tuple[Serving, ...], are_well: bool
) -> None:
    given = dict(zip(SERVERS, answers, strict=False))
    assert (set(settled(given).values()) == {Serving.YES}) is are_well
    assert Serving.LEADS not in settled(given).values()


def test_a_member_that_serves_what_is_no_longer_on_its_disk_is_told_before_it_restarts() -> None:
    files = {SERVERS[0]: MemberFiles(myid="1", has_snapshot=False), SERVERS[1]: MemberFiles(myid="2")}
    (entry,) = found(DUAL, hints=Hints(servers=dict.fromkeys(SERVERS, Serving.YES), server_files=files))
    assert (entry.code, entry.object) == ("GF11", f"zookeeper {SERVERS[0]}")
    assert entry.fix.startswith("Stop no member yet")


@pytest.mark.parametrize(
    ("trees", "named", "is_to_be_mended"),
    [
        (trees_of(31, 31, 28, leader=0), SERVERS[2], True),
        (trees_of(31, 28, 28, leader=0), SERVERS[0], False),
        (trees_of(31, None, 28, leader=0), f"{SERVERS[0]}, {SERVERS[2]}", False),
        (trees_of(31, 30, 28, leader=0), ", ".join(SERVERS), False),
        (trees_of(31, 31, 28, leader=-1), SERVERS[2], False),
    ],
    ids=["outvoted", "the leader", "no majority", "none alike", "leader unseen"],
)
def test_a_member_with_another_tree_is_mended_only_where_it_is_outvoted_and_follows(
    trees: dict[str, MemberTree], named: str, is_to_be_mended: bool
) -> None:
    (entry,) = found(DUAL, hints=Hints(servers=dict.fromkeys(SERVERS, Serving.YES), trees=trees))
    assert (entry.code, entry.object) == ("GF11", f"zookeeper {named}")
    assert "zxid 0x10000002f" in entry.observed
    assert all(f"has {tree.znodes}" in entry.observed for tree in trees.values())
    assert ("Move nothing aside yet" not in entry.fix) is is_to_be_mended
    assert ("takes a snapshot from the leader" in entry.fix) is is_to_be_mended


DIGEST = "[2026-11-24 04:34:23,896] WARN Message:Digests are not matching. Value is Zxid. Value:8589934593 (x.DataTree)"


@pytest.mark.parametrize("serving", [Serving.YES, Serving.REFUSED])
def test_a_member_that_differs_from_its_leader_by_its_log_is_not_cleaned_before_it_is_known_who_is_right(
    serving: Serving,
) -> None:
    servers = {**dict.fromkeys(SERVERS, Serving.YES), SERVERS[1]: serving}
    (entry,) = found(DUAL, hints=Hints(servers=servers, server_logs={SERVERS[1]: (DIGEST,)}))
    assert entry.object == f"zookeeper {SERVERS[1]}"
    assert ("Value:8589934593" in entry.observed) is (serving is Serving.YES)
    assert ("Move nothing aside yet" in entry.fix) is (serving is Serving.YES)
    assert entry.fix.count("Move nothing aside yet") < 2


def test_what_a_log_says_of_trees_is_told_with_their_numbers() -> None:
    servers = dict.fromkeys(SERVERS, Serving.YES)
    hints = Hints(servers=servers, server_logs={SERVERS[2]: (DIGEST,)}, trees=trees_of(31, 31, 28, leader=0))
    (entry,) = found(DUAL, hints=hints)
    assert "has 28 znodes" in entry.observed
    assert f"The log of {SERVERS[2]} says: Digests are not matching" in entry.observed


def test_trees_that_are_alike_are_no_entry() -> None:
    servers = dict.fromkeys(SERVERS, Serving.YES)
    for trees in ({}, trees_of(31, 31, 31, leader=0), trees_of(31, None, None, leader=0)):
        assert found(DUAL, hints=Hints(servers=servers, trees=trees)) == []


def test_a_broker_that_has_died_of_an_empty_ensemble_is_not_to_be_started_on_it() -> None:
    made_anew = with_zookeeper(HYBRID, **EMPTY | {"cluster_id": "another"}, assigned_broker_ids=(), topics_without_id=())
    line = "kafka.common.InconsistentClusterIdException: The Cluster ID x doesn't match stored clusterId Some(y) in meta"
    entries = {entry.object: entry for entry in found(dead(made_anew, 2, "[x] ERROR Exiting Kafka", line))}
    assert "Its data is gone" in entries["ZooKeeper"].observed
    assert entries["broker-2"].fix.startswith("Start it only once ZooKeeper has this cluster's data again")
    assert "/cluster/id" not in entries


def test_who_asks_zookeeper_most_is_told_where_it_does_not_keep_up() -> None:
    busiest = ("10.9.9.9:4000 (5400 requests a second)",)
    states = {**dict.fromkeys(SERVERS, Serving.YES), SERVERS[0]: Serving.BUSY}
    (entry,) = found(DUAL, hints=Hints(servers=states, busiest=busiest))
    assert "10.9.9.9:4000 (5400 requests a second)" in entry.observed
    assert "10.9.9.9:4000 (5400 requests a second)" in behind(busiest=busiest).observed
