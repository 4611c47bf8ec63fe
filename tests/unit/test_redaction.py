"""What people see of properties: nothing of a secret, in whatever shape public files have had one, and names of properties."""

import subprocess
from pathlib import Path

import pytest

from activities.node_files import look_at_disk
from activities.observing.node_survey import Files
from domain.cluster import ClusterSpec
from domain.configuration.file_changes import changes, unified
from domain.configuration.properties import parse
from domain.diagnosis.logs.redaction import without_secrets
from domain.observed.observation import OBSERVED_PROPERTIES
from domain.observed.survey import SURVEYED_PROPERTIES
from domain.of_kind import Wanted
from domain.plans import Asked
from domain.redaction import HIDDEN, is_harmless, shown_name, shown_value, stripped
from domain.rolling.change import NodeFile
from domain.zk_to_kraft.node_config import controller_file
from domain.zk_to_kraft.planning.plan import plan_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.preview import restorations_of
from domain.zk_to_kraft.runbook.whole import runbook_of
from domain.zk_to_kraft.steps import NodeStage
from playground.fakes.cluster import FakeCluster
from playground.fakes.machine import text_file
from playground.seeded_secrets import REFERENCE, SHAPES, seeded
from tests.unit.conftest import NOW, Point, broker_text, cluster_spec, observation, text_at

SPEC, POLICY = cluster_spec(), ZkToKraftPolicy()
SEEDED = {place: seeded(place) for place in ("first", "last", "base")}
SECRETS = {f"{where}: {place}": secret for where, one in SEEDED.items() for place, secret in one.secrets.items()}
MARKER = "log.dirs=/var/lib/hush-marker"


def with_secrets(text: str) -> str:
    """Above every line of the file that the migration changes, and below all."""
    return f"{SEEDED['first'].text}{text}{SEEDED['last'].text}"


def found_in(told: str) -> set[str]:
    return {place for place, secret in SECRETS.items() if secret in told}


def files_at(stage: NodeStage, *, is_archived: bool) -> dict[int, NodeFile]:
    original = with_secrets(broker_text(1)) if is_archived else None
    brokers = {b.id: NodeFile(with_secrets(text_at(SPEC, b.id, stage)), original, "/archive") for b in SPEC.brokers}
    return brokers | {c.id: NodeFile(None, None, "/archive", SEEDED["base"].text) for c in SPEC.controllers}


def test_the_search_finds_what_is_there() -> None:
    assert found_in(with_secrets("") + SEEDED["base"].text) == SECRETS.keys()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("is_above", [True, False])
def test_no_secret_is_in_a_diff_beside_a_line_that_changes(shape: str, is_above: bool) -> None:
    secret, line = SEEDED["first"].secrets[shape], SHAPES[shape].format(SEEDED["first"].secrets[shape])
    before = f"{line}broker.id=1\n" if is_above else f"broker.id=1\n{line}"
    after = before.replace("broker.id=1", "node.id=1")
    for told in (unified(before, after), changes(before, after), unified("", before), unified(before, ""), changes(before, "")):
        assert not [shown for shown in told if secret in shown]
    assert {"-broker.id=1", "+node.id=1"} <= {*unified(before, after)}, "else nothing was looked at"


@pytest.mark.parametrize("stage", [NodeStage.ZOOKEEPER, NodeStage.MIGRATION])
@pytest.mark.parametrize("is_archived", [True, False])
def test_no_secret_is_in_plan_runbook_and_preview(stage: NodeStage, is_archived: bool) -> None:
    seen, files = observation(Point.BEFORE), files_at(stage, is_archived=is_archived)
    asked = Asked(id="plan-1", kind="zk-to-kraft", policy=POLICY, wanted=Wanted(), requested_by="ann", requested_at=NOW)
    told = {
        "plan": plan_of(seen, SPEC, files, asked, "observation").model_dump_json(),
        "runbook": runbook_of(seen, SPEC, POLICY, files).model_dump_json(),
        "preview": str(restorations_of(SPEC, files)),
    }
    assert {what: found_in(text) for what, text in told.items()} == {what: set() for what in told}
    leaked = {i: NodeFile(f"{file.current}{MARKER}\n", None, "/archive") for i, file in files.items() if file.current}
    assert MARKER in plan_of(seen, SPEC, files | leaked, asked, "observation").model_dump_json(), "the same search finds it"


async def test_no_secret_is_in_an_observation() -> None:
    cluster = FakeCluster()
    broker = cluster.spec.brokers[0]
    driver = cluster.driver(broker)
    inline = "broker.id=1  # creds {}\nzookeeper.connect=z1:2181,\\\n# creds {}\nlog.dirs=C:\\\\data\\\nssl.key.password={}\n"
    secrets = list(SECRETS.values())[:3]
    text = with_secrets(inline.format(*secrets) + "listeners=PLAINTEXT://hush-marker:9092\n")
    await driver.write_file(broker.properties_file, text_file(text))
    disk = await look_at_disk(driver, broker.properties_file, (), cluster.spec.cluster_id, broker.id)
    assert disk.file is not None
    assert disk.file.properties["broker.id"] == f"1  # {HIDDEN}", "what Kafka takes for the value is seen to be more than 1"
    assert disk.file.properties["log.dirs"] == HIDDEN
    told = disk.model_dump_json() + Files(parse(text)).survey(1, b"key").model_dump_json()
    assert "hush-marker" in told
    assert found_in(told) == set()


def test_values_are_kept_of_harmless_properties_only() -> None:
    assert not [key for key in OBSERVED_PROPERTIES | SURVEYED_PROPERTIES if not is_harmless(key)]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("zookeeper.connect", "z1:2181,z2:2181,[2001:db8::1]:2181/kafka"),
        ("listeners", "INTERNAL://:9093,TOKENS://host:9094"),
        ("log.dirs", "/data 1/kafka,C:\\kafka\\data"),
        ("super.users", "User:CN=a,O=b;User:ann"),
        ("sasl.kerberos.principal.to.local.rules", r"RULE:[1:$1@$0](.*@EXAMPLE\.COM)s/@.*//,DEFAULT"),
        ("listener.name.controlplane-9090.ssl.keystore.location", "/etc/secrets/passwords/key.jks"),
        ("config.providers.securepass.class", "io.example.Provider"),
        ("authorizer.class.name", "${env:AUTHORIZER}"),
        ("log.dirs", "${file:/etc/kafka/password:log.dirs},/more"),
        ("ssl.key.password", "${securepass:/etc/kafka/security.properties:ssl.key.password}"),
    ],
)
def test_harmless_values_and_references_to_a_provider_are_shown(key: str, value: str) -> None:
    assert (shown_name(key, value), shown_value(key, value)) == (key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ssl.key.password", "${DB_PASSWORD:-sesame}"),
        ("ssl.key.password", "${env:PASSWORD}sesame"),
        ("ssl.key.password", "sesame"),
        ("config.providers.vault.param.token", "sesame"),
        ("sasl.oauthbearer.jwks.endpoint.url", "https://idp/keys?token=sesame"),
        ("log.dirs", "C:datassl.key.password sesame"),
        ("listeners", "PLAINTEXT://:9092user_alice sesame"),
        ("zookeeper.connect", "admin:sesame@z1:2181//sesame@"),
        ("acme.plugin.url", "sesame"),
    ],
)
def test_what_may_be_a_secret_is_not_shown(key: str, value: str) -> None:
    assert "sesame" not in shown_value(key, value)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("acme.plugin.url", "x", "acme.plugin.url"),
        ("heap.opts", "-Xmx1G", "heap.opts"),
        ("node.idle.hint", "3", "node.idle.hint"),
        ("listener.name.CLIENT.ssl.key.password", "x", "listener.name.CLIENT.ssl.key.password"),
        ("MIIEvQIBADANBgkq", "", HIDDEN),
        ("correct.horse.battery", "", HIDDEN),
        ("user_alice", '"x";', HIDDEN),
        ("-----BEGIN", "PRIVATE KEY-----", HIDDEN),
    ],
)
def test_names_of_properties_stay_and_parts_of_a_value_do_not(key: str, value: str, told: str) -> None:
    assert shown_name(key, value) == told


@pytest.mark.parametrize(
    "words",
    [
        'Missing required configuration "ssl.keystore.password" which has no default value.',
        "SaslAuthenticationException: sasl.mechanism.inter.broker.protocol is not enabled",
        "these are unknown: [zookeeper.connect, broker.id]",
        "listener.name.controlplane-9090.ssl.keystore.location is not there",
    ],
)
def test_kafkas_own_error_keeps_the_name_of_the_property(words: str) -> None:
    assert stripped(words, is_prose=True) == words
    assert without_secrets(f"[2026-11-20 03:00:10,000] ERROR {words}").endswith(words)


@pytest.mark.parametrize("words", ["the value 'hunter2.sesame' is wrong", "[sesame, broker.id]", "ssl.key.password: sesame"])
def test_a_value_beside_a_propertys_name_is_not_shown(words: str) -> None:
    assert "sesame" not in stripped(words, is_prose=True)


def test_a_reference_stays_in_a_diff() -> None:
    assert f"+{REFERENCE}" in unified("", f"{REFERENCE}\n")


def test_a_runbook_makes_a_controllers_file_whole_without_showing_it(tmp_path: Path) -> None:
    """What it may not show it copies from file to file: a password, and lines that have no name."""
    base, broker, made = tmp_path / "base", tmp_path / "broker", tmp_path / "made"
    text = f"num.io.threads=2\n{SEEDED['base'].text}acme.note=kept\n"
    base.write_text(text)
    broker.write_text(f"{broker_text(1)}password.encoder.secret=hush\n")
    spec = SPEC.model_dump(mode="json")
    spec["quorum"]["controllers"][0] |= {"base_properties": str(base), "properties_file": str(made)}
    spec["brokers"][0]["properties_file"] = str(broker)
    given = ClusterSpec.model_validate(spec)
    files = {
        given.brokers[0].id: NodeFile(broker.read_text(), None, ""),
        given.controllers[0].id: NodeFile(None, None, "", text),
    }
    created = runbook_of(observation(Point.BEFORE), given, POLICY, files).forward[1]
    for command in created.commands[:-2]:
        subprocess.run(["sh", "-c", command], check=True)
    assert parse(made.read_text()) == parse(controller_file(given, given.controllers[0], text, broker.read_text()))
