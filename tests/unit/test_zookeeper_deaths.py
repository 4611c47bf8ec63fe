"""Words of ZooKeeper's servers that do not start: as 3.8 says them, in Kafka's layout and in its own."""

import pytest

from domain.zk_to_kraft.log_lines import Told
from domain.zk_to_kraft.zookeeper_deaths import SERVER_DEATHS, death_of_server, errors_of_server

START = "[2026-11-23 08:26:35,817] INFO Reading configuration from: /etc/zookeeper/zoo.cfg (…QuorumPeerConfig)"
ERROR = "[2026-11-23 08:26:36,822] ERROR Unable to load database on disk (org.apache.zookeeper.server.quorum.QuorumPeer)"
OWN_LAYOUT = "2026-11-23 08:26:36,822 [myid:3] - ERROR [main:o.a.z.s.q.QuorumPeer@1200] - Unable to load database on disk"
END = (
    "[2026-11-23 08:26:36,828] ERROR Unexpected exception, exiting abnormally (…QuorumPeerMain)",
    "java.lang.RuntimeException: Unable to run quorum server ",
    "[2026-11-23 08:26:36,831] ERROR Exiting JVM with code 1 (org.apache.zookeeper.util.ServiceUtils)",
)
WORDS = {
    "zookeeper-heap": "java.lang.OutOfMemoryError: Java heap space",
    "zookeeper-epoch-file": "java.io.IOException: Found null in /var/lib/zookeeper/version-2/currentEpoch",
    "zookeeper-no-snapshot": "java.io.IOException: No snapshot found, but there are log entries. Something is broken!",
    "zookeeper-data-damaged": "java.io.IOException: Unreasonable length = 1952412271",
    "zookeeper-myid": "org.apache.zookeeper.server.quorum.QuorumPeerConfig$ConfigException: myid file is missing",
    "zookeeper-epoch-behind": "java.io.IOException: Leaders epoch, 4 is less than accepted epoch, 6",
    "zookeeper-port-taken": "java.net.BindException: Address already in use (Bind failed)",
    "zookeeper-directory": "DatadirException: Cannot write to data directory /var/lib/zookeeper/version-2",
}


@pytest.mark.parametrize("head", [ERROR, OWN_LAYOUT], ids=["Kafka's layout", "its own"])
@pytest.mark.parametrize("kind", SERVER_DEATHS, ids=lambda kind: kind.name)
def test_every_death_is_known(kind: Told, head: str) -> None:
    found = death_of_server((START, head, WORDS[kind.name], "\tat org.apache.zookeeper.Here.there(Here.java:1)", *END))
    assert found is not None
    assert found.told is kind
    assert found.quote in WORDS[kind.name]


@pytest.mark.parametrize(
    "words",
    [
        "The current epoch, 1, is older than the last zxid, 8589934594",
        "The accepted epoch, 1 is less than the current epoch, 2",
        "Found null in /data/version-2/acceptedEpoch",
    ],
)
def test_every_way_in_which_an_epoch_is_wrong(words: str) -> None:
    found = death_of_server((START, ERROR, f"java.io.IOException: {words}"))
    assert found is not None
    assert (found.told.name, found.quote) == ("zookeeper-epoch-file", words)


def test_what_the_start_before_died_of_is_over() -> None:
    assert death_of_server((START, ERROR, WORDS["zookeeper-epoch-file"], *END, START)) is None
    assert errors_of_server((START, ERROR, WORDS["zookeeper-epoch-file"], *END, START)) == ""


def test_what_it_lives_with_is_no_death() -> None:
    warned = ERROR.replace("ERROR Unable to load database on disk", "WARN Close of session 0x0")
    assert death_of_server((START, warned, "java.net.BindException: Address already in use")) is None


def test_an_error_that_is_not_known_is_quoted_without_those_that_say_nothing() -> None:
    lines = (START, ERROR, "java.io.IOException: the moon is in the wrong place", *END)
    assert errors_of_server(lines) == "java.io.IOException: the moon is in the wrong place"


@pytest.mark.parametrize("words", ["unable to create native thread", "Metaspace", "Direct buffer memory"])
def test_a_larger_heap_is_no_cure_for_what_is_not_in_it(words: str) -> None:
    found = death_of_server((START, ERROR, f"java.lang.OutOfMemoryError: {words}", *END))
    assert found is None or found.told.name != "zookeeper-heap"
