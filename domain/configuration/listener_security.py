"""Which listener brokers speak to each other on, how it is secured, and as whom they come: by a properties file alone."""

import re
from collections.abc import Mapping

from domain.configuration.protocol_map import DEFAULT_PROTOCOL_MAP, PROTOCOL_MAP, protocols_in
from domain.observed.survey import ListenerSecurity

ANONYMOUS = "User:ANONYMOUS"
"""Who comes over a listener without any authentication (KafkaPrincipal.java)."""
USERNAME = re.compile(r'\busername\s*=\s*"([^"]+)"')
OPTION = re.compile(r'([\w.-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))')
"""Of a login module in `sasl.jaas.config` (JaasConfig.java)."""
BY_NUMBER = re.compile(r"\d+(\.\d+){2,}=")
"""A part of a name that has no name of its own, and that Java writes otherwise."""
LOGIN = "sasl.jaas.config"
NAMED_IN_JAAS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
LISTENERS = ("advertised.listeners", "listeners")


def inter_broker_listener(properties: Mapping[str, str]) -> str:
    """By `inter.broker.listener.name`, else the one that is called as `security.inter.broker.protocol`."""
    name = properties.get("inter.broker.listener.name", "").strip()
    return (name or properties.get("security.inter.broker.protocol", "").strip() or "PLAINTEXT").upper()


def protocol_of(properties: Mapping[str, str], listener: str) -> str:
    """A listener's security protocol; its own name where the map does not have it."""
    return protocols_in(properties.get(PROTOCOL_MAP, DEFAULT_PROTOCOL_MAP)).get(listener.upper(), listener.upper())


def inter_broker_mechanism(properties: Mapping[str, str]) -> str:
    """As which brokers log in to each other."""
    return properties.get("sasl.mechanism.inter.broker.protocol", "GSSAPI").strip().upper()


def principal_of(properties: Mapping[str, str]) -> str | None:
    """As whom a node with this file comes to other brokers. `None`: a certificate, a ticket or a token says it.

    Of the login only the user's name is read.
    """
    listener = inter_broker_listener(properties)
    protocol = protocol_of(properties, listener)
    if protocol == "PLAINTEXT":
        return ANONYMOUS
    mechanism = inter_broker_mechanism(properties)
    if not protocol.startswith("SASL") or mechanism not in NAMED_IN_JAAS:
        return None
    prefix = f"listener.name.{listener.lower()}."
    login = properties.get(f"{prefix}{mechanism.lower()}.sasl.jaas.config", properties.get(f"{prefix}sasl.jaas.config", ""))
    found = USERNAME.search(login)
    return f"User:{found[1]}" if found else None


def settings_of(properties: Mapping[str, str], listener: str, mechanism: str) -> dict[str, str]:
    """`ssl.` and `sasl.` settings as Kafka reads them for one listener: its own prefix wins, and then the mechanism's.

    A login without the mechanism in its name is ignored, as a server does (JaasContext.java); and so is with SASL a wish for
    certificates of clients that is not the listener's own (KIP-684).
    """
    prefix, of_mechanism = f"listener.name.{listener.lower()}.", f"{mechanism.lower()}."
    common = {key: value for key, value in properties.items() if key.startswith(("ssl.", "sasl."))}
    own = {key[len(prefix) :]: value for key, value in properties.items() if key.startswith(prefix)}
    if protocol_of(properties, listener).startswith("SASL"):
        common.pop("ssl.client.auth", None)
    found = {key: value for key, value in (common | own).items() if key != LOGIN}
    return found | {key[len(of_mechanism) :]: value for key, value in found.items() if key.startswith(of_mechanism)}


def options_of(login: str) -> dict[str, str]:
    """What a login module is given in `sasl.jaas.config`."""
    return {
        name: re.sub(r"\\(.)", r"\1", quoted) if quoted or not plain else plain for name, quoted, plain in OPTION.findall(login)
    }


def principal_at(protocol: str, properties: Mapping[str, str], found: ListenerSecurity) -> str | None:
    """As whom a node comes to the controllers' listener. `None`: a file does not tell."""
    if properties.get("principal.builder.class", "").strip():
        return None
    if protocol.startswith("SASL"):
        return f"User:{found.login.user}" if found.login is not None else None
    rules = properties.get("ssl.principal.mapping.rules", "DEFAULT").strip()
    if found.certificate is None or rules != "DEFAULT" or BY_NUMBER.search(found.certificate.subject):
        return None
    return f"User:{found.certificate.subject}"
