"""Files on their way back: byte for byte where there is an archive, and as Java reads them where there is none."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.cluster import Role
from domain.configuration.file_changes import changes
from domain.configuration.properties import edit, parse
from domain.configuration.protocol_map import DEFAULT_PROTOCOL_MAP
from domain.errors import Permanent
from domain.rolling.change import Making, Sources
from domain.zk_to_kraft.node_config import MIGRATION_FLAG, controller_file, node_file, stage_of
from domain.zk_to_kraft.steps import NodeStage
from domain.zk_to_kraft.wanted_file import ACL_AUTHORIZER, needs_sibling, wanted_file
from tests.unit.conftest import CONNECT, broker_text, cluster_spec

SPEC = cluster_spec()
BROKER = SPEC.brokers[0]
CONTROLLER = SPEC.controllers[0]

PLAIN = "broker.id=1\nlisteners=PLAINTEXT://h:9092\nlog.dirs=/d\nzookeeper.connect=" + CONNECT + "\n"
SECURED = """\
# All that security brings.
broker.id = 1
broker.id.generation.enable=false
reserved.broker.max.id=2000
listeners=INTERNAL://h:9092,EXTERNAL://h:9093,REPLICATION://h:9094
listener.security.protocol.map=INTERNAL:SASL_SSL, EXTERNAL:SASL_SSL,\\
    REPLICATION:SSL
inter.broker.listener.name=INTERNAL
control.plane.listener.name=REPLICATION
inter.broker.protocol.version=3.9-IV0
zookeeper.connect=@CONNECT@
zookeeper.ssl.client.enable=true
zookeeper.ssl.keystore.password=zk-secret
authorizer.class.name=kafka.security.authorizer.AclAuthorizer
password.encoder.secret=encode
log.dirs=/data/1
""".replace("@CONNECT@", CONNECT)
WINDOWS = PLAIN.replace("\n", "\r\n") + "# caf\xe9, and no end of line: \xfc"
ODD = (
    "  broker.id : 1\n! zookeeper.connect=commented\nzookeeper.connect first\nzookeeper.connect="
    + CONNECT
    + "\nlog.dirs=/d\\\n  /e\n"
)
FILES = {"playground": broker_text(1), "plain": PLAIN, "secured": SECURED, "windows": WINDOWS, "odd": ODD}

every_file = pytest.mark.parametrize("name", FILES)


def forward(text: str, *stages: NodeStage) -> str:
    for stage in stages:
        text = node_file(text, SPEC, BROKER, stage)
    return text


def hybrid(text: str) -> str:
    return forward(text, NodeStage.MIGRATION)


def in_kraft(text: str) -> str:
    return forward(text, NodeStage.MIGRATION, NodeStage.KRAFT)


def back(current: str, stage: NodeStage, original: str | None = None, sibling: str | None = None) -> str:
    wanted = wanted_file(Sources(current, original, sibling=sibling), SPEC, BROKER, stage)
    assert stage_of(parse(wanted.text), Role.BROKER) is stage
    return wanted.text


def meaning(text: str) -> dict[str, str]:
    """What Java reads; that a map of protocols is Kafka's default is the same whether it is said or not."""
    properties = {"listener.security.protocol.map": DEFAULT_PROTOCOL_MAP} | parse(text)
    properties["listener.security.protocol.map"] = properties["listener.security.protocol.map"].replace(" ", "")
    return properties


# With an archive


@every_file
@pytest.mark.parametrize("way", ["from hybrid", "from kraft", "from kraft through hybrid"])
def test_the_way_there_and_back_by_the_archive_is_byte_identical(name: str, way: str) -> None:
    text = FILES[name]
    current = hybrid(text) if way == "from hybrid" else in_kraft(text)
    if way.endswith("through hybrid"):
        current = back(current, NodeStage.MIGRATION, text)
    assert back(current, NodeStage.ZOOKEEPER, text) == text


@every_file
def test_back_to_hybrid_by_the_archive_is_what_hybrid_was(name: str) -> None:
    text = FILES[name]
    assert back(in_kraft(text), NodeStage.MIGRATION, text) == hybrid(text)
    wanted = wanted_file(Sources(in_kraft(text), text), SPEC, BROKER, NodeStage.MIGRATION)
    assert wanted.making is Making.ARCHIVE
    assert parse(wanted.text)[MIGRATION_FLAG] == "true", "false in roll A would end dual write for good"


@every_file
def test_a_file_in_zookeepers_stage_is_its_own_original(name: str) -> None:
    """An earlier migration's archive must not undo what the operator has edited since."""
    edited = FILES[name] + "\nnum.io.threads=16\n"
    for original in (None, FILES[name]):
        assert wanted_file(Sources(edited, original), SPEC, BROKER, NodeStage.ZOOKEEPER).text == edited
        assert "num.io.threads=16" in back(edited, NodeStage.MIGRATION, original)


def test_a_half_edited_file_comes_back_from_the_archive() -> None:
    broken = in_kraft(SECURED).replace("controller.listener.names", "#controller.listener.names")
    assert stage_of(parse(broken), Role.BROKER) is None
    assert back(broken, NodeStage.ZOOKEEPER, SECURED) == SECURED
    assert back(broken, NodeStage.MIGRATION, SECURED) == hybrid(SECURED)


# Without one


@every_file
def test_what_hybrid_mode_added_is_taken_back(name: str) -> None:
    text = FILES[name]
    assert meaning(back(hybrid(text), NodeStage.ZOOKEEPER)) == meaning(text)


@every_file
@pytest.mark.parametrize("stage", [NodeStage.MIGRATION, NodeStage.ZOOKEEPER])
def test_what_kraft_mode_took_away_comes_from_another_broker(name: str, stage: NodeStage) -> None:
    text = FILES[name]
    sibling = edit(text, {"broker.id": "2"})
    for theirs in (sibling, hybrid(sibling)):
        expected = text if stage is NodeStage.ZOOKEEPER else hybrid(text)
        assert meaning(back(in_kraft(text), stage, sibling=theirs)) == meaning(expected)


def test_the_inverse_of_roll_1_is_what_a_person_would_have_typed() -> None:
    for text in (PLAIN, broker_text(1)):
        assert back(hybrid(text), NodeStage.ZOOKEEPER) == text


def test_without_any_archive_there_is_enough_to_start() -> None:
    after = parse(back(in_kraft(SECURED), NodeStage.MIGRATION))
    assert after["broker.id"] == "1"
    assert after["zookeeper.connect"] == CONNECT
    assert after["inter.broker.protocol.version"] == "3.9"
    assert after["authorizer.class.name"] == ACL_AUTHORIZER
    assert not {"process.roles", "node.id", "control.plane.listener.name"} & after.keys()


def test_an_inverse_edit_leaves_comments_order_and_everybodys_lines() -> None:
    theirs = in_kraft(broker_text(1)).replace("num.partitions", "# theirs\nnum.io.threads = 16\nnum.partitions")
    after = back(theirs, NodeStage.ZOOKEEPER, sibling=broker_text(2))
    assert "# theirs\nnum.io.threads = 16\nnum.partitions" in after
    assert [line for line in broker_text(1).splitlines() if line.startswith(("#", "!"))] == [
        line for line in after.splitlines() if line.startswith(("#", "!")) and line != "# theirs"
    ]


def test_what_another_broker_says_of_itself_is_not_taken() -> None:
    sibling = SECURED.replace("REPLICATION://h:9094", "OTHER://h:9094").replace("=REPLICATION\n", "=OTHER\n")
    sibling = edit(sibling, {"broker.id": "2", "zookeeper.connect": "elsewhere:1"})
    after = parse(back(in_kraft(SECURED), NodeStage.MIGRATION, sibling=sibling))
    assert "control.plane.listener.name" not in after, "this broker has no such listener"
    assert (after["broker.id"], after["zookeeper.connect"]) == ("1", CONNECT)
    assert after["log.dirs"] == "/data/1"


def test_what_the_file_says_itself_outranks_another_brokers() -> None:
    current = in_kraft(SECURED) + "zookeeper.ssl.keystore.password=own\n"
    assert parse(back(current, NodeStage.MIGRATION, sibling=SECURED))["zookeeper.ssl.keystore.password"] == "own"


def test_an_authorizer_of_somebodys_own_stays() -> None:
    text = PLAIN + "authorizer.class.name=com.example.Mine\n"
    assert parse(back(in_kraft(text), NodeStage.ZOOKEEPER, sibling=text))["authorizer.class.name"] == "com.example.Mine"


USUAL = (
    [[], ["# a comment", ""]],
    [["broker.id=1"], ["broker.id = 1"], ["broker.id: 1"]],
    [["listeners=PLAINTEXT://h:9092"], ["listeners=A://h:1,B://h:2", "listener.security.protocol.map=A:SSL, B:PLAINTEXT"]],
    [["zookeeper.connect=" + CONNECT], ["zookeeper.connect = " + CONNECT, "zookeeper.set.acl=true", "zookeeper.metadata.x=1"]],
    [["inter.broker.protocol.version=3.9"], ["inter.broker.protocol.version=3.9-IV0"]],
    [[], ["authorizer.class.name=" + ACL_AUTHORIZER, "super.users=User:a"], ["authorizer.class.name=com.example.Mine"]],
    [[], ["password.encoder.secret=s", "broker.id.generation.enable=false"]],
)
"""Kafka's usual forms, part by part."""


def test_every_usual_form_goes_there_and_back() -> None:
    tried = 0
    for parts, newline in product(product(*USUAL), ["\n", "\r\n"]):
        text = newline.join(line for part in parts for line in part) + newline
        sibling = edit(text, {"broker.id": "2"})
        assert back(in_kraft(text), NodeStage.ZOOKEEPER, text) == text
        assert meaning(back(hybrid(text), NodeStage.ZOOKEEPER)) == meaning(text)
        assert meaning(back(in_kraft(text), NodeStage.ZOOKEEPER, sibling=sibling)) == meaning(text)
        tried += 1
    print(f"{tried} files")


@settings(deadline=None)  # Two files there and back, on a machine that may be busy.
@given(
    extra=st.dictionaries(
        st.text(st.sampled_from("abc.:= #é"), min_size=1, max_size=8).map("x.".__add__),
        st.text(st.sampled_from("ab,:= #!\\é\n\t"), max_size=8),
        max_size=4,
    ),
    name=st.sampled_from(sorted(FILES)),
)
def test_any_further_line_survives_every_way(extra: dict[str, str], name: str) -> None:
    text = edit(FILES[name], extra)
    for current in (hybrid(text), in_kraft(text)):
        assert back(current, NodeStage.ZOOKEEPER, text) == text
        after = parse(back(current, NodeStage.ZOOKEEPER, sibling=text))
        assert {key: after.get(key) for key in extra} == {key: parse(text)[key] for key in extra}
        assert meaning(back(current, NodeStage.ZOOKEEPER, sibling=text)) == meaning(text)


# Controllers


def made(source: str = SECURED) -> str:
    return controller_file(SPEC, CONTROLLER, None, source)


def flagged(current: str, original: str | None, sibling: str | None = None) -> str:
    text = wanted_file(Sources(current, original, sibling), SPEC, CONTROLLER, NodeStage.MIGRATION).text
    assert stage_of(parse(text), Role.CONTROLLER) is NodeStage.MIGRATION
    return text


def final(text: str) -> str:
    return node_file(text, SPEC, CONTROLLER, NodeStage.KRAFT)


@every_file
def test_the_flag_comes_back_from_the_archive(name: str) -> None:
    text = made(FILES[name])
    assert flagged(final(text), text) == text


@pytest.mark.parametrize("taken", ["commented out", "set to false", "all of ZooKeeper removed"])
@pytest.mark.parametrize("has_archive", [True, False])
def test_a_flag_that_somebody_took_comes_back_and_their_edits_stay(taken: str, has_archive: bool) -> None:
    line = f"{MIGRATION_FLAG}=true\n"
    current = {
        "commented out": made().replace(line, f"# {line}"),
        "set to false": made().replace(line, f"{MIGRATION_FLAG}=false\n"),
        "all of ZooKeeper removed": final(made()),
    }[taken] + "# theirs, on purpose\nmax.connections=99\n"
    original = made() if has_archive else None
    after = flagged(current, original, SECURED)
    assert parse(after) == parse(made()) | {"max.connections": "99"}
    assert "# theirs, on purpose\nmax.connections=99\n" in after


def test_a_controller_that_still_has_zookeeper_is_given_the_flag_and_nothing_else() -> None:
    """Whatever a broker's file says besides: this one was made without, by its operator."""
    current = edit(made(), {}, frozenset({MIGRATION_FLAG, "zookeeper.ssl.client.enable"}))
    after = flagged(current, None, SECURED)
    assert changes(current, after) == (f"+ {MIGRATION_FLAG}=true",)


def test_a_controllers_archive_of_another_stage_is_not_its_original() -> None:
    after = flagged(final(made()), final(made()), SECURED)
    assert parse(after) == parse(made())


def test_a_controller_never_goes_to_zookeeper() -> None:
    with pytest.raises(Permanent, match="controller-3001"):
        wanted_file(Sources(made()), SPEC, CONTROLLER, NodeStage.ZOOKEEPER)


# What it takes, and what is shown


def test_another_broker_is_asked_only_where_something_is_lost() -> None:
    for stage in (NodeStage.MIGRATION, NodeStage.ZOOKEEPER):
        assert needs_sibling(Sources(in_kraft(PLAIN)), SPEC, BROKER, stage)
        assert not needs_sibling(Sources(in_kraft(PLAIN), PLAIN), SPEC, BROKER, stage)
        assert not needs_sibling(Sources(hybrid(PLAIN)), SPEC, BROKER, stage)
    assert not needs_sibling(Sources(in_kraft(PLAIN)), SPEC, BROKER, NodeStage.KRAFT)
    edited = final(made()) + "max.connections=99\n"
    assert needs_sibling(Sources(edited, made()), SPEC, CONTROLLER, NodeStage.MIGRATION)
    assert not needs_sibling(Sources(final(made()), made()), SPEC, CONTROLLER, NodeStage.MIGRATION)


def test_what_comes_back_is_shown_without_secrets() -> None:
    theirs = (
        SECURED + "metrics.url=https://me:hunter2@host/x\nx.passphrase=hunter2\nx.login=Login required password='hunter2';\n"
    )
    for current in (in_kraft(PLAIN), hybrid(PLAIN), in_kraft(theirs)):
        shown = changes(current, back(current, NodeStage.ZOOKEEPER, theirs))
        assert not any(secret in line for line in shown for secret in ("zk-secret", "=encode", "hunter2"))
    assert "+ zookeeper.ssl.keystore.password=***" in changes(in_kraft(SECURED), SECURED)
