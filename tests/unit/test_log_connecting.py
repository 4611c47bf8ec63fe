"""Why a node that runs is turned away: by what was thrown below the line that says so, with what mends that."""

import re

import pytest

from domain.diagnosis.logs.catalogue import Told
from domain.diagnosis.logs.connecting import (
    KEYS,
    KINDS,
    LOGIN_FAILED,
    LOGIN_REASONS,
    PEER_UNREACHABLE,
    TLS_FAILED,
    fix_of_the_living,
    refusals_in,
)
from domain.diagnosis.logs.lines import Found

HANDSHAKE = (
    "[2026-11-20 03:00:05,000] ERROR [BrokerLifecycleManager id=1] Unable to register broker 1 because of an authentication "
    "exception. (kafka.server.BrokerLifecycleManager)",
    "org.apache.kafka.common.errors.SslAuthenticationException: SSL handshake failed",
)
OUT_OF_DATE = "Caused by: java.security.cert.CertificateExpiredException: NotAfter: Sun Nov 22 00:00:00 UTC 2026"
PEER = (
    "[2026-11-20 03:00:05,000] ERROR [NodeToControllerChannelManager id=1 name=registration] Connection to node 3000 "
    "(c1/10.0.0.1:9093) failed authentication due to: {} (org.apache.kafka.clients.NetworkClient)"
)
KERBEROS = PEER.format(
    "An error: (java.security.PrivilegedActionException: javax.security.sasl.SaslException: GSS initiate failed [Caused by "
    "GSSException: No valid credentials provided (Mechanism level: {})]) occurred when evaluating SASL token received from the "
    "Kafka Broker."
)
BY_SCRAM = "due to invalid credentials with SASL mechanism SCRAM-SHA-512"


@pytest.mark.parametrize(
    ("lines", "name", "words", "fix"),
    [
        ((*HANDSHAKE, OUT_OF_DATE), TLS_FAILED.name, "NotAfter: Sun Nov 22", "Renew it"),
        (HANDSHAKE, TLS_FAILED.name, "SSL handshake failed", "Compare the key and trust stores"),
        ((KERBEROS.format("Failed to find any Kerberos tgt"),), LOGIN_FAILED.name, "Kerberos tgt", "Its ticket expired"),
        (
            (KERBEROS.format("Server not found in Kerberos database (7) - LOOKING_UP_SERVER"),),
            LOGIN_FAILED.name,
            "Server not found in Kerberos database (7) - LOOKING_UP_SERVER",
            "kadmin: addprinc -randkey kafka/HOST",
        ),
        ((KERBEROS.format("Fail to create credential. (63) - No service creds"),), LOGIN_FAILED.name, "(63)", "addprinc"),
        ((KERBEROS.format("Clock skew too great (37)"),), LOGIN_FAILED.name, "Clock skew too great", "Correct the clock"),
        (
            ("ERROR x failed authentication due to: the moon is full",),
            LOGIN_FAILED.name,
            "failed",
            "Compare the SASL",
        ),
        (
            (PEER.format("Authentication failed: Invalid username or password"),),
            LOGIN_FAILED.name,
            "node 3000 (c1/10.0.0.1:9093) failed authentication due to: Authentication failed: Invalid username or password",
            "user_NAME",
        ),
        (
            (PEER.format(f"Authentication failed during authentication {BY_SCRAM}"),),
            LOGIN_FAILED.name,
            "invalid credentials with SASL mechanism SCRAM-SHA-512",
            "its password was changed",
        ),
        (
            (PEER.format("Client SASL mechanism 'SCRAM-SHA-512' not enabled in the server, enabled mechanisms are [PLAIN]"),),
            LOGIN_FAILED.name,
            "'SCRAM-SHA-512' not enabled in the server, enabled mechanisms are [PLAIN]",
            "sasl.enabled.mechanisms",
        ),
        (
            (
                HANDSHAKE[0],
                "org.apache.kafka.common.errors.IllegalSaslStateException: Unexpected handshake request with client mechanism "
                "PLAIN, enabled mechanisms are []",
            ),
            LOGIN_FAILED.name,
            "with client mechanism PLAIN, enabled mechanisms are []",
            "sasl.enabled.mechanisms",
        ),
        ((PEER.format('{"status":"invalid_token"}'),), LOGIN_FAILED.name, '"status":"invalid_token"', "JWKS"),
        ((PEER.format("SSL handshake failed"),), TLS_FAILED.name, "node 3000 (c1/10.0.0.1:9093) failed", "trust stores"),
        (
            ("INFO Unable to register broker 1 because the controller returned error INVALID_REGISTRATION",),
            "registration-refused",
            "INVALID_REGISTRATION",
            "inter.broker.listener.name",
        ),
    ],
)
def test_a_refusal_is_told_with_its_reason(lines: tuple[str, ...], name: str, words: str, fix: str) -> None:
    (found,) = refusals_in(lines)
    assert found.told.name == name
    assert words in found.quote
    assert fix in found.told.fix
    assert "start it" not in found.told.fix, "it runs"


def test_who_comes_and_is_turned_away_says_nothing_of_where_this_node_goes() -> None:
    scanned = (
        "[2026-11-20 03:00:06,000] INFO [SocketServer listenerType=BROKER, nodeId=1] Failed authentication with /10.9.9.9 "
        "(channelId=10.0.0.1:9092-10.9.9.9:5000-1) (SSL handshake failed) (org.apache.kafka.common.network.Selector)"
    )
    unreached = (
        "[2026-11-20 03:00:05,000] WARN [NodeToControllerChannelManager id=1 name=registration] Connection to node 3001 "
        "(c1/10.0.0.1:9093) could not be established. Node may not be available. (org.apache.kafka.clients.NetworkClient)"
    )
    (found,) = refusals_in((unreached, scanned))
    assert found.told is PEER_UNREACHABLE


SCANNED = (
    "[2026-11-20 03:00:06,000] WARN [SocketServer listenerType=ZK_BROKER, nodeId=1] Unexpected error from /10.0.0.9 (channelId="
    "10.0.0.1:9092-10.0.0.9:5000-1); closing connection (org.apache.kafka.common.network.Selector)",
    "javax.net.ssl.SSLHandshakeException: PKIX path building failed: "
    "sun.security.provider.certpath.SunCertPathBuilderException: unable to find valid certification path to requested target",
)


def test_of_who_comes_what_was_thrown_says_no_more_than_the_line() -> None:
    assert refusals_in(SCANNED) == ()


@pytest.mark.parametrize("client", ["Producer clientId=CruiseControlMetricsReporter", "Consumer clientId=a, groupId=null"])
@pytest.mark.parametrize(
    "said",
    [
        "WARN [{}] Connection to node -1 (localhost/127.0.0.1:9092) could not be established. Node may not be available. "
        "(org.apache.kafka.clients.NetworkClient)",
        "ERROR [{}] Connection to node -1 (localhost/127.0.0.1:9092) failed authentication due to: SSL handshake failed "
        "(org.apache.kafka.clients.NetworkClient)",
    ],
)
def test_a_client_inside_the_jvm_of_a_node_says_nothing_of_where_the_node_goes(client: str, said: str) -> None:
    assert refusals_in((f"[2026-11-20 03:00:05,000] {said.format(client)}", *HANDSHAKE[1:])) == ()
    (found,) = refusals_in((f"[2026-11-20 03:00:05,000] {said.format(client)}", *HANDSHAKE))
    assert found.told is TLS_FAILED


@pytest.mark.parametrize("kind", [*KEYS, *LOGIN_REASONS, *KINDS], ids=lambda kind: kind.name)
def test_nobody_is_told_to_start_what_runs(kind: Told) -> None:
    for fix in (kind.cure, fix_of_the_living(Found(kind, (), ""))):
        assert not re.search(r"[Tt]hen start", fix)
