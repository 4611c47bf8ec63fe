"""Which listener brokers speak to each other on, how it is secured, and as whom they come: by a properties file alone."""

import re
from collections.abc import Mapping

from domain.zk_to_kraft.node_config import DEFAULT_PROTOCOL_MAP

ANONYMOUS = "User:ANONYMOUS"
"""Who comes over a listener without any authentication (KafkaPrincipal.java)."""
USERNAME = re.compile(r'\busername\s*=\s*"([^"]+)"')
NAMED_IN_JAAS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def inter_broker_listener(properties: Mapping[str, str]) -> str:
    """By `inter.broker.listener.name`, else the one that is called as `security.inter.broker.protocol`."""
    name = properties.get("inter.broker.listener.name", "").strip()
    return (name or properties.get("security.inter.broker.protocol", "").strip() or "PLAINTEXT").upper()


def protocol_of(properties: Mapping[str, str], listener: str) -> str:
    """A listener's security protocol; its own name where the map does not have it."""
    entries = properties.get("listener.security.protocol.map", DEFAULT_PROTOCOL_MAP).split(",")
    protocols = {name.strip().upper(): protocol.strip().upper() for name, _, protocol in (e.partition(":") for e in entries)}
    return protocols.get(listener.upper(), listener.upper())


def principal_of(properties: Mapping[str, str]) -> str | None:
    """As whom a node with this file comes to other brokers. `None`: a certificate, a ticket or a token says it.

    Of the login only the user's name is read.
    """
    listener = inter_broker_listener(properties)
    protocol = protocol_of(properties, listener)
    if protocol == "PLAINTEXT":
        return ANONYMOUS
    mechanism = properties.get("sasl.mechanism.inter.broker.protocol", "GSSAPI").strip().upper()
    if not protocol.startswith("SASL") or mechanism not in NAMED_IN_JAAS:
        return None
    prefix = f"listener.name.{listener.lower()}."
    login = properties.get(f"{prefix}{mechanism.lower()}.sasl.jaas.config", properties.get(f"{prefix}sasl.jaas.config", ""))
    found = USERNAME.search(login)
    return f"User:{found[1]}" if found else None
