"""The checks that need the survey: each fires on a cluster made for it, and none on a healthy one."""

from datetime import timedelta
from typing import Any

import pytest

from domain.canaries import Leftovers
from domain.checks.check import Check, Surveyed
from domain.cluster import ClusterSpec
from domain.configuration.odd_characters import odd_characters
from domain.decisions import Finding, Refuse, Severity, Step, Wait
from domain.diagnosis.machines.file_owners import Sign
from domain.diagnosis.machines.start import JavaTrial, Override, StartUnit
from domain.observed.observation import ControllerZnode, Observation
from domain.observed.parts import Suspect, Unanswered
from domain.observed.survey import BrokerLogDir, ClientSession, EnsembleServer, NodeSurvey, Reached, Unapplied
from domain.observed.topic_directories import DiskIds
from domain.policy import AcceptedFinding
from domain.rulings import Ruling
from domain.waits import WaitReason
from domain.zk_to_kraft.assessment import assess
from domain.zk_to_kraft.checks.catalogue import CATALOGUE
from domain.zk_to_kraft.checks.controllers import heap_mib
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.preflight import preflight
from domain.zk_to_kraft.steps import NodeStage
from tests.unit.conftest import (
    NOW,
    Point,
    broker_text,
    cluster_spec,
    observation,
    with_file,
    with_metrics,
    with_zookeeper,
)
from tests.unit.secured_cases import secured_cases
from tests.unit.surveys import (
    disk,
    registration,
    secured,
    settings_of,
    survey_of,
    surveyed,
    with_look,
    with_node_survey,
    with_servers,
    with_survey_part,
    with_topic,
    with_tree,
)

AGENT = "-javaagent:/opt/jolokia.jar=port=7777"
TRUE, MADE_UP = "RzS9cdZ8QFyaV6xGT_q1-w", "Zm9vYmFyZm9vYmFyZm9vYg"
BROKERS, CONTROLLERS = (1, 2, 3), (3001, 3002, 3003)


def changed(spec: ClusterSpec, part: str, **fields: Any) -> ClusterSpec:
    nodes = tuple(node.model_copy(update=fields) for node in getattr(spec, part))
    return spec.with_quorum_changed(controllers=nodes) if part == "controllers" else spec.model_copy(update={part: nodes})


def apart(spec: ClusterSpec) -> ClusterSpec:
    """With each controller on a host and in a rack of its own."""
    own = (c.model_copy(update={"host": f"10.0.1.{n}", "rack": f"rack-{n}"}) for n, c in enumerate(spec.controllers))
    return spec.with_quorum_changed(controllers=tuple(own))


SPEC = apart(changed(cluster_spec(), "controllers", environment={"KAFKA_OPTS": AGENT}))
HEALTHY = surveyed(observation(Point.BEFORE), SPEC)
POLICY = ZkToKraftPolicy()


def found(seen: Observation, spec: ClusterSpec = SPEC) -> tuple[Finding, ...]:
    """But for what nothing can be done about."""
    return tuple(f for f in preflight(seen, spec, POLICY) if f.severity is not Severity.INFO)


def with_setting(line: str, node_ids: tuple[int, ...] = BROKERS, *, seen: Observation = HEALTHY) -> Observation:
    """One more line in the files of these nodes; of controllers in their base files."""
    for node_id in node_ids:
        text = (broker_text(node_id) if node_id in BROKERS else "") + line + "\n"
        assert seen.survey is not None
        survey = settings_of(node_id, text).model_copy(update={"look": seen.survey.node(node_id).look})
        seen = with_file(seen, node_id, text) if node_id in BROKERS else seen
        seen = with_node_survey(seen, (node_id,), **{name: getattr(survey, name) for name in NodeSurvey.model_fields})
    return seen


def elected(seconds: float) -> Observation:
    claim = ControllerZnode(broker_id=2, kraft_epoch=None, is_ephemeral=True, claimed_at=NOW - timedelta(seconds=seconds))
    return with_zookeeper(HEALTHY, controller=claim)


def reached(**parts: Any) -> Observation:
    one = Reached(what="INTERNAL of broker-1", protocol="SSL", problem=None)
    return with_look(HEALTHY, (3001,), reached=(one.model_copy(update=parts),))


def server_with(**parts: Any) -> Observation:
    def change(server: EnsembleServer) -> EnsembleServer:
        return server.model_copy(update=parts)

    return with_servers(HEALTHY, change)


def suspect(path: str) -> Observation:
    return with_tree(HEALTHY, suspects=(Suspect(what=path, why="is no JSON"),))


def blind(part: str, **parts: Any) -> Observation:
    """A part that we may never have."""
    return with_survey_part(HEALTHY, missing=(Unanswered(what=part, why="not allowed"),), **parts)


CUSTOM_BUILDER = "principal.builder.class=com.example.Builder"
SASL = (
    "inter.broker.listener.name=INTERNAL\n"
    "listener.security.protocol.map=INTERNAL:SASL_PLAINTEXT\n"
    "sasl.mechanism.inter.broker.protocol=PLAIN\n"
    'listener.name.internal.plain.sasl.jaas.config=PlainLoginModule required username="kafka" password="s3cret";\n'
)
SASL_SEEN = with_tree(
    with_setting(SASL + "super.users=User:kafka;User:ANONYMOUS"),
    registrations=tuple(
        registration(i).model_copy(update={"addresses": {"INTERNAL": "h:1"}, "protocols": {"INTERNAL": "SASL_PLAINTEXT"}})
        for i in BROKERS
    ),
)
SASL_SPEC = SPEC.with_quorum_changed(security_protocol="SASL_SSL")
ENCRYPTED = {"1": ("listener.name.internal.ssl.keystore.password",)}

B, W = Severity.BLOCKER, Severity.WARNING
CASES: dict[str, tuple[Observation, str, Severity]] = {
    "brokers of two patch releases": (with_metrics(with_look(HEALTHY, BROKERS), 2, kafka_version="3.9.3"), "PF01", B),
    "jars of another release": (with_look(HEALTHY, (3001,), kafka_versions=("4.0.0",)), "PF01", B),
    "no jars": (with_look(HEALTHY, (1,), kafka_versions=()), "PF01", B),
    "an id from the range of generated ones": (with_setting("reserved.broker.max.id=2", (3,)), "PF05", B),
    "a controller in memory": (with_look(HEALTHY, (3001,), log_dirs=(disk("/dev/shm/x", filesystem="tmpfs"),)), "PF06", B),  # noqa: S108
    "a controller's directory that cannot be made": (
        with_look(HEALTHY, (3001,), log_dirs=(disk("/", is_writable=False),)),
        "PF07",
        B,
    ),
    "a base file that is not there": (with_node_survey(HEALTHY, (3001,), lacks_base=True), "PF07", B),
    "a controller's port that is taken": (with_look(HEALTHY, (3002,), is_port_taken=True), "PF07", B),
    "a controller's disk that is small": (with_look(HEALTHY, (3001,), log_dirs=(disk("/d", free=10**9),)), "PF08", W),
    "a server that does not answer": (server_with(problem="refused", mode=None), "PF09", B),
    "a server without a quorum": (server_with(mode="not serving"), "PF09", B),
    "two leaders": (server_with(mode="leader"), "PF09", B),
    "a server that is behind": (server_with(outstanding=5000), "PF09", W),
    "a server that is slow": (server_with(latency=900.0), "PF09", W),
    "configs of a dead broker": (with_tree(HEALTHY, broker_configs={"9": ("log.cleaner.threads",)}), "PF12", B),
    "an ACL that cannot be read": (suspect("/kafka-acl/Topic/orders"), "PF15", B),
    "a quota that cannot be read": (suspect("/config/users/ann"), "PF15", B),
    "a prefix that is an asterisk": (
        with_tree(HEALTHY, prefixed_wildcards=("/kafka-acl-extended/prefixed/Topic/*",)),
        "PF15",
        W,
    ),
    "a partition state that cannot be read": (suspect("/brokers/topics/orders/partitions/0/state"), "PF17", B),
    "a topic's configs that cannot be read": (suspect("/config/topics/orders"), "PF17", B),
    "partitions that coordinate and that running brokers do not count": (
        with_tree(HEALTHY, coordinators={"__consumer_offsets": {0: NOW - timedelta(days=9), 1: NOW}}),
        "PF46",
        B,
    ),
    "configs without a topic": (with_tree(HEALTHY, orphan_configs=("gone",)), "PF17", W),
    "a throttled broker": (
        with_tree(HEALTHY, broker_configs={"1": ("follower.replication.throttled.rate",)}),
        "PF18",
        W,
    ),
    "a throttled topic": (with_tree(HEALTHY, throttled_topics=("orders",)), "PF18", W),
    "a subscription of client metrics": (with_tree(HEALTHY, client_metrics=("all",)), "PF18", B),
    "a foreign client": (
        server_with(sessions=(ClientSession(id=0x102, client="10.0.0.2:40001"), ClientSession(id=0x9, client="10.9.9.9:1"))),
        "PF19",
        W,
    ),
    "other names for the servers": (with_setting("zookeeper.connect=other:2181/kafka", (1,)), "PF20", W),
    "a huge znode": (with_tree(HEALTHY, largest_bytes=900_000), "PF21", W),
    "a huge list": (with_tree(HEALTHY, longest_list="/config/users", longest_list_bytes=900_000), "PF21", W),
    "topics with one replica": (with_tree(HEALTHY, single_replica_topics=("alone",)), "PF22", W),
    "a worker that takes its nodes with it": (
        with_look(HEALTHY, (1, 2), unit=StartUnit(name="keeperless-activities.service", kill_mode="control-group")),
        "PF43",
        B,
    ),
    "a worker in whose unit no JVM starts": (
        with_look(
            HEALTHY, (1,), unit=StartUnit(name="k.service", kill_mode="process", inherits=("MemoryDenyWriteExecute=yes",))
        ),
        "PF43",
        B,
    ),
    "a worker that a logout takes its nodes with": (
        with_look(HEALTHY, (1,), unit=StartUnit(name="k.service", is_users=True, kill_mode="process", ends_at_logout=True)),
        "PF43",
        B,
    ),
    "a node whose output a start could not open": (
        with_look(HEALTHY, (2,), unopened=(("/var/log/kafka.out", "Permission denied"),)),
        "PF43",
        B,
    ),
    "a wrapper in a pid file": (with_look(HEALTHY, (2,), held_by=("6708 (java)",)), "PF47", B),
    "a node whose user may not read its jars": (
        with_look(HEALTHY, (2,), denied=(("/opt/kafka/libs", "it is 0:0 with drwx------"),)),
        "PF43",
        B,
    ),
    "a worker of which nobody knows it": (
        with_look(HEALTHY, (3,), unit=StartUnit(name="keeperless-activities.service", kill_mode="")),
        "PF43",
        B,
    ),
    "an edit that waits for a restart": (
        with_node_survey(HEALTHY, (2,), unapplied=(Unapplied(key="num.io.threads", runs=None, says="0"),)),
        "PF44",
        B,
    ),
    "a start command that sets a key which a stage writes": (
        with_node_survey(HEALTHY, (3001,), overrides=(Override(key="log.dirs", value="/other", is_specified=True),)),
        "PF44",
        B,
    ),
    "a file that something else writes": (
        with_node_survey(HEALTHY, (2,), owners=(Sign(where="line 1 of /etc/x", says="Maintained by Ansible"),)),
        "PF48",
        B,
    ),
    "a process on another directory": (
        with_look(HEALTHY, (2,), unheld=("/data/2",), elsewhere=("/var/kafka-logs",)),
        "PF47",
        B,
    ),
    "a process on one directory more": (with_look(HEALTHY, (2,), elsewhere=("/data/9",)), "PF47", B),
    "a broker whose java was taken away": (
        with_look(HEALTHY, (2,), trials=(JavaTrial(command="/opt/java/bin/java", failed="exit code 1"),)),
        "PF45",
        B,
    ),
    "a broker whose file Kafka will not take": (
        with_look(HEALTHY, (2,), trials=(JavaTrial(stage=NodeStage.MIGRATION), JavaTrial(stage=NodeStage.KRAFT, refused="no"))),
        "PF45",
        B,
    ),
    "two active controllers": (with_metrics(HEALTHY, 1, active_controller_count=1), "PF23", B),
    "no active controller": (with_metrics(HEALTHY, 2, active_controller_count=0), "PF23", B),
    "a controller of another name": (
        with_metrics(with_metrics(HEALTHY, 2, active_controller_count=0), 1, active_controller_count=1),
        "PF23",
        B,
    ),
    "a controller elected just now": (elected(5), "PF23", W),
    "an offline log directory": (
        with_survey_part(HEALTHY, log_dirs=(BrokerLogDir(broker_id=1, path="/data/1", is_offline=True),)),
        "PF24",
        B,
    ),
    "a log directory that is not described": (with_setting("log.dirs=/data/1,/more/1", (1,)), "PF24", B),
    "a comment behind a value": (with_node_survey(HEALTHY, (1,), odd_characters=odd_characters("a.b=1 # x")), "PF45", W),
    "a comment behind a number": (
        with_node_survey(HEALTHY, (1,), odd_characters=odd_characters("num.partitions=1 # x")),
        "PF45",
        B,
    ),
    "a base file that Java cannot read": (with_node_survey(HEALTHY, (3001,), malformed="/etc/b, line 2: x"), "PF45", B),
    "a partition without metadata": (with_look(HEALTHY, (1,), topic_ids=DiskIds(without=("/data/1/orders-0",))), "PF25", B),
    "a partition of another topic": (with_topic(HEALTHY, MADE_UP, {1: {"/data/1/orders-0": TRUE}}), "PF25", B),
    "a topic whose id is on disk alone": (
        with_zookeeper(with_topic(HEALTHY, None, {1: {"/data/1/orders-0": TRUE}}), topics_without_id=("orders",)),
        "PF17",
        B,
    ),
    "a full disk": (with_look(HEALTHY, (1,), log_dirs=(disk("/data/1", free=10**9),)), "PF26", W),
    "few open files": (with_look(HEALTHY, (1,), most_open_files=600), "PF26", W),
    "few maps": (with_look(HEALTHY, (1,), most_maps=1200), "PF26", W),
    "no controlled shutdown": (with_setting("controlled.shutdown.enable=false"), "PF27", B),
    "a broker that does not advertise the listener": (
        with_tree(HEALTHY, registrations=(*map(registration, (1, 2)), registration(3).model_copy(update={"addresses": {}}))),
        "PF28",
        B,
    ),
    "a way that is closed": (reached(problem="timed out"), "PF29", B),
    "a certificate that expires": (reached(certificate_until=NOW + timedelta(days=3)), "PF29", B),
    "nobody is a super user": (
        with_setting("super.users=User:admin\nallow.everyone.if.no.acl.found=false"),
        "PF30",
        B,
    ),
    "nobody is a super user, and everybody is let in": (with_setting("super.users=User:admin"), "PF30", W),
    "a principal builder": (with_setting(CUSTOM_BUILDER), "PF31", W),
    "passwords without a secret": (with_tree(HEALTHY, broker_configs=ENCRYPTED), "PF32", B),
    "a policy that is not there": (with_look(HEALTHY, (3001,), absent_classes=("com.example.Policy",)), "PF34", B),
    "a policy for configs": (with_setting("alter.config.policy.class.name=com.example.Policy"), "PF34", W),
    "defaults that differ": (with_setting("num.partitions=7", (1,)), "PF35", W),
    "a base file with another default": (with_setting("num.partitions=7", (3001,)), "PF35", W),
    "a control plane": (with_setting("control.plane.listener.name=CONTROL"), "PF37", W),
    "a broker without a gauge": (with_metrics(HEALTHY, 1, active_controller_count=None), "PF38", B),
    "files that differ in a secret": (with_setting("ssl.truststore.password=other", (2,)), "PF39", W),
    "files that differ in a setting": (with_setting("sasl.enabled.mechanisms=PLAIN", (2,)), "PF39", W),
    "a folder that cannot be written": (with_look(HEALTHY, (1,), archive=disk("/etc/kafka", is_writable=False)), "PF40", B),
    "a folder without room": (with_look(HEALTHY, (1,), archive=disk("/etc/kafka", free=0)), "PF40", B),
    "canaries that could not be removed": (with_survey_part(HEALTHY, refused_canaries=("delete topics: no",)), "PF41", B),
    "a topic of a migration that is gone": (with_tree(HEALTHY, left=Leftovers(topics=("keeperless-canary-m0-1",))), "PF42", W),
}
"""Each with the code, and the severity, of the finding that it is made for."""

LOGIN = f"{AGENT} -Djava.security.auth.login.config=/etc/kafka/jaas.conf"

OTHER_SPECS: dict[str, tuple[Observation, ClusterSpec, str, Severity]] = {
    "one controller": (HEALTHY, SPEC.with_quorum_changed(controllers=SPEC.controllers[:1]), "PF06", B),
    "controllers of one host": (HEALTHY, changed(SPEC, "controllers", host="10.0.1.1"), "PF06", W),
    "controllers of one rack": (HEALTHY, changed(SPEC, "controllers", rack="rack-1"), "PF06", W),
    "controllers beside brokers": (HEALTHY, changed(SPEC, "brokers", host="10.0.1.1"), "PF06", W),
    "a small heap": (HEALTHY, changed(SPEC, "controllers", environment={"KAFKA_OPTS": f"{AGENT} -Xmx32m"}), "PF08", W),
    "an identity that may not write": (
        with_tree(HEALTHY, protected=("/config",), refused="not allowed"),
        changed(SPEC, "controllers", environment={"KAFKA_OPTS": LOGIN}),
        "PF16",
        B,
    ),
    "SCRAM alone": (
        with_setting("sasl.mechanism.controller.protocol=SCRAM-SHA-512"),
        SPEC.with_quorum_changed(security_protocol="SASL_PLAINTEXT"),
        "PF36",
        B,
    ),
    "two log directories": (
        with_setting("log.dirs=/data/1,/more/1", (1,)),
        SPEC.model_copy(
            update={"brokers": (SPEC.brokers[0].model_copy(update={"log_dirs": ("/data/1", "/more/1")}), *SPEC.brokers[1:])}
        ),
        "PF24",
        W,
    ),
}

SECURED_SEEN = secured(with_setting("super.users=User:kafka;User:ANONYMOUS;User:CN=broker-1"), SASL_SPEC)
SECURED = secured_cases(SECURED_SEEN, secured(SASL_SEEN, SPEC), SASL_SPEC)

UNVERIFIABLE: dict[str, tuple[Observation, ClusterSpec, set[str]]] = {
    "no python on a broker": (
        with_node_survey(blind("look at broker-1"), (1,), look=None),
        SPEC,
        {"PF01", "PF25", "PF26", "PF29", "PF40", "PF43", "PF45", "PF47"},
    ),
    "no python on a controller": (
        with_node_survey(blind("look at controller-3001"), (3001,), look=None),
        SPEC,
        {"PF01", "PF07", "PF29", "PF34", "PF40", "PF43", "PF45", "PF47"},
    ),
    "a tree that may not be read": (
        blind("survey of zookeeper", zookeeper=None),
        SPEC,
        {"PF12", "PF15", "PF16", "PF17", "PF18", "PF19", "PF21", "PF22", "PF28", "PF32", "PF33", "PF42", "PF46"},
    ),
    "configs that may not be described": (
        with_node_survey(blind("the values that brokers run with"), (1, 2, 3), unapplied=None),
        SPEC,
        {"PF44"},
    ),
    "a command line that may not be read": (with_node_survey(HEALTHY, (2,), is_command_unread=True), SPEC, {"PF44"}),
    "a process whose locks may not be seen": (with_look(HEALTHY, (2,), unseen=("/data/2",)), SPEC, {"PF47"}),
    "a script of a start command that may not be read": (with_node_survey(HEALTHY, (2,), owners=None), SPEC, {"PF48"}),
    "a process that is no plain java": (
        with_look(HEALTHY, (2,), trials=(JavaTrial(untried="its process is no plain java"),)),
        SPEC,
        {"PF45"},
    ),
    "srvr is not whitelisted": (server_with(mode=None), SPEC, {"PF09"}),
    "cons is not whitelisted": (server_with(sessions=None), SPEC, {"PF19"}),
    "protected znodes and no login": (with_tree(HEALTHY, protected=("/config",)), SPEC, {"PF16"}),
    "canaries that may not be asked about": (blind("canaries", refused_canaries=None), SPEC, {"PF41"}),
    "log directories that may not be described": (blind("log directories", log_dirs=None), SPEC, {"PF24"}),
    "a broker's process that may not be looked at": (
        with_look(HEALTHY, (1,), open_files=None, most_open_files=None),
        SPEC,
        {"PF26"},
    ),
    "a listener with a login": (SASL_SEEN, SPEC, {"PF29"}),
    "controllers with a certificate": (HEALTHY, SPEC.with_quorum_changed(security_protocol="SSL"), {"PF29"}),
    "brokers with a ticket": (
        with_setting("super.users=User:admin\nlistener.security.protocol.map=PLAINTEXT:SASL_SSL"),
        SPEC,
        {"PF29", "PF30"},
    ),
    "controllers without an agent": (HEALTHY, changed(SPEC, "controllers", environment={}), {"PF38"}),
}

ALL = {
    **{name: (seen, spec) for name, (seen, spec, _, _) in SECURED.items()},
    **{name: (seen, SPEC) for name, (seen, _, _) in CASES.items()},
    **{name: (seen, spec) for name, (seen, spec, _, _) in OTHER_SPECS.items()},
    **{name: (seen, spec) for name, (seen, spec, _) in UNVERIFIABLE.items()},
}


def test_a_healthy_cluster_has_no_findings() -> None:
    assert found(HEALTHY) == ()
    told = [f for f in preflight(HEALTHY, SPEC, POLICY) if f.severity is Severity.INFO]
    assert [f.code for f in told] == ["PF27"], "how long a restart takes is not measured, and nothing has to be done"


@pytest.mark.parametrize("case", CASES)
def test_a_check_fires_with_its_code_and_severity(case: str) -> None:
    seen, code, severity = CASES[case]
    assert_fires(found(seen), code, severity)


@pytest.mark.parametrize("case", OTHER_SPECS)
def test_a_check_fires_on_what_is_described(case: str) -> None:
    seen, spec, code, severity = OTHER_SPECS[case]
    assert_fires(found(seen, spec), code, severity)


@pytest.mark.parametrize("case", SECURED)
def test_a_check_fires_on_what_a_secured_listener_lacks(case: str) -> None:
    seen, spec, code, told = SECURED[case]
    findings = [f for f in found(seen, spec) if f.code != "PF39"]
    assert {f.code for f in findings} == {code}
    assert any(told in f"{f.object}: {f.observed}" for f in findings), findings


@pytest.mark.parametrize(("seen", "spec"), [(SECURED_SEEN, SASL_SPEC), (secured(SASL_SEEN, SPEC), SPEC)])
def test_what_was_tried_and_is_in_order_is_no_finding(seen: Observation, spec: ClusterSpec) -> None:
    assert found(seen, spec) == ()


def assert_fires(findings: tuple[Finding, ...], code: str, severity: Severity) -> None:
    fired = [f for f in findings if f.code == code]
    assert fired
    assert {f.severity for f in fired} == {severity}
    assert all(f.object and f.observed and f.expected and f.fix and not f.is_unverifiable for f in fired)
    # What differs between files is told as that, too, and of a login that it cannot be tried.
    others = {"PF39", "PF29"} if code == "PF36" else {"PF39"}
    assert {f.code for f in findings} <= {code, *others}, findings


@pytest.mark.parametrize("case", UNVERIFIABLE)
def test_what_cannot_be_looked_at_is_unverifiable_and_never_a_pass(case: str) -> None:
    seen, spec, codes = UNVERIFIABLE[case]
    findings = found(seen, spec)
    assert {f.code for f in findings if f.is_unverifiable} == codes
    assert {f.code for f in findings} <= codes | {"PF24", "PF28", "PF39"}, findings
    assert all(f.observed and f.fix for f in findings)


def test_each_leftover_comes_with_the_command_that_removes_it() -> None:
    name = "keeperless-canary-m0-1"
    left = Leftovers(topics=(name,), groups=(name,), users=(name,), znodes=(f"/config/users/{name}-pause",))
    commands = {f.object: f.fix for f in found(with_tree(HEALTHY, left=left))}
    assert f"--delete --topic {name}" in commands[f"topic {name}"]
    assert f"--remove --force --deny-principal User:{name}" in commands[f"ACL of group {name}"]
    assert f"--entity-name {name} --delete-config SCRAM-SHA-512" in commands[f"user {name}"]
    assert f"delete /config/users/{name}-pause" in commands[f"/config/users/{name}-pause"]


def test_why_it_could_not_be_looked_at_is_told() -> None:
    seen, _, _ = UNVERIFIABLE["a tree that may not be read"]
    assert {f.observed for f in found(seen)} == {"not allowed"}


FUNCTIONS = [(check, function) for check in CATALOGUE for function in check.of_survey]


@pytest.mark.parametrize(("check", "function"), FUNCTIONS, ids=lambda value: getattr(value, "code", None))
def test_every_function_of_a_check_has_a_case_in_which_it_fires(check: Check, function: Any) -> None:
    """One that no case needs could be deleted unnoticed."""
    fired: list[Finding] = []
    for seen, spec in (*ALL.values(), *MORE):
        assert seen.zookeeper is not None
        assert seen.kafka is not None
        assert seen.survey is not None
        fired += function(Surveyed(spec, POLICY, seen, seen.zookeeper, seen.kafka, seen.survey))
    assert [f for f in fired if not f.is_unverifiable or function.__name__ in {"_agents"}]
    assert {f.code for f in fired} == {check.code}


INTERNAL = with_setting("inter.broker.listener.name=INTERNAL", (1,))
TOKENS = with_tree(HEALTHY, tokens=2)
MORE = ((INTERNAL, SPEC), (TOKENS, SPEC))


def test_two_inter_broker_listeners_are_found_once_and_so_is_who_does_not_advertise_it() -> None:
    findings = [f for f in found(INTERNAL) if f.code == "PF28"]
    assert findings[0].object == "inter.broker.listener.name"
    assert [f.object for f in findings[1:]] == ["/brokers/ids/1", "/brokers/ids/2", "/brokers/ids/3"]


SECRET = "delegation.token.secret.key="


@pytest.mark.parametrize(
    ("seen", "codes"),
    [
        (with_setting(f"{SECRET}one"), set()),
        (with_setting(f"{SECRET}two", (3,), seen=with_setting(f"{SECRET}one")), {"PF33", "PF39"}),
        (with_setting(f"{SECRET}one", (1, 2)), {"PF33", "PF39"}),
        (with_setting("delegation.token.master.key=one"), set()),
        (with_setting(f"{SECRET}one", seen=with_setting(f"{SECRET}other", (3001,))), {"PF33"}),
    ],
)
def test_tokens_need_one_secret_everywhere(seen: Observation, codes: set[str]) -> None:
    assert {f.code for f in found(with_tree(seen, tokens=1))} == codes
    assert "PF33" not in {f.code for f in found(seen)}, "without tokens nothing needs it"


def test_passwords_that_every_broker_can_decode_are_no_finding() -> None:
    assert found(with_tree(with_setting("password.encoder.secret=one"), broker_configs=ENCRYPTED)) == ()


def test_a_finding_about_a_secret_shows_no_digest() -> None:
    seen, _, _ = CASES["files that differ in a secret"]
    (finding,) = found(seen)
    assert seen.survey is not None
    assert not any(digest in finding.model_dump_json() for digest in seen.survey.node(2).digests.values())


ENSEMBLE, KAFKA = "10.0.0.9:2181", "10.0.0.1:9092"


@pytest.mark.parametrize(
    ("sockets", "is_foreign"),
    [
        ((("10.0.0.2:50001", ENSEMBLE),), False),
        ((("10.0.0.2:1", ENSEMBLE),), True),
        ((("10.0.0.2:50001", KAFKA),), True),
        (None, False),
    ],
    ids=["its broker's", "of another process", "of another process, with a port that the broker has elsewhere", "not seen"],
)
def test_an_authorizers_own_session_is_its_brokers(sockets: tuple[tuple[str, str], ...] | None, is_foreign: bool) -> None:
    sessions = (ClientSession(id=0x102, client="10.0.0.2:40001"), ClientSession(id=0x9, client="10.0.0.2:50001"))
    seen = with_look(server_with(address=ENSEMBLE, sessions=sessions), (2,), sockets=sockets)
    assert ("PF19" in {f.code for f in found(seen)}) == is_foreign


def test_a_login_that_the_controllers_get_satisfies_protected_znodes() -> None:
    spec = changed(SPEC, "controllers", environment={"KAFKA_OPTS": LOGIN})
    assert found(with_tree(HEALTHY, protected=("/config",)), spec) == ()


def test_who_logs_in_by_name_is_looked_up_among_the_super_users() -> None:
    assert "PF30" not in {f.code for f in found(SASL_SEEN)}
    assert "PF30" in {f.code for f in found(with_setting(SASL + "super.users=User:admin"))}


def test_in_memory_all_over_is_a_cluster_to_throw_away() -> None:
    seen = with_look(HEALTHY, (*BROKERS, *CONTROLLERS), log_dirs=(disk("/dev/shm", filesystem="tmpfs"),))  # noqa: S108
    assert {f.severity for f in found(seen) if f.code == "PF06"} == {Severity.WARNING}


def test_a_plugin_for_scram_beside_another_mechanism_is_no_finding() -> None:
    seen = with_setting("sasl.mechanism.controller.protocol=PLAIN\nsasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512")
    spec = SPEC.with_quorum_changed(security_protocol="SASL_PLAINTEXT")
    assert "PF36" not in {f.code for f in found(seen, spec)}


def test_a_heap_grows_with_the_partitions() -> None:
    """97 MiB were in use with 20,000 partitions, and 305 with 100,000; 256 were too few there."""
    assert heap_mib(21) < 96
    assert heap_mib(20_000) >= 2 * 97
    assert heap_mib(100_000) >= 2 * 305


# The survey inside an assessment


def test_nothing_starts_without_a_survey_where_one_is_needed() -> None:
    bare = observation(Point.BEFORE)
    decision = assess(bare, SPEC, POLICY, Ruling(), "name", needs_survey=True).decision
    assert isinstance(decision, Wait)
    assert decision.reason == WaitReason.PART_UNKNOWN
    assert isinstance(assess(HEALTHY, SPEC, POLICY, Ruling(), "name", needs_survey=True).decision, Step)


def test_a_survey_that_is_not_whole_is_waited_for() -> None:
    silent = HEALTHY.model_copy(update={"unanswered": (Unanswered(what="look at broker-1", why="timed out"),)})
    decision = assess(silent, SPEC, POLICY, Ruling(), "name", needs_survey=True).decision
    assert isinstance(decision, Wait)
    assert decision.objects == ("look at broker-1",)


def test_a_blocker_of_the_survey_refuses_and_one_that_is_accepted_does_not() -> None:
    seen, spec, _ = UNVERIFIABLE["controllers with a certificate"]
    refused = assess(seen, spec, POLICY, Ruling(), "name", needs_survey=True).decision
    assert isinstance(refused, Refuse)
    accepted = AcceptedFinding(code="PF29", object="*", by="ann", reason="tried with Kafka's own tools")
    policy = ZkToKraftPolicy(accepted_findings=(accepted,))
    assert isinstance(assess(seen, spec, policy, Ruling(), "name", needs_survey=True).decision, Step)


def test_an_observation_with_a_survey_comes_back_from_json() -> None:
    assert Observation.model_validate_json(HEALTHY.model_dump_json()) == HEALTHY
    assert HEALTHY.survey == survey_of(SPEC)


def test_an_exporter_that_tells_no_texts_is_enough() -> None:
    """The Prometheus JMX exporter gives numbers only."""
    assert found(with_metrics(HEALTHY, 2, zookeeper_session=None)) == found(HEALTHY)


@pytest.mark.parametrize(
    ("modes", "is_well"), [(("not serving", "follower", "follower"), True), (("not serving", "observer", "follower"), False)]
)
def test_a_leader_that_is_told_to_serve_no_client_is_no_lack_of_a_quorum(modes: tuple[str, ...], is_well: bool) -> None:
    assert HEALTHY.survey is not None
    servers = [server.model_copy(update={"mode": mode}) for server, mode in zip(HEALTHY.survey.servers, modes, strict=True)]
    findings = found(with_survey_part(HEALTHY, servers=tuple(servers)))
    assert ("PF09" not in {finding.code for finding in findings}) is is_well
