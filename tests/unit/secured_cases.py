"""What may be wrong with the controllers' listener, where there are TLS and logins: each with the code, and what is told."""

from datetime import timedelta

from domain.cluster import ClusterSpec
from domain.observed.observation import Observation
from domain.observed.survey import LoginTried, PlainLogin
from tests.unit.conftest import NOW
from tests.unit.surveys import certificate, with_node_survey, with_security

BROKERS, CONTROLLERS = (1, 2, 3), (3001, 3002, 3003)
Case = tuple[Observation, ClusterSpec, str, str]


def login(digest: str, *accepted: str) -> PlainLogin:
    return PlainLogin(user="kafka", password=digest, accepts=dict.fromkeys(accepted, digest))


def secured_cases(seen: Observation, logged_in: Observation, spec: ClusterSpec) -> dict[str, Case]:
    """`seen`: in order with `spec`; `logged_in`: brokers have a login, and the controllers' listener is plain."""
    plain = spec.with_quorum_changed(security_protocol="PLAINTEXT")
    tls = spec.with_quorum_changed(security_protocol="SSL")
    subjects = with_security(seen, (*BROKERS, *CONTROLLERS), principal="User:CN=broker-1", client_auth="required")

    def of_certificate(told: str, **parts: object) -> Case:
        return with_security(seen, (3002,), certificate=certificate(spec, 3002, **parts)), spec, "PF29", told

    def of_login(told: str, node: int, login: PlainLogin | None) -> Case:
        return with_security(seen, (node,), login=login), spec, "PF29", told

    return {
        "a login that brokers refuse": (
            with_node_survey(logged_in, (3001,), logins=(LoginTried(what="INTERNAL of broker-2", problem="refused"),)),
            plain,
            "PF29",
            "INTERNAL of broker-2, from controller-3001: refused",
        ),
        "a login that could not be tried": (
            with_node_survey(logged_in, (3001,), logins=(LoginTried(what="INTERNAL", unknown="in a JAAS file"),)),
            plain,
            "PF29",
            "in a JAAS file",
        ),
        "a login that nobody has tried": (with_node_survey(logged_in, (3001,), logins=()), plain, "PF29", "not looked at"),
        "a keystore that does not open": (
            with_security(seen, (3001,), problems=("wrong password",), certificate=None),
            spec,
            "PF29",
            "CONTROLLER, controller-3001: wrong password",
        ),
        "a truststore that is Java's": (
            with_security(seen, (2,), unknown=("not looked at",), believed=None),
            spec,
            "PF29",
            "CONTROLLER, broker-2: not looked at",
        ),
        "a certificate that ends soon": of_certificate("valid until", until=NOW + timedelta(days=3)),
        "a certificate of tomorrow": of_certificate("valid only from", since=NOW + timedelta(days=1)),
        "a certificate of clients only": of_certificate("not for servers", can_serve=False),
        "a certificate of another host": of_certificate("it is for 10.9.9.9", names=("10.9.9.9",)),
        "a certificate that brokers do not believe": (
            with_security(seen, BROKERS, believed=(3001, 3003)),
            spec,
            "PF29",
            "certificate of controller-3002: the truststores of broker-1, broker-2, broker-3",
        ),
        "a client's that a controller does not believe": (
            with_security(subjects, (3003,), believed=CONTROLLERS),
            tls,
            "PF29",
            "certificate of broker-1, as a client: the truststores of controller-3003",
        ),
        "a client without a certificate": (with_security(subjects, (2,), certificate=None), tls, "PF29", "it has none"),
        "a certificate of servers only": (
            with_security(subjects, (3002,), certificate=certificate(spec, 3002, can_call=False)),
            tls,
            "PF29",
            "not for clients",
        ),
        "a broker's that has expired": (
            with_security(subjects, (2,), certificate=certificate(spec, 2, until=NOW)),
            tls,
            "PF29",
            "certificate of broker-2, as a client: its certificate is valid until",
        ),
        "a user that a controller does not know": of_login("kafka is unknown to controller-3002", 3002, login("one", "other")),
        "a password that differs": of_login("differs from the one at controller-3001", 2, login("two")),
        "a login in a JAAS file": of_login("have no PLAIN login", 2, None),
        "a ticket": (
            with_security(seen, (*BROKERS, *CONTROLLERS), mechanism="GSSAPI", enabled=("GSSAPI",), login=None),
            spec,
            "PF29",
            "only when a controller runs",
        ),
        "a mechanism that is not offered": (
            with_security(seen, (3001,), enabled=("GSSAPI",)),
            spec,
            "PF29",
            "PLAIN is not enabled on controller-3001",
        ),
        "a user that is none of the super users": (
            with_security(seen, BROKERS, principal="User:ann"),
            spec,
            "PF30",
            "broker-1, broker-2, broker-3 at CONTROLLER: User:ann is not among",
        ),
        "a principal that nobody can tell": (
            with_security(subjects, (2,), principal=None),
            tls,
            "PF30",
            "broker-2 at CONTROLLER",
        ),
    }
