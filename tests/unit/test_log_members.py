"""Words of ZooKeeper's servers that do not start: as 3.8 says them, in Kafka's layout and in its own."""

import pytest

from domain.diagnosis.logs.catalogue import KAFKA, Told
from domain.diagnosis.logs.members import (
    LIVING_KINDS,
    OTHER_TREE,
    SERVER_DEATHS,
    TURNS_AWAY,
    complaint_of_server,
    death_of_server,
    errors_of_server,
    other_tree_in,
    turned_away_by,
)

START = "[2026-11-23 08:26:35,817] INFO Reading configuration from: /etc/zookeeper/zoo.cfg (…QuorumPeerConfig)"
ERROR = "[2026-11-23 08:26:36,822] ERROR Unable to load database on disk (org.apache.zookeeper.server.quorum.QuorumPeer)"
OWN_LAYOUT = "2026-11-23 08:26:36,822 [myid:3] - ERROR [main:o.a.z.s.q.QuorumPeer@1200] - Unable to load database on disk"
END = (
    "[2026-11-23 08:26:36,828] ERROR Unexpected exception, exiting abnormally (…QuorumPeerMain)",
    "java.lang.RuntimeException: Unable to run quorum server ",
    "[2026-11-23 08:26:36,831] ERROR Exiting JVM with code 1 (org.apache.zookeeper.util.ServiceUtils)",
)
WORDS = {told.name: told.sample for told in SERVER_DEATHS}


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


INVALID = (
    "[2026-11-23 08:26:36,822] ERROR Invalid config, exiting abnormally (org.apache.zookeeper.server.quorum.QuorumPeerMain)"
)
GAVE_UP = INVALID.replace("Invalid config", "Unexpected exception")
OF_CONFIG = "org.apache.zookeeper.server.quorum.QuorumPeerConfig$ConfigException: Error processing /etc/zookeeper/zoo.cfg"
OF_ARGUMENT = "Caused by: java.lang.IllegalArgumentException: "
OF_SASL = (
    "java.io.IOException: Could not configure server because SASL configuration did not allow the  ZooKeeper server to "
    "authenticate itself properly: javax.security.auth.login.LoginException: Unable to obtain password from user"
)


@pytest.mark.parametrize(
    ("lines", "kind", "words"),
    [
        (
            (INVALID, OF_CONFIG, "Caused by: java.lang.IllegalArgumentException: initLimit is not set"),
            "configuration",
            "initLimit",
        ),
        ((INVALID, OF_CONFIG), "configuration", "Error processing /etc/zookeeper/zoo.cfg"),
        ((INVALID, OF_CONFIG, f"{OF_ARGUMENT}myid file is missing"), "myid", "myid file"),
        ((GAVE_UP, OF_SASL), "kerberos-keytab", "Unable to obtain password from user"),
        (
            (
                GAVE_UP,
                "org.apache.zookeeper.common.X509Exception$SSLContextException: Failed to create KeyManager",
                "Caused by: java.io.IOException: keystore password was incorrect",
            ),
            "key-store-password",
            "keystore password was incorrect",
        ),
        (
            (GAVE_UP, "java.lang.SecurityException: java.io.IOException: /etc/zookeeper/jaas.conf (No such file or directory)"),
            "missing-file",
            "/etc/zookeeper/jaas.conf",
        ),
        (
            (
                GAVE_UP,
                "java.io.IOException: Cannot boot MetricsProvider org.apache.zookeeper.metrics.prometheus."
                "PrometheusMetricsProvider",
                "Caused by: java.io.IOException: Failed to bind to /0.0.0.0:7000",
                "Caused by: java.net.BindException: Address already in use",
            ),
            "metrics-port-taken",
            "/0.0.0.0:7000",
        ),
    ],
)
def test_a_server_that_gives_up_is_told_with_what_was_thrown_there(lines: tuple[str, ...], kind: str, words: str) -> None:
    found = death_of_server((START, *lines, END[-1]))
    assert found is not None
    assert found.told.name.removeprefix("zookeeper-") == kind
    assert words in found.quote


@pytest.mark.parametrize(
    ("thrown", "kind", "where"),
    [
        (
            "java.io.IOException: No JAAS configuration section named 'Server' was found in '/etc/zookeeper/jaas.conf'.",
            "jaas-entry-missing",
            "SERVER_JVMFLAGS",
        ),
        ("java.lang.SecurityException: Configuration Error:", "jaas-malformed", "semicolon"),
        (OF_SASL, "kerberos-keytab", "JAAS file"),
        ("Caused by: KrbException: Cannot locate default realm", "kerberos-realm", "SERVER_JVMFLAGS"),
    ],
)
@pytest.mark.parametrize(
    "head", [GAVE_UP, "[2026-11-23 08:26:36,822] WARN Cannot open channel to 2 at zk2:3888 (…QuorumCnxManager)"]
)
def test_a_server_has_its_login_elsewhere_than_a_node(thrown: str, kind: str, where: str, head: str) -> None:
    found = death_of_server((START, head, thrown, END[-1]))
    assert found is None or found.told.name == kind
    fix = found.told.fix if found is not None else complaint_of_server((START, head, thrown)).fix
    assert where in fix
    assert "sasl.jaas.config" not in fix
    assert "KAFKA_OPTS" not in fix


def test_what_a_client_could_not_do_is_no_death_of_the_server() -> None:
    refused = ERROR.replace("Unable to load database on disk", "Unsuccessful handshake with session 0x0")
    assert death_of_server((START, refused, "javax.net.ssl.SSLHandshakeException: PKIX path building failed")) is None


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


FOLLOWING = "[2026-11-23 08:26:36,822] WARN Exception when following the leader (org.apache.zookeeper.server.quorum.Follower)"
FRAME = "\tat java.base/java.net.SocketInputStream.socketRead0(Native Method)"
LOOKING = "[2026-11-23 08:26:36,830] WARN PeerState set to LOOKING (org.apache.zookeeper.server.quorum.QuorumPeer)"
REFUSED_CLIENT = (
    "[2026-11-23 08:26:37,100] WARN Close of session 0x0 (org.apache.zookeeper.server.NIOServerCnxn)",
    "java.io.IOException: ZooKeeperServer not running",
)
COMPLAINTS = {told.name: tuple(told.sample.split(" | ")) for told in LIVING_KINDS}


@pytest.mark.parametrize("kind", LIVING_KINDS, ids=lambda kind: kind.name)
def test_why_a_member_that_runs_cannot_join_is_told_although_it_only_warns(kind: Told) -> None:
    head, *below = COMPLAINTS[kind.name]
    found = complaint_of_server((START, head, *below, FRAME, LOOKING, *REFUSED_CLIENT))
    assert found.fix == kind.fix
    words = {"zookeeper-id-twice": "our own ID", "zookeeper-slow-disk": "in SyncThread:3 took 12034ms"}
    assert (below[-1].partition(": ")[2] if below else words[kind.name]) in found.words
    assert death_of_server((START, head, *below)) is None, "it runs"


@pytest.mark.parametrize(
    ("at", "took", "thrown", "is_slow"),
    [
        ("08:26:20", 12034, "java.net.SocketTimeoutException: Read timed out", True),
        ("08:26:20", 12034, "java.io.EOFException", True),
        ("08:26:20", 1200, "java.net.SocketTimeoutException: Read timed out", False),
        ("07:26:20", 12034, "java.net.SocketTimeoutException: Read timed out", False),
    ],
)
def test_a_member_that_its_disk_keeps_from_the_others_needs_no_longer_limits(
    at: str, took: int, thrown: str, is_slow: bool
) -> None:
    slow = COMPLAINTS["zookeeper-slow-disk"][0].replace("08:26:20", at).replace("12034ms", f"{took}ms")
    found = complaint_of_server((START, slow, FOLLOWING, thrown, FRAME, LOOKING))
    assert ("iostat -x 1" in found.fix, f"took {took}ms" in found.words) == (is_slow, is_slow)
    assert ("raise initLimit" in found.fix) is not is_slow


@pytest.mark.parametrize(
    "later", [(FOLLOWING, "java.net.SocketTimeoutException: Read timed out"), ()], ids=["timed out", "last"]
)
@pytest.mark.parametrize("name", ["zookeeper-epoch-behind", "zookeeper-larger-than-taken", "zookeeper-id-twice"])
def test_one_slow_write_hides_nothing_that_does_not_end_by_itself(name: str, later: tuple[str, ...]) -> None:
    slow = COMPLAINTS["zookeeper-slow-disk"][0].replace("12034ms", "4123ms")
    found = complaint_of_server((START, slow, *COMPLAINTS[name], FRAME, LOOKING, *later))
    assert found.fix == KAFKA[name].fix


def test_a_leader_that_gives_up_says_why_as_if_all_were_well() -> None:
    words = "Shutdown called. For the reason Not sufficient followers synced, only synced with sids: [ [1] ]"
    gave_up = f"[2026-11-23 08:26:36,822] INFO {words} (org.apache.zookeeper.server.quorum.Leader)"
    found = complaint_of_server((START, gave_up, LOOKING))
    assert words in found.words
    assert "initLimit" in found.fix


TICK = "[2026-11-23 08:26:30,001] INFO tickTime set to {} ms (org.apache.zookeeper.server.ZooKeeperServer)"


@pytest.mark.parametrize(("tick", "is_short"), [(2, True), (2000, False)])
def test_where_ticks_are_next_to_nothing_more_of_them_are_no_cure(tick: int, is_short: bool) -> None:
    found = complaint_of_server((START, TICK.format(tick), FOLLOWING, "java.net.SocketTimeoutException: Read timed out"))
    assert (f"tickTime is {tick} ms" in found.words, "2000" in found.fix, "raise initLimit" in found.fix) == (
        is_short,
        is_short,
        not is_short,
    )


def test_a_channel_that_cannot_be_opened_is_told_with_its_exception_only() -> None:
    head = "[2026-11-23 08:26:36,822] WARN Cannot open channel to 2 at election address zk2/10.0.0.2:3888 (…QuorumCnxManager)"
    assert complaint_of_server((START, head)).words == ""
    found = complaint_of_server((START, head, "java.net.NoRouteToHostException: No route to host", FRAME, *REFUSED_CLIENT))
    assert found.words.endswith("| java.net.NoRouteToHostException: No route to host")
    assert "zk2/10.0.0.2" in found.words


@pytest.mark.parametrize(
    ("thrown", "fix"),
    [
        ("Caused by: java.security.cert.CertificateExpiredException: NotAfter: Sun Nov 01 18:18:05 UTC 2026", "Renew it"),
        ("java.net.UnknownHostException: zk2", "getent hosts"),
        ("java.nio.channels.UnresolvedAddressException", "getent hosts"),
        ("java.net.NoRouteToHostException: No route to host", "ip route get"),
        ("java.net.ConnectException: Connection refused", ""),
    ],
)
@pytest.mark.parametrize(
    "head",
    [
        "WARN Cannot open channel to 2 at election address zk2/10.0.0.2:3888 (…QuorumCnxManager)",
        "ERROR Failed connect to zk2/10.0.0.2:2888 (org.apache.zookeeper.server.quorum.Learner)",
        "WARN Unexpected exception, tries=3, remaining init limit=9880, connecting to zk2/10.0.0.2:2888 (…Learner)",
    ],
)
def test_what_keeps_a_member_from_the_others_is_told_with_its_cure(head: str, thrown: str, fix: str) -> None:
    found = complaint_of_server((START, f"[2026-11-23 08:26:36,822] {head}", thrown, FRAME, LOOKING, *REFUSED_CLIENT))
    assert thrown.split(": ")[-1] in found.words
    assert "zk2/10.0.0.2:" in found.words
    assert fix in found.fix
    assert "hen start " not in found.fix, "it runs"
    assert bool(fix) is bool(found.fix)


def test_a_client_s_certificate_is_no_reason_for_a_member_without_a_quorum() -> None:
    head = "[2026-11-23 08:26:36,822] WARN Exception caught (org.apache.zookeeper.server.NettyServerCnxnFactory)"
    expired = "Caused by: java.security.cert.CertificateExpiredException: NotAfter: Sun Nov 01 18:18:05 UTC 2026"
    assert complaint_of_server((START, head, expired, FRAME)).fix == ""


def test_what_a_member_complained_of_before_it_served_is_over() -> None:
    served = "[2026-11-23 08:26:40,830] INFO Peer state changed: following - broadcast (…QuorumPeer)"
    assert (
        complaint_of_server((START, FOLLOWING, "java.net.SocketTimeoutException: Read timed out", served, LOOKING)).words == ""
    )


@pytest.mark.parametrize(
    "words",
    [
        "WARN Got zxid 0x100000001 expected 0x1 (org.apache.zookeeper.server.quorum.Learner)",
        "WARN Too busy to snap, skipping (org.apache.zookeeper.server.SyncRequestProcessor)",
        "WARN CancelledKeyException causing close of session: 0x10a0ef0 (org.apache.zookeeper.server.NIOServerCnxn)",
        "WARN maxCnxns is not configured, using default value 0. (org.apache.zookeeper.server.ServerCnxnFactory)",
        "WARN ******* GOODBYE sid:1 /127.0.0.1:4711 ******** (org.apache.zookeeper.server.quorum.LearnerHandler)",
    ],
)
def test_what_every_server_says_now_and_then_is_no_complaint(words: str) -> None:
    assert complaint_of_server((START, f"[2026-11-23 08:26:36,822] {words}")).words == ""


@pytest.mark.parametrize("kind", TURNS_AWAY, ids=lambda kind: kind.name)
def test_whom_a_member_that_serves_turns_away_it_says(kind: Told) -> None:
    said = f"[2026-11-23 08:26:36,822] {kind.sample}"
    found = turned_away_by((START, said, LOOKING))
    assert found is not None
    assert found.told is kind
    assert found.quote in said
    assert turned_away_by((START, said, LOOKING.replace("08:26:36", "08:36:36"))) is None, "long over"
    assert turned_away_by((START, said, START)) is None, "said by the server before"


OF_TREE = "(org.apache.zookeeper.server.DataTree)"
FIRST_HEARD = "[2026-11-24 04:34:23,892] WARN Got zxid 0x200000001 expected 0x1 (org.apache.zookeeper.server.quorum.Learner)"
DIFFERS = f"[2026-11-24 04:34:23,896] WARN Message:Digests are not matching. Value is Zxid. Value:8589934593 {OF_TREE}"
DIFFERS_FIRST = (
    "[2026-11-24 04:34:23,899] ERROR First digest mismatch on txn: 72059440496705536,0,8589934593,1795494863891,-10",
    ", 5000",
    ", expected digest is 2,461931170891",
    f", actual digest is 563687502243,  {OF_TREE}",
)
LATER_HEARD = FIRST_HEARD.replace("0x200000001", "0x300000001")
LATER_LEADS = (
    "[2026-11-24 04:35:36,551] INFO Have quorum of supporters, sids: [[1, 2]]; starting up and setting last processed zxid: "
    "0x300000000 (org.apache.zookeeper.server.quorum.Leader)"
)
STILL = "[2026-11-24 04:35:36,601] WARN [552 times] Message: Digests are not matching. Value is Zxid. Last value:{} " + OF_TREE
OBSERVING = "[2026-11-24 04:35:36,551] INFO Peer state changed: observing - broadcast (…quorum.QuorumPeer)"
OF_BEFORE, OF_NOW = STILL.format(8589935145), STILL.format(0x300000007)


@pytest.mark.parametrize(
    ("lines", "is_told"),
    [
        ((FIRST_HEARD, DIFFERS), True),
        ((FIRST_HEARD, *DIFFERS_FIRST), True),
        ((DIFFERS,), True),
        ((FIRST_HEARD, DIFFERS, *DIFFERS_FIRST, OF_BEFORE), True),
        ((FIRST_HEARD, DIFFERS, LATER_HEARD, OF_NOW), True),
        ((FIRST_HEARD, DIFFERS, LATER_HEARD, OF_BEFORE), False),
        ((FIRST_HEARD, DIFFERS, LATER_LEADS, OF_BEFORE), False),
        ((OBSERVING, DIFFERS), True),
        ((OBSERVING, DIFFERS, OBSERVING), False),
        ((FIRST_HEARD, DIFFERS, START), False),
        ((FIRST_HEARD,), False),
    ],
    ids=[
        "follows",
        "first",
        "far up",
        "goes on",
        "another leader too",
        "mended",
        "leads itself",
        "observes",
        "observes another",
        "started anew",
        "alike",
    ],
)
def test_a_member_with_another_tree_than_its_leader_says_so_as_long_as_it_follows_that_one(
    lines: tuple[str, ...], *, is_told: bool
) -> None:
    found = other_tree_in((START, *lines))
    assert (found is not None) is is_told
    assert found is None or (found.told is OTHER_TREE and "igest" in found.quote)
