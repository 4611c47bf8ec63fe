"""PF29 where there are TLS and logins: whether the controllers' listener will let everybody in, and brokers the controllers.

What each node has for that listener was looked at by itself (`ListenerSecurity`); here it is held against the others'.
"""

import ipaddress
from collections.abc import Iterator
from datetime import datetime, timedelta

from domain.checks.check import Surveyed, some, unverifiable
from domain.cluster import ControllerSpec
from domain.configuration.listener_security import inter_broker_listener, protocol_of
from domain.decisions import Finding
from domain.observed.survey import Certificate, ListenerSecurity

CODE = "PF29"
EXPECTED = "its files for the controllers' listener open, its certificate is trusted, and its login is accepted"
BY_HAND = "Try it by hand with the missing part, and accept this finding."


LEAST_VALIDITY = timedelta(days=30)
"""A certificate has to outlive the migration and its soak."""


def brokers_let_in(seen: Surveyed) -> Iterator[Finding]:
    """As Kafka's own tool found it, from each controller's host."""
    expected = "a login with the settings that it gets"
    settings = seen.controller_settings
    listener = inter_broker_listener(settings)
    if protocol_of(settings, listener) == "PLAINTEXT":
        return
    for controller in seen.spec.controllers:
        name, tried = seen.name(controller.id), seen.node(controller.id).logins
        if not tried:
            why = seen.survey.why_missing(f"logins from {name}")
            yield unverifiable(CODE, f"{listener}, from {name}", why, expected, BY_HAND)
        for login in tried:
            what = f"{login.what}, from {name}"
            if login.unknown is not None:
                yield unverifiable(CODE, what, login.unknown, expected, BY_HAND)
            elif login.problem is not None:
                fix = (
                    "Correct the keystore, truststore or login that the controller gets: the first broker's, or its "
                    "base_properties. Through this listener controllers send brokers the partitions that they lead."
                )
                yield _wrong(what, login.problem, expected, fix)


def stores_open(seen: Surveyed) -> Iterator[Finding]:
    """Each node by itself: what does not open, and what nobody could look at."""
    if seen.spec.controller_security_protocol == "PLAINTEXT":
        return
    for node in seen.spec.nodes:
        name, security = seen.name(node.id), seen.node(node.id).security
        what = f"{seen.spec.controller_listener}, {name}"
        if security is None:
            yield unverifiable(CODE, what, seen.survey.why_missing(f"security of {name}"), EXPECTED, BY_HAND)
            continue
        for problem in security.problems:
            yield _wrong(what, problem, EXPECTED, f"Correct the file that the settings of {name} name, or the settings.")
        for why in security.unknown:
            yield unverifiable(CODE, what, why, EXPECTED, BY_HAND)


def _wrong(what: str, observed: str, expected: str, fix: str) -> Finding:
    return Finding(code=CODE, object=what, observed=observed, expected=expected, fix=fix)


def _controllers(seen: Surveyed) -> Iterator[tuple[ControllerSpec, ListenerSecurity]]:
    for controller in seen.spec.controllers:
        security = seen.node(controller.id).security
        if security is not None:
            yield controller, security


def _securities(seen: Surveyed) -> dict[int, ListenerSecurity]:
    found = {node.id: seen.node(node.id).security for node in seen.spec.nodes}
    return {node_id: security for node_id, security in found.items() if security is not None}


def certificates_serve(seen: Surveyed) -> Iterator[Finding]:
    """A controller's certificate: its time, its use, its name, and that every node believes it."""
    others = _securities(seen)
    for controller, security in _controllers(seen):
        certificate, what = security.certificate, f"certificate of {seen.name(controller.id)}"
        if certificate is None:
            continue
        yield from _in_time(seen, what, certificate)
        if not certificate.can_serve:
            fix = "Have one signed for both servers and clients: a controller is both."
            yield _wrong(what, "its extended key usage is not for servers", "serverAuth", fix)
        if not is_named(controller.host, certificate.names) and any(other.checks_names for other in others.values()):
            yield _wrong(
                what,
                f"it is for {some(certificate.names) or 'no name'}",
                f"{controller.host}, the name under which others reach it",
                "Have one signed for that name, or give the controller a host name that the certificate has.",
            )
        yield from _disbelieved(seen, what, controller.id, others)


def _in_time(seen: Surveyed, what: str, certificate: Certificate) -> Iterator[Finding]:
    now = seen.observation.ended_at
    if certificate.since > now:
        fix = "Wait, or correct the clock of the machine that signs."
        yield _wrong(what, f"it is valid only from {certificate.since:%Y-%m-%d %H:%M}", "it is valid now", fix)
    yield from until_finding(CODE, what, certificate.until, now)


def _disbelieved(seen: Surveyed, what: str, shown: int, by: dict[int, ListenerSecurity]) -> Iterator[Finding]:
    names = [seen.name(n) for n, other in by.items() if other.believed is not None and shown not in other.believed]
    if names:
        yield _wrong(
            what,
            f"the truststores of {some(names)} contain no authority that signed it",
            "every node that connects to it trusts it",
            "Add its authority to their truststores, or have it signed by one that they contain.",
        )


def clients_are_believed(seen: Surveyed) -> Iterator[Finding]:
    """Where controllers ask for certificates: everybody's, by every controller that asks."""
    asking = {c.id: security for c, security in _controllers(seen) if security.client_auth in {"required", "requested"}}
    is_required = any(security.client_auth == "required" for security in asking.values())
    for node_id, security in _securities(seen).items() if asking else ():
        what, certificate = f"certificate of {seen.name(node_id)}, as a client", security.certificate
        if certificate is None:
            if is_required and not security.problems and not security.unknown:
                fix = "Give it a keystore for the controllers' listener, or do not require one."
                yield _wrong(what, "it has none", "one: ssl.client.auth=required on the controllers' listener", fix)
            continue
        if not certificate.can_call:
            fix = "Have one signed for clients, too."
            yield _wrong(what, "its extended key usage is not for clients", "clientAuth", fix)
        if seen.spec.node(node_id) not in seen.spec.controllers:
            yield from _in_time(seen, what, certificate)
        yield from _disbelieved(seen, what, node_id, asking)


def logins_are_accepted(seen: Surveyed) -> Iterator[Finding]:
    """By the same mechanism, with a user and a password that every controller has. Credentials of SCRAM: PF36."""
    if not seen.spec.controller_security_protocol.startswith("SASL"):
        return
    for node_id, security in _securities(seen).items():
        what = f"login of {seen.name(node_id)} to {seen.spec.controller_listener}"
        if security.mechanism.startswith("SCRAM"):
            continue
        deaf = [seen.name(c.id) for c, server in _controllers(seen) if security.mechanism not in server.enabled]
        if deaf:
            fix = (
                "Set sasl.mechanism.controller.protocol and sasl.enabled.mechanisms to the same mechanism on brokers and "
                "controllers."
            )
            yield _wrong(
                what, f"{security.mechanism} is not enabled on {some(deaf)}", "a mechanism that controllers offer", fix
            )
        elif security.login is None:
            why = (
                "the properties have no PLAIN login for it, or a custom class decides about it"
                if security.mechanism == "PLAIN"
                else f"a login with {security.mechanism} can be tried only when a controller runs"
            )
            yield unverifiable(CODE, what, why, "every controller accepts its login", BY_HAND)
        else:
            yield from _refused(seen, what, security)


def _refused(seen: Surveyed, what: str, client: ListenerSecurity) -> Iterator[Finding]:
    assert client.login is not None  # noqa: S101 - asked before
    servers = [(seen.name(c.id), security.login) for c, security in _controllers(seen) if security.login is not None]
    strange = [name for name, login in servers if client.login.user not in login.accepts]
    wrong = [
        name for name, login in servers if login.accepts.get(client.login.user, client.login.password) != client.login.password
    ]
    for names, why in ((strange, f"user {client.login.user} is unknown to"), (wrong, "its password differs from the one at")):
        if names:
            yield _wrong(
                what,
                f"{why} {some(names)}",
                "every controller accepts its login",
                f'Put user_{client.login.user}="…" with its password into the login of the controllers\' listener, '
                f"listener.name.{seen.spec.controller_listener.lower()}.plain.sasl.jaas.config.",
            )


def is_named(host: str, names: tuple[str, ...]) -> bool:
    """As Java compares: addresses as addresses, and an asterisk stands for the first label (RFC 2818)."""
    try:
        return str(ipaddress.ip_address(host)) in names
    except ValueError:
        return any(name.lower() in {host.lower(), f"*.{host.lower().partition('.')[2]}"} for name in names)


CHECKS_OF_TRUST = (brokers_let_in, stores_open, certificates_serve, clients_are_believed, logins_are_accepted)


def until_finding(code: str, what: str, until: datetime, now: datetime) -> Iterator[Finding]:
    """One where it ends too soon."""
    if until - now < LEAST_VALIDITY:
        yield Finding(
            code=code,
            object=what,
            observed=f"its certificate is valid until {until:%Y-%m-%d %H:%M}",
            expected=f"{LEAST_VALIDITY.days} days or more from now",
            fix="Renew it first: the migration must not end with an expired certificate.",
        )
