"""The way by hand: from every state the right actions in the right order, quoted, without a secret, and readable by a shell."""

import subprocess
from pathlib import Path

import pytest

from domain.by_hand.shell import FENCED
from domain.cluster import ClusterSpec
from domain.observed.observation import MigrationZnode, Observation, Suspect, Unanswered
from domain.questions import Runbook, RunbookAction
from domain.rolling.change import Files, NodeFile
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.probed import with_probed
from domain.zk_to_kraft.runbook.whole import FINAL, FIRST, NOTHING_TO_UNDO, runbook_of
from domain.zk_to_kraft.steps import NodeStage
from tests.unit.conftest import (
    LEADER,
    Point,
    broker_text,
    broker_view,
    cluster_spec,
    controller_view,
    mark_of,
    observation,
    seen_file,
    stopped,
    text_at,
    with_file,
    with_metrics,
    with_node,
    with_part,
    with_zookeeper,
)

SPEC = cluster_spec()
POLICY = ZkToKraftPolicy()
STAGES = {
    Point.BEFORE: NodeStage.ZOOKEEPER,
    Point.CONTROLLERS_UP: NodeStage.ZOOKEEPER,
    Point.HYBRID: NodeStage.MIGRATION,
    Point.DUAL_WRITE: NodeStage.MIGRATION,
    Point.SOAK: NodeStage.KRAFT,
    Point.FINAL: NodeStage.KRAFT,
}


def file_at(node_id: int, stage: NodeStage | None) -> NodeFile:
    archive = f"/etc/kafka/.keeperless/{node_id}.original"
    if stage is None:
        return NodeFile(None, None, archive)
    is_changed = node_id < 3000 and stage is not NodeStage.ZOOKEEPER
    return NodeFile(text_at(SPEC, node_id, stage), broker_text(node_id) if is_changed else None, archive)


def files_of(point: Point) -> dict[int, NodeFile]:
    of_controllers = {Point.BEFORE: None, Point.FINAL: NodeStage.KRAFT}.get(point, NodeStage.MIGRATION)
    found = {i: file_at(i, STAGES[point]) for i in (1, 2, 3)}
    return found | {c.id: file_at(c.id, of_controllers) for c in SPEC.controllers}


def runbook(seen: Observation, files: Files, spec: ClusterSpec = SPEC, epoch: int | None = None) -> Runbook:
    return runbook_of(seen, spec, POLICY, files, epoch)


def at(point: Point) -> Runbook:
    return runbook(observation(point), files_of(point))


SHORT = {
    "Before you begin": "begin",
    "Restart broker-": "roll",
    "Create controller-": "create",
    "Check that the controllers form": "quorum",
    "Wait for the copy": "copy",
    "Check again": "look",
    "FINAL, NO ROLLBACK": "finalize",
    "Check that the migration has ended": "end",
    "Stop all changes": "drain",
    "Make sure that controller-": "fence",
    "Kill controller-": "kill",
    "Check that the log of": "compare",
    "Raise the versions": "versions",
    "Raise /controller_epoch": "epoch",
    "Delete /migration": "delete migration",
    "Delete KRaft's claim": "delete claim",
    "Check that a broker is controller": "see zookeeper",
    "Check that every partition": "leaders",
    "Remove the storage": "wipe controller",
    "Remove the copy": "wipe broker",
    "IMMEDIATELY: restore": "flag",
    "Fix ": "fix",
    "UNKNOWN": "unknown",
    "DO NOT CONTINUE": "not forward",
    "Start ": "start",
    "Stop ": "stop",
    "restart controller-": "kraft",
}


def told(actions: tuple[RunbookAction, ...]) -> list[str]:
    """Actions in a word each, with the number of the node, and the mode that it is restarted in."""
    found = []
    for action in actions:
        word = next(word for start, word in SHORT.items() if action.title.startswith(start))
        node = f" {action.node.rpartition('-')[2]}" if action.node is not None and word != "end" else ""
        mode = next((f" {m}" for m in ("ZooKeeper", "hybrid", "KRaft") if f"in {m} mode" in action.title), "")
        found.append(f"{word}{node}{mode}")
    return found


def each(word: str, ids: tuple[int, ...], mode: str = "") -> list[str]:
    return [f"{word} {i}{mode}" for i in ids]


BROKERS, CONTROLLERS = (1, 2, 3), (3001, 3002, 3003)
KILLED = [*each("fence", CONTROLLERS), *each("kill", CONTROLLERS)]
GIVEN_BACK = ["epoch", "delete migration", "delete claim", "see zookeeper"]
WINDOW = ["drain", *KILLED, *each("compare", CONTROLLERS), *each("versions", CONTROLLERS), *GIVEN_BACK]
WIPED = ["leaders", *each("wipe controller", CONTROLLERS), *each("wipe broker", BROKERS)]
FINALIZED = [*each("finalize", (3001, 3003, 3002)), "end"]


def test_the_way_back_from_every_point() -> None:
    assert told(at(Point.CONTROLLERS_UP).back) == ["begin", *KILLED, "delete migration", "see zookeeper", *WIPED]
    rolled = each("roll", (1, 3, 2), " ZooKeeper")
    hybrid = ["begin", *KILLED, "delete migration", "see zookeeper", *rolled, *WIPED]
    assert told(at(Point.HYBRID).back) == hybrid, "a living ZooKeeper controller keeps its epoch and its claim"
    rolled = each("roll", BROKERS, " ZooKeeper")
    assert told(at(Point.DUAL_WRITE).back) == ["begin", *WINDOW, *rolled, *WIPED]
    to_hybrid = each("roll", BROKERS, " hybrid")
    assert told(at(Point.SOAK).back) == ["begin", *to_hybrid, *WINDOW, *rolled, *WIPED]


ACL = Suspect(what="/kafka-acl/Topic/*", why="'bob' is no principal: it has no type")
STRANGE = Suspect(what='/config/topics/$(date)"', why="is no JSON")
REST = Suspect(what="7 further znodes", why="cannot be read either")


def poisoned(*suspects: Suspect) -> Runbook:
    """The copy has killed every controller: what kills it may stop a broker that starts as well."""
    seen = with_probed(observation(Point.DUAL_WRITE), poisoned_znodes=suspects)
    for i in CONTROLLERS:
        seen = with_part(seen, i, process=stopped("gone"), metrics=None)
    return runbook(seen, files_of(Point.DUAL_WRITE))


def test_znodes_that_cannot_be_read_are_mended_after_the_window_and_before_the_first_restart() -> None:
    back = told(poisoned(ACL, REST).back)
    first = next(i for i, word in enumerate(back) if word.startswith("roll"))
    assert back[first - 3 : first] == ["see zookeeper", "fix", "fix"]
    assert "fix" not in back[first:]
    assert "fix" not in told(poisoned().back)
    actions = [a for a in poisoned(ACL, REST).back if a.title.startswith("Fix ")]
    assert "/kafka-acl/Topic/*" in actions[0].title
    assert "has no type" in actions[0].title
    assert "get '/kafka-acl/Topic/*'" in actions[0].commands[0]
    assert actions[1].commands == (), "they have to be looked for"


def test_a_topic_id_is_put_back_before_any_election() -> None:
    seen = with_zookeeper(observation(Point.DUAL_WRITE), topics_without_id=("orders",))
    first, second = runbook(seen, files_of(Point.DUAL_WRITE)).back[:2]
    action = next(each for each in (first, second) if "topic_id" in each.title)
    assert "get /brokers/topics/orders" in action.commands[0]


def test_a_name_that_a_shell_would_take_for_its_own_is_in_no_command() -> None:
    (action,) = [a for a in poisoned(STRANGE).back if a.title.startswith("Fix ")]
    assert STRANGE.what in action.title
    assert action.commands == ()


def test_the_way_forward_from_every_point() -> None:
    rest = [*each("roll", BROKERS, " KRaft"), "look", *FINALIZED]
    hybrid = each("roll", (1, 3, 2), " hybrid")
    created = each("create", CONTROLLERS)
    before = [*created, "quorum", *hybrid, "copy", *each("roll", BROKERS, " KRaft"), "look"]
    assert told(at(Point.BEFORE).forward)[1:-4] == before, "the leader is not known yet: any order ends it"
    assert told(at(Point.CONTROLLERS_UP).forward) == ["begin", "quorum", *hybrid, "copy", *rest]
    assert told(at(Point.HYBRID).forward) == ["begin", "quorum", "copy", *rest]
    assert told(at(Point.DUAL_WRITE).forward) == ["begin", "quorum", *rest]
    assert told(at(Point.SOAK).forward) == ["begin", "quorum", "look", *FINALIZED]


def test_where_a_way_ends() -> None:
    assert (at(Point.BEFORE).back, at(Point.BEFORE).why_no_way_back) == ((), NOTHING_TO_UNDO)
    assert (at(Point.FINAL).back, at(Point.FINAL).why_no_way_back) == ((), FINAL)
    assert at(Point.FINAL).forward == ()
    assert at(Point.SOAK).why_no_way_back == ""
    assert at(Point.SOAK).back[0].title == at(Point.SOAK).forward[0].title == FIRST


def test_finalized_early_is_led_forward_at_once() -> None:
    seen = with_metrics(observation(Point.DUAL_WRITE), 3001, migration_gauge=3)
    book = runbook(seen, files_of(Point.DUAL_WRITE))
    assert book.back == ()
    assert told(book.forward) == ["begin", *each("roll", BROKERS, " KRaft"), *each("kraft", (3001, 3003, 3002)), "end"]


def test_one_broker_in_kraft_mode_goes_back_in_two_restarts() -> None:
    seen = with_node(observation(Point.DUAL_WRITE), 2, lambda _: broker_view(SPEC, 2, NodeStage.KRAFT))
    files = files_of(Point.DUAL_WRITE) | {2: file_at(2, NodeStage.KRAFT)}
    book = runbook(seen, files)
    assert told(book.back)[:2] == ["begin", "roll 2 hybrid"]
    first = book.back[1].commands
    assert first[0] == "cp -p /etc/kafka/.keeperless/2.original /etc/kafka/2.properties"
    assert "zookeeper.metadata.migration.enable=true" in first[1]
    again = next(a for a in book.back if a.title.startswith("Restart broker-2 in ZooKeeper"))
    assert again.commands[0] == first[0]
    assert "awk" not in " ".join(again.commands), "what is archived is not edited"
    assert each("roll", (1, 3), " KRaft") == [word for word in told(book.forward) if "KRaft" in word]


def test_what_stands_half_done_is_finished_first() -> None:
    """A roll to hybrid that stopped broker-3: started from its file as it is, before any other broker is touched."""
    seen = with_part(observation(Point.CONTROLLERS_UP), 3, process=stopped("gone"), metrics=None)
    seen = with_file(seen, 3, text_at(SPEC, 3, NodeStage.MIGRATION))
    files = files_of(Point.CONTROLLERS_UP) | {3: file_at(3, NodeStage.MIGRATION)}
    forward = runbook(seen, files).forward
    assert told(forward)[1:5] == ["quorum", "roll 3 hybrid", "roll 1 hybrid", "roll 2 hybrid"]
    assert len(forward[2].commands) == 2, "stop what may be left of it, and start: the file is right"
    back = told(runbook(seen, files).back)
    assert [word for word in back if word.startswith("roll")] == ["roll 3 ZooKeeper"]


def test_a_window_that_stands_half_done_is_gone_on_with() -> None:
    """Controllers fenced and dead, /migration deleted, KRaft's claim still there."""
    seen = with_zookeeper(observation(Point.DUAL_WRITE), migration=None)
    for i in CONTROLLERS:
        view = controller_view(SPEC, i, Point.DUAL_WRITE)
        assert view.disk is not None
        dirs = tuple(d.model_copy(update={"is_fenced": True}) for d in view.disk.log_dirs)
        disk = view.disk.model_copy(update={"log_dirs": dirs})
        seen = with_part(seen, i, process=stopped("gone"), metrics=None, disk=disk)
    files = files_of(Point.DUAL_WRITE)
    assert told(runbook(seen, files).back)[1 : 1 + len(KILLED + GIVEN_BACK)] == [*KILLED, *GIVEN_BACK]
    start = runbook(seen, files).forward[1]
    assert start.title.startswith("Start controller-3001"), "before the claim is gone it can still be undone"
    assert FENCED in start.commands[0]


def test_a_way_back_beyond_the_window_has_no_way_forward() -> None:
    seen = observation(Point.HYBRID)
    for i in CONTROLLERS:
        seen = with_node(seen, i, lambda node: controller_view(SPEC, node.id, Point.BEFORE))
    seen = with_zookeeper(seen, migration=None)
    assert told(runbook(seen, files_of(Point.HYBRID)).forward) == ["begin", "not forward"]
    assert told(runbook(seen, files_of(Point.HYBRID)).back)[:2] == ["begin", "roll 1 ZooKeeper"]


def test_an_earlier_copy_is_forgotten_before_a_broker_is_touched() -> None:
    left = MigrationZnode(controller_id=3001, controller_epoch=3, offset=500)
    seen = with_zookeeper(observation(Point.CONTROLLERS_UP), migration=left)
    forward = told(runbook(seen, files_of(Point.CONTROLLERS_UP)).forward)
    assert forward[:9] == ["begin", *each("stop", CONTROLLERS), "delete migration", *each("start", CONTROLLERS), "quorum"]


def test_a_lost_flag_comes_before_everything() -> None:
    seen = with_metrics(observation(Point.SOAK), 3003, write_behind_lag=None)
    files = files_of(Point.SOAK) | {3003: file_at(3003, NodeStage.KRAFT)}
    back = runbook(with_file(seen, 3003, text_at(SPEC, 3003, NodeStage.KRAFT)), files).back
    assert told(back)[1] == "flag 3003"
    assert "zookeeper.metadata.migration.enable=true" in back[1].commands[0]
    assert "zookeeper.connect=" in back[1].commands[0]
    hybrid = with_metrics(observation(Point.DUAL_WRITE), 3003, write_behind_lag=None)
    hybrid = with_file(hybrid, 3003, text_at(SPEC, 3003, NodeStage.KRAFT))
    files = files_of(Point.DUAL_WRITE) | {3003: file_at(3003, NodeStage.KRAFT)}
    assert told(runbook(hybrid, files).forward)[1] == "flag 3003"


def test_what_did_not_answer_stands_on_top_with_the_way_to_find_out() -> None:
    seen = with_part(observation(Point.SOAK), 2, metrics=None).model_copy(
        update={
            "unanswered": (Unanswered(what="metrics of broker-2", why="timeout"), Unanswered(what="zookeeper", why="silent"))
        }
    )
    book = runbook(seen, files_of(Point.SOAK))
    assert book.unknown == ("metrics of broker-2: timeout", "zookeeper: silent")
    for actions in (book.forward, book.back):
        assert told(actions)[:3] == ["begin", "unknown 2", "unknown"]
        assert any("tail" in command and "/log/2" in command for command in actions[1].commands)
        assert any("get /controller" in command for command in actions[2].commands)


def test_the_epoch_is_told_as_far_as_it_is_known() -> None:
    def title(epoch: int | None) -> str:
        book = runbook(observation(Point.DUAL_WRITE), files_of(Point.DUAL_WRITE), epoch=epoch)
        return next(a.title for a in book.back if "epoch" in a.title)

    assert "(at the time of this runbook: 7, partitions' states not counted)" in title(None)
    assert "(at the time of this runbook: 19)" in title(19)
    assert "(at the time of this runbook: 7)" in title(3)


def test_with_nobody_as_controller_the_epoch_is_raised_all_the_same() -> None:
    seen = with_zookeeper(observation(Point.DUAL_WRITE), controller=None, migration=None)
    book = runbook(seen, files_of(Point.DUAL_WRITE))
    assert told(book.back)[1 : 1 + len(KILLED + GIVEN_BACK)] == [*KILLED, *GIVEN_BACK]


def test_a_controller_that_finalises_by_its_start_is_started_last_and_with_the_warning() -> None:
    """Half-way through finalisation one was stopped, its file already without the flag."""
    seen = with_part(observation(Point.SOAK), 3001, process=stopped("gone"), metrics=None)
    text = text_at(SPEC, 3001, NodeStage.KRAFT)
    seen = with_file(seen, 3001, text, mark_of(seen_file(text).sha256, before_identity="gone"))
    files = files_of(Point.SOAK) | {3001: file_at(3001, NodeStage.KRAFT)}
    assert told(runbook(seen, files).forward) == ["begin", "quorum", "look", *FINALIZED]


def test_a_broker_that_does_not_answer_is_not_restarted_for_that() -> None:
    seen = with_part(observation(Point.DUAL_WRITE), 2, metrics=None)
    rolled = [word for word in told(runbook(seen, files_of(Point.DUAL_WRITE)).forward) if word.startswith("roll")]
    assert rolled == each("roll", BROKERS, " KRaft")


def everything(book: Runbook) -> list[str]:
    return [text for a in (*book.forward, *book.back) for text in (a.title, *a.commands, a.check)]


def commands_of(book: Runbook) -> list[str]:
    return [text for a in (*book.forward, *book.back) for text in (*a.commands, a.check) if text]


@pytest.mark.parametrize("point", list(Point))
def test_every_command_is_a_shells_and_every_action_but_the_first_has_a_check(point: Point, tmp_path: Path) -> None:
    book = at(point)
    for number, command in enumerate(commands_of(book)):
        script = tmp_path / f"{number}.sh"
        script.write_text(command)
        done = subprocess.run(["sh", "-n", str(script)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    for action in (*book.forward[1:], *book.back[1:]):
        assert action.check.startswith("# Expect: "), action.title
        assert action.host, action.title


def odd(spec: ClusterSpec) -> ClusterSpec:
    """The same cluster in places with names that a shell would take apart."""
    text = spec.model_dump_json()
    for plain, strange in (("/etc/kafka/", "/etc/ka fka's $HOME/"), ("/data/", "/da;ta & /"), ("/opt/kafka", "/opt/k`x`")):
        text = text.replace(plain, strange)
    return ClusterSpec.model_validate_json(text)


def test_odd_paths_are_quoted() -> None:
    spec = odd(SPEC)
    assert spec.brokers[0].properties_file == "/etc/ka fka's $HOME/1.properties"
    commands = commands_of(runbook(observation(Point.SOAK), files_of(Point.SOAK), spec))
    commands += commands_of(runbook(observation(Point.BEFORE), files_of(Point.BEFORE), spec))
    quoted = ("'/etc/ka fka'\"'\"'s $HOME/", "'/da;ta & /", "'/opt/k`x`/libs/*'")
    for command in commands:
        for bare, well in zip(("ka fka", "da;ta", "`x`"), quoted, strict=True):
            assert command.count(bare) == command.count(well) + allowed(command, bare), command


def allowed(command: str, bare: str) -> int:
    """Inside the text of a controller's file, which is one quoted word: its `log.dirs`."""
    return command.count("log.dirs=/da;ta & /") if bare == "da;ta" and command.startswith("umask 077; mkdir") else 0


SECRETS = 'ssl.keystore.password=sesame\npassword.encoder.secret=tahini\nsasl.jaas.config=module password="halva";\n'


@pytest.mark.parametrize("point", list(Point))
@pytest.mark.parametrize("is_archived", [True, False])
def test_no_secret_is_in_any_runbook(point: Point, is_archived: bool) -> None:
    """Neither from files, nor from the environment, nor from references; what is created copies them unseen."""
    files = {}
    for i, file in files_of(point).items():
        current = None if file.current is None else file.current + SECRETS
        original = file.original + SECRETS if file.original is not None and is_archived else None
        files[i] = NodeFile(current, original, file.archive)
    spec = ClusterSpec.model_validate_json(
        SPEC.model_dump_json()
        .replace('"environment":{}', '"environment":{"JAVA_HOME":"/jdk","KEYSTORE_PASSWORD":"sesame"}')
        .replace('"digest_auth":null', '"digest_auth":"env:ZK_IDENTITY"')
        .replace('"client_properties":null', '"client_properties":"file:/etc/client.properties"')
    )
    book = runbook(observation(point), files, spec)
    text = "\n".join(everything(book))
    assert not [secret for secret in ("sesame", "tahini", "halva") if secret in text]
    if point is Point.BEFORE:
        created = book.forward[1].commands
        assert created[1].startswith("LC_ALL=C awk -v what=named -v keys=")
        assert "ssl.keystore.password" in created[1]
        assert created[1].endswith("/etc/kafka/1.properties >>/etc/kafka/3001.properties")
        assert '"${ZK_IDENTITY:?' in text
        assert '"KEYSTORE_PASSWORD=${KEYSTORE_PASSWORD:?' in text


def test_secrets_of_a_controller_on_another_host_are_fetched_with_its_brokers_file() -> None:
    spec = ClusterSpec.model_validate_json(
        SPEC.model_dump_json().replace('"id":3001,"host":"127.0.0.1"', '"id":3001,"host":"far"')
    )
    file = NodeFile(broker_text(1) + SECRETS, None, "/archive")
    created = runbook(observation(Point.BEFORE), files_of(Point.BEFORE) | {1: file}, spec).forward[1]
    assert created.host == "far"
    assert "scp 127.0.0.1:/etc/kafka/1.properties /etc/kafka/3001.properties.of-broker" in created.commands[1]
    assert created.commands[3] == "rm /etc/kafka/3001.properties.of-broker"


def test_the_paths_hosts_ports_and_ids_are_this_clusters() -> None:
    text = "\n".join(everything(at(Point.DUAL_WRITE)))
    for part in (SPEC.ensemble.connect, "127.0.0.1:12001", "/run/3001.pid", "/log/1", "/opt/kafka/libs/*", "127.0.0.1:9093"):
        assert part in text
    assert f"--cluster-id={SPEC.cluster_id}" in "\n".join(everything(at(Point.BEFORE)))
    assert LEADER == 3002
    assert [a.node for a in at(Point.SOAK).forward if a.title.startswith("FINAL")][-1] == "controller-3002"
