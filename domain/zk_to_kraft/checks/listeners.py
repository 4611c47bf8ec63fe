"""PF28, PF29, PF36: whether controllers and brokers will reach each other, and be let in."""

from collections.abc import Iterator

from domain.checks.check import (
    MOST_OBJECTS,
    NOT_READ,
    NOT_TOLD,
    READ_IT,
    Check,
    Seen,
    Surveyed,
    not_read,
    of_zookeeper,
    some,
    unverifiable,
)
from domain.checks.trust import CHECKS_OF_TRUST, until_finding
from domain.configuration.listener_security import inter_broker_listener, protocol_of
from domain.configuration.protocol_map import PROTOCOL_MAP, protocols_in
from domain.configuration.provided_values import is_provided
from domain.decisions import Finding
from domain.observed.survey import Reached, ZooKeeperSurvey

SPEAKING = ("inter.broker.listener.name", "security.inter.broker.protocol")
"""What says on which listener brokers speak to each other."""
ONE_LISTENER = "one listener with one security protocol on all brokers"


def _listener_names(seen: Seen) -> Iterator[Finding]:
    for broker in seen.spec.brokers:
        yield from not_read(seen, "PF28", broker.id, ["listeners"], f"no listener called {seen.spec.controller_listener}")
        listeners = seen.properties(broker.id).get("listeners", "")
        names = {listener.partition("://")[0].strip().upper() for listener in listeners.split(",")}
        if seen.spec.controller_listener in names:
            yield Finding(
                code="PF28",
                object=seen.name(broker.id),
                observed=f"a listener of its own is called {seen.spec.controller_listener}",
                expected="no listener of a broker has the name of the controllers' listener",
                fix="Give the controllers' listener another name (controller_listener in the cluster's specification): a "
                "KRaft broker does not start if it has a listener of that name.",
            )


def _one_inter_broker_listener(seen: Surveyed) -> Iterator[Finding]:
    """Controllers take it over from the first broker, and use it to reach all of them."""
    spoken = {}
    for broker in seen.spec.brokers:
        yield from not_read(seen, "PF28", broker.id, SPEAKING, ONE_LISTENER)
        if seen.unread(broker.id, *SPEAKING, PROTOCOL_MAP):
            continue
        settings = seen.settings(broker.id)
        listener = inter_broker_listener(settings)
        spoken[seen.name(broker.id)] = f"{listener} ({protocol_of(settings, listener)})"
    if len(set(spoken.values())) > 1:
        yield Finding(
            code="PF28",
            object="inter.broker.listener.name",
            observed=", ".join(f"{name}: {listener}" for name, listener in spoken.items()),
            expected=ONE_LISTENER,
            fix="Make them the same: a controller refuses a broker that lacks its inter-broker listener (KAFKA-16468).",
        )


def _advertised(seen: Surveyed, tree: ZooKeeperSurvey) -> Iterator[Finding]:
    if seen.unread(seen.spec.brokers[0].id, *SPEAKING, PROTOCOL_MAP):
        return
    settings = seen.controller_settings
    listener = inter_broker_listener(settings)
    protocol = protocol_of(settings, listener)
    for found in tree.registrations:
        if listener not in found.addresses or found.protocols.get(listener, protocol) != protocol:
            told = ", ".join(f"{name} ({found.protocols.get(name, '?')})" for name in found.addresses) or "nothing"
            yield Finding(
                code="PF28",
                object=f"/brokers/ids/{found.broker_id}",
                observed=f"advertises {told}",
                expected=f"{listener} ({protocol})",
                fix="Advertise it on every broker: a controller refuses a broker without it (KAFKA-16468).",
            )


def _reachable(seen: Surveyed) -> Iterator[Finding]:
    for node in seen.spec.nodes:
        name, look = seen.name(node.id), seen.node(node.id).look
        if look is None:
            yield unverifiable(
                "PF29",
                f"from {name}",
                seen.survey.why_missing(f"look at {name}"),
                "every listener that it needs can be reached from there",
                "Make python3 available to the driver on the node. Or try the connection yourself and accept this finding.",
            )
        else:
            for reached in look.reached:
                yield from _of_listener(seen, name, reached)


def _of_listener(seen: Surveyed, name: str, reached: Reached) -> Iterator[Finding]:
    if reached.problem is not None:
        yield Finding(
            code="PF29",
            object=f"{reached.what}, from {name}",
            observed=reached.problem,
            expected="the listener can be reached",
            fix="Open the network path from there (names, routes, firewalls): controllers use it to send brokers the "
            "partitions that they lead.",
        )
    elif reached.certificate_until is not None:
        yield from until_finding("PF29", reached.what, reached.certificate_until, seen.observation.ended_at)


LOGINS = ("sasl.mechanism.controller.protocol", "sasl.enabled.mechanisms")
NOT_SCRAM = "a mechanism that needs no stored credentials, such as PLAIN, OAUTHBEARER or GSSAPI"


def _scram(seen: Surveyed) -> Iterator[Finding]:
    """Credentials of SCRAM live in the metadata that a new quorum does not have yet."""
    if not seen.spec.controller_security_protocol.startswith("SASL"):
        return
    for controller in seen.spec.controllers:
        settings = {**seen.controller_settings, **seen.node(controller.id).settings}
        unread = [key for key in LOGINS if is_provided(settings.get(key, ""))]
        if unread:
            what, told = seen.name(controller.id), ", ".join(f"{key}={settings[key]}" for key in unread)
            yield unverifiable("PF36", what, f"{told}: {NOT_READ}", NOT_SCRAM, READ_IT)
            continue
        mechanism = settings.get("sasl.mechanism.controller.protocol", "GSSAPI").strip().upper()
        enabled = [one.strip().upper() for one in settings.get("sasl.enabled.mechanisms", mechanism).split(",") if one.strip()]
        if mechanism.startswith("SCRAM") or all(one.startswith("SCRAM") for one in enabled):
            yield Finding(
                code="PF36",
                object=seen.name(controller.id),
                observed=f"sasl.mechanism.controller.protocol={mechanism}, sasl.enabled.mechanisms={some(enabled)}",
                expected=NOT_SCRAM,
                fix="Choose another mechanism for the controllers' listener. With SCRAM alone the new controllers cannot "
                "log in to each other: the credentials are in the metadata, which they do not have yet.",
            )


def _security_of_map(seen: Seen) -> Iterator[Finding]:
    """A file may map the controllers' listener already: then the specification is not asked."""
    name = seen.spec.controller_listener
    for broker in seen.spec.brokers[:MOST_OBJECTS]:
        yield from not_read(
            seen, "PF28", broker.id, [PROTOCOL_MAP], f"{name}:{seen.spec.controller_security_protocol}, or none"
        )
        protocol = protocols_in(seen.properties(broker.id).get(PROTOCOL_MAP, "")).get(name)
        if protocol not in {None, seen.spec.controller_security_protocol}:
            yield Finding(
                code="PF28",
                object=seen.name(broker.id),
                observed=f"{PROTOCOL_MAP} says {name}:{protocol}",
                expected=f"{name}:{seen.spec.controller_security_protocol}, as the specification",
                fix="Make them the same, or give the controllers' listener another name.",
            )


CHECKS = (
    Check(
        code="PF28",
        holds="all brokers advertise one inter-broker listener with one security protocol, and none has a listener with "
        "the name of the controllers'",
        because="a controller refuses a broker that does not advertise it (KAFKA-16468), and a KRaft broker does not start "
        "with a listener of the controllers' name",
        source="brokers' files and `/brokers/ids`",
        unverifiable=f"ZooKeeper does not let the configured identity read; {NOT_TOLD}",
        of_look=(_listener_names, _security_of_map),
        of_survey=(_one_inter_broker_listener, of_zookeeper("PF28", _advertised)),
    ),
    Check(
        code="PF29",
        holds="every controller's host can connect and log in to each broker's inter-broker listener, and all hosts can "
        "resolve the controllers' names. Keystores for the controllers' listener open; certificates are trusted by "
        "all peers, have the right names and are valid for a month. Controllers accept the logins of all nodes",
        because="a controller that cannot connect or log in to a broker cannot update it; controllers that reject each "
        "other form no quorum",
        source="connections by a program that the driver runs once on each node; with TLS or SASL a login with Kafka's own "
        "tool from each controller's host, with the settings that the controller gets; keystores and truststores as "
        "Java's keytool opens them on each node; PLAIN logins by keyed digests, never the password",
        unverifiable="python3, Java's keytool or Kafka's tool cannot be run on a node; a login is in a JAAS file, or a "
        "password with a config provider; Java's own truststore is used; or the controllers' listener uses "
        "Kerberos or OAuth, which can be tried only with a running controller",
        of_survey=(_reachable, *CHECKS_OF_TRUST),
    ),
    Check(
        code="PF36",
        holds="the controllers' listener does not rely on SCRAM alone",
        because="its credentials are in the metadata, which a new quorum does not have yet: no controller could log in",
        source="the cluster's specification; the SASL settings that controllers get",
        unverifiable=NOT_TOLD,
        of_survey=(_scram,),
    ),
)
