"""Values of a configuration provider: the running broker's value is judged, or a finding says that it was not read."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from activities.observing.observe import observe
from domain.checks.check import NOT_READ
from domain.configuration.properties import parse
from domain.configuration.provided_values import is_provided
from domain.decisions import Finding, Severity
from domain.errors import Permanent, Transient
from domain.observed.observation import OBSERVED_PROPERTIES, Observation
from domain.observed.survey import SURVEYED_PROPERTIES, StartedWith
from domain.policy import AcceptedFinding
from domain.records import ClusterRecord
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.preflight import preflight
from playground.fakes.cluster import FakeCluster
from playground.fakes.machine import text_file
from tests.unit.conftest import broker_text, with_node
from tests.unit.surveys import secured, with_node_survey
from tests.unit.test_preflight_survey import BROKERS, HEALTHY, SPEC, found, with_setting
from tests.unit.test_surveying import ports_of

POLICY = ZkToKraftPolicy()
READ_BY = {
    "inter.broker.protocol.version": {"PF02"},
    "broker.id": {"PF05"},
    "node.id": {"PF05"},
    "broker.id.generation.enable": {"PF05"},
    "reserved.broker.max.id": {"PF05"},
    "zookeeper.connect": {"PF20"},
    "log.dirs": {"PF24"},
    "controlled.shutdown.enable": {"PF27"},
    "listeners": {"PF28"},
    "listener.security.protocol.map": {"PF28"},
    "inter.broker.listener.name": {"PF28"},
    "security.inter.broker.protocol": {"PF28"},
    "super.users": {"PF30"},
    "authorizer.class.name": {"PF31"},
    "principal.builder.class": {"PF31", "PF34"},
    "create.topic.policy.class.name": {"PF34"},
    "alter.config.policy.class.name": {"PF34"},
}
"""By property the checks that say that it was not read. All other properties make no difference to any check."""

JUDGED = {
    "alter.config.policy.class.name": {"PF34"},
    **dict.fromkeys(("control.plane.listener.name", "log.message.format.version"), frozenset({"PF37"})),
    **dict.fromkeys(("controller.listener.names", "controller.quorum.voters", "process.roles"), frozenset({"PF37"})),
    "controller.quorum.bootstrap.servers": {"PF37"},
}
"""Where that it is set is what counts, whatever it says."""
DEFAULTS = {
    "broker.id.generation.enable": "false",
    "reserved.broker.max.id": "1000",
    "controlled.shutdown.enable": "true",
    "security.inter.broker.protocol": "PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT",
    "principal.builder.class": "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
}
WRONG = {
    "inter.broker.protocol.version": "3.8",
    "broker.id": "7",
    "node.id": "7",
    "reserved.broker.max.id": "0",
    "zookeeper.connect": "elsewhere:2181/other",
    "log.dirs": "/elsewhere",
    "controlled.shutdown.enable": "false",
    "listeners": f"{SPEC.controller_listener}://:9092",
    "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{SPEC.controller_listener}:SSL",
    "inter.broker.listener.name": "SPARE",
    "security.inter.broker.protocol": "SSL",
    "super.users": "User:nobody",
    "authorizer.class.name": "io.example.Authorizer",
    "principal.builder.class": "io.example.Builder",
    "alter.config.policy.class.name": "io.example.Policy",
}


def reference(key: str) -> str:
    return f"${{file:/etc/kafka/{key}.properties:{key}}}"


def left_to_a_provider(key: str, node_ids: Sequence[int] = BROKERS) -> Observation:
    return with_setting(f"{key}={reference(key)}", tuple(node_ids))


def with_running(seen: Observation, values: Mapping[int, dict[str, str]]) -> Observation:
    """What brokers say that they run with."""
    for node_id, running in values.items():

        def say(node: Any, running: dict[str, str] = running) -> Any:
            file = node.disk.file.model_copy(update={"running": running})
            return node.model_copy(update={"disk": node.disk.model_copy(update={"file": file})})

        seen = with_node_survey(with_node(seen, node_id, say), (node_id,), running=running, principal="User:ANONYMOUS")
    return seen


def new_in(seen: Observation) -> list[Finding]:
    known = {(finding.code, finding.object) for finding in found(HEALTHY)}
    return [finding for finding in found(seen) if (finding.code, finding.object) not in known]


@pytest.mark.parametrize("key", sorted(OBSERVED_PROPERTIES | SURVEYED_PROPERTIES))
def test_no_check_judges_a_reference_as_the_value(key: str) -> None:
    """Neither as a fault nor as right: the finding says that it was not read, and people may accept that."""
    new = new_in(left_to_a_provider(key))
    judged = [finding for finding in new if not finding.is_unverifiable]
    assert {finding.code for finding in judged} == JUDGED.get(key, set())
    assert {finding.code for finding in new if NOT_READ in finding.observed} == READ_BY.get(key, set())
    assert all(reference(key) in finding.observed for finding in new if NOT_READ in finding.observed), "where it lies is shown"
    blocking = [finding for finding in new if finding.severity is Severity.BLOCKER]
    accepted = [AcceptedFinding(code=f.code, object=f.object, by="ann", reason="read by hand") for f in blocking]
    policy = ZkToKraftPolicy(accepted_findings=tuple(accepted))
    objects = {(finding.code, finding.object) for finding in blocking}
    assert all(f.accepted for f in preflight(left_to_a_provider(key), SPEC, policy) if (f.code, f.object) in objects)
    assert "PF20" not in {finding.code for finding in blocking}, "it could not be accepted"


@pytest.mark.parametrize("key", sorted(READ_BY))
def test_what_the_running_broker_has_is_judged(key: str) -> None:
    right = {i: {key: parse(broker_text(i)).get(key, (DEFAULTS | {"node.id": str(i)}).get(key, ""))} for i in BROKERS}
    new = new_in(with_running(left_to_a_provider(key), right))
    assert {finding.code for finding in new} <= ({"PF31"} if key == "authorizer.class.name" else set())
    if key in WRONG:
        wrong = with_running(left_to_a_provider(key), {i: {key: WRONG[key]} for i in BROKERS})
        assert {finding.code for finding in new_in(wrong) if not finding.is_unverifiable} & READ_BY[key]


def test_the_same_reference_on_all_brokers_is_no_difference_and_another_is_one() -> None:
    """PF35 and PF39 compare references as references."""
    assert new_in(with_setting(f"num.partitions={reference('num.partitions')}")) == []
    mixed = new_in(with_setting(f"num.partitions={reference('num.partitions')}", (1,)))
    assert [(f.code, f.severity, f.is_unverifiable) for f in mixed] == [("PF35", Severity.WARNING, True)]
    elsewhere = new_in(with_setting(f"super.users={reference('super.users')}", (1,)))
    assert "PF39" in {finding.code for finding in elsewhere}


def test_a_login_of_controllers_that_a_provider_names_is_not_read() -> None:
    spec = SPEC.with_quorum_changed(security_protocol="SASL_PLAINTEXT")
    for key in ("sasl.mechanism.controller.protocol", "sasl.enabled.mechanisms"):
        seen = secured(with_setting(f"{key}={reference(key)}"), spec)
        told = [finding for finding in found(seen, spec) if finding.code == "PF36"]
        assert {NOT_READ in finding.observed and finding.is_unverifiable for finding in told} == {True}


def test_a_broker_that_is_not_registered_blocks_where_its_connect_string_is_not_read() -> None:
    seen = left_to_a_provider("zookeeper.connect")
    assert seen.zookeeper is not None
    without = seen.model_copy(update={"zookeeper": seen.zookeeper.model_copy(update={"broker_ids": (2, 3)})})
    severities = {f.object: f.severity for f in preflight(without, SPEC, POLICY) if f.code == "PF20"}
    assert severities["broker-1 zookeeper.connect"] is Severity.BLOCKER
    assert severities["broker-2 zookeeper.connect"] is Severity.WARNING


class Asked:
    """A cluster whose brokers say what they run with, or do not."""

    def __init__(self, cluster: FakeCluster, answer: dict[int, StartedWith] | Exception) -> None:
        self.view, self._answer, self.asked = cluster.view, answer, [0]

    async def started_with(self, cluster: ClusterRecord, brokers: Sequence[int]) -> dict[int, StartedWith]:
        self.asked += brokers
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


RELEASE = "inter.broker.protocol.version"
TOLD = StartedWith(values={RELEASE: "3.9", "ssl.key.password": None}, public=frozenset({RELEASE}))


async def look(answer: dict[int, StartedWith] | Exception, line: str) -> tuple[Observation, list[int]]:
    cluster = FakeCluster()
    node = cluster.spec.brokers[0]
    driver = cluster.driver(node)
    file = await driver.read_file(node.properties_file)
    assert file is not None
    await driver.write_file(node.properties_file, text_file(f"{file.content.decode()}\n{line}\n"))
    kafka: Any = Asked(cluster, answer)
    return await observe(cluster.record(), ports_of(cluster, kafka=kafka)), kafka.asked[1:]


async def test_a_running_broker_is_asked_for_what_its_file_does_not_say() -> None:
    seen, asked = await look({1: TOLD}, f"{RELEASE}={reference(RELEASE)}\nssl.key.password=${{env:PASSWORD}}")
    disk = seen.node(1).disk
    assert disk is not None
    assert disk.file is not None
    assert (asked, disk.file.running) == ([1], {RELEASE: "3.9"})
    assert is_provided(disk.file.properties[RELEASE]), "what the file says is kept as it stands"
    assert disk.file.known[RELEASE] == "3.9"
    assert (await look({}, "num.io.threads=8"))[1] == [], "no broker is asked without a reason"


async def test_who_may_not_ask_has_not_read_it_and_who_got_no_answer_waits() -> None:
    refused, _ = await look(Permanent("not authorized"), f"{RELEASE}={reference(RELEASE)}")
    assert [part.what for part in refused.unanswered] == []
    assert refused.node(1).disk is not None
    silent, _ = await look(Transient("no answer"), f"{RELEASE}={reference(RELEASE)}")
    assert [part.what for part in silent.unanswered] == ["values that configuration providers give"]
