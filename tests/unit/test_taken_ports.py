"""Who has the ports that a process could not bind: found by its log, and never to be ended where it belongs to the cluster."""

from dataclasses import replace
from typing import Any

import pytest

from domain.cluster import ZooKeeperMemberSpec
from domain.diagnosis.causes.hints import Hints
from domain.diagnosis.causes.with_signs import ports_not_bound, signs_of_holders
from domain.diagnosis.machines.vital_signs import PortHolder, Sign
from domain.policy import MigrationPolicy
from domain.zk_to_kraft.blockers import blockers_of
from domain.zk_to_kraft.causes.case import case_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from tests.unit.conftest import Point, cluster_spec, observation, signs_of, stopped, with_part

TAKEN = "java.net.BindException: Address already in use"
BINDING = "[2026-11-23 08:26:36,822] INFO binding to port /0.0.0.0:2181 (org.apache.zookeeper.server.NIOServerCnxnFactory)"
BROKER = PortHolder(port=3888, pid=812, command="java kafka.Kafka /etc/kafka/1.properties", data_dir=None, peer=None)


@pytest.mark.parametrize(
    ("lines", "ports"),
    [
        ((BINDING,), ()),
        ((BINDING, TAKEN), (2181,)),
        ((BINDING, TAKEN, "[x] INFO Reading configuration from: /etc/zoo.cfg (…QuorumPeerConfig)", BINDING), ()),
        ((BINDING, "[x] ERROR Exception while listening to address zk1/10.0.0.1:3888 (…QuorumCnxManager)", TAKEN), (3888,)),
        (("[x] ERROR Couldn't bind to /[0:0:0:0:0:0:0:0]:2888 (…Leader)", TAKEN), (2888,)),
        (
            ("org.apache.kafka.common.KafkaException: Socket server failed to bind to 0.0.0.0:9092: Address already in use.",),
            (9092,),
        ),
        (("Error: JMX connector server communication error: Port already in use: 9999",), (9999,)),
    ],
)
def test_the_ports_that_a_log_complains_of(lines: tuple[str, ...], ports: tuple[int, ...]) -> None:
    assert ports_not_bound(lines) == ports


def signs(name: str, holder: PortHolder, **hints: Any) -> list[Sign]:
    spec = cluster_spec()
    members = tuple(ZooKeeperMemberSpec(host="127.0.0.1", port=port, data_dir=f"/zk/{port}") for port in (2181, 2182, 2183))
    spec = spec.model_copy(update={"zookeeper": spec.ensemble.model_copy(update={"members": members})})
    policy, seen = MigrationPolicy(), observation(Point.DUAL_WRITE)
    looked = replace(case_of(seen, spec, policy), hints=Hints(holders={name: (holder,)}, **hints))
    return list(signs_of_holders(looked, name))


def of(**changes: object) -> PortHolder:
    return BROKER.model_copy(update=changes)


def test_a_member_that_has_the_port_is_left_as_it_is() -> None:
    (sign,) = signs("zookeeper 127.0.0.1:2181", of(command="java org.apache.zookeeper.server.X /2.cfg", data_dir="/zk/2182"))
    assert sign.observed.startswith("zookeeper 127.0.0.1:2182 has port 3888, by process 812 (java org.apache")
    assert "Leave zookeeper 127.0.0.1:2182 as it is" in sign.fix
    assert "myid" in sign.fix


def test_a_node_that_has_the_port_of_another_is_left_as_it_is() -> None:
    spec = cluster_spec()
    other = spec.brokers[1].model_copy(update={"host": spec.brokers[0].host})
    name = spec.node_name(spec.brokers[0].id)
    (own,) = signs(name, of(command=f"java kafka.Kafka {spec.brokers[0].properties_file}"))
    assert ("an earlier process of its own" in own.observed, "kill 812" in own.fix) == (True, True)
    (sign,) = signs(name, of(command=f"java kafka.Kafka {other.properties_file}"))
    is_one_host = spec.brokers[0].host == spec.brokers[1].host
    assert (f"Leave {spec.node_name(other.id)} as it is" in sign.fix) is is_one_host


@pytest.mark.parametrize("starter", ["process 25 (monit)", ""])
def test_who_runs_a_node_that_nobody_owns_is_told_with_who_has_started_it(starter: str) -> None:
    """A supervisor starts it again, whoever ends it: first that is to be switched off."""
    spec, policy = cluster_spec(), ZkToKraftPolicy()
    seen = with_part(observation(Point.DUAL_WRITE), 2, process=stopped("77@1"), metrics=None, is_unowned=True)
    holder = of(command=f"java kafka.Kafka {spec.brokers[1].properties_file}", started_by=starter)
    looked = replace(case_of(seen, spec, policy), hints=Hints(holders={"broker-2": (holder,)}))
    (entry,) = blockers_of(looked)[0]
    assert (entry.code, entry.object) == ("part-unknown", "broker-2")
    assert "process 812 (java kafka.Kafka" in entry.observed
    assert ("started by process 25 (monit)" in entry.observed) is bool(starter)
    assert entry.fix.startswith("First switch off process 25 (monit)") is bool(starter)
    assert "switch off systemd" not in entry.fix
    assert "supervisor" in entry.fix
    assert "an earlier process of its own" not in entry.observed


def test_a_node_whose_pid_file_somebody_has_taken_away_is_not_to_be_stopped() -> None:
    """The process is the one that was started last as the specification says."""
    spec, policy = cluster_spec(), ZkToKraftPolicy()
    seen = with_part(observation(Point.DUAL_WRITE), 2, process=stopped("812@1"), metrics=None, is_unowned=True)
    holder = of(command=f"java kafka.Kafka {spec.brokers[1].properties_file}")
    looked = replace(case_of(seen, spec, policy), hints=Hints(holders={"broker-2": (holder,)}))
    (entry,) = blockers_of(looked)[0]
    assert "its earlier process answers there, by process 812" in entry.observed
    assert entry.fix.startswith(f"Write its number back: `echo 812 > {spec.brokers[1].driver.service.pid_file}`. Stop nothing.")
    assert "background" not in entry.fix


def test_a_connection_that_has_the_port_is_no_listener() -> None:
    (sign,) = signs("broker-1", of(command="curl", peer="10.0.0.9:443"))
    assert "local end of a connection to 10.0.0.9:443, by process 812 (curl): no process listens there" in sign.observed
    assert "ip_local_reserved_ports=3888" in sign.fix


def test_who_is_not_of_the_cluster_is_named_and_no_more() -> None:
    (sign,) = signs("broker-1", of(command="nginx"))
    assert sign == Sign("port 3888 is taken, by process 812 (nginx)", "")
    (unknown,) = signs("broker-1", of(command="", pid=None))
    assert unknown.observed == "port 3888 is taken"


def test_a_member_that_runs_is_not_to_be_ended_for_a_port_that_it_has_itself() -> None:
    name, itself = "zookeeper 127.0.0.1:2181", of(command="java org.apache.zookeeper.server.X /1.cfg", data_dir="/zk/2181")
    (earlier,) = signs(name, itself)
    assert "kill 812" in earlier.fix
    assert signs(name, itself, signs={name: signs_of(elsewhere=(812, ("0.0.0.0:2182",)))}) == []
