"""Limits of connections, by which a broker keeps connections waiting, or closes them, and says nothing of it. Pure.

Kafka 3.9: KIP-402 and KIP-612 (SocketServer.ConnectionQuotas). A broker that has max.connections takes no further one until
another one ends. Where a rate is exceeded it waits before it takes the next one; a connection from an address above its rate it
takes, and closes a moment later.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

LIMITS = re.compile(
    r"(?:listener\.name\.[^.]{1,80}\.)?(connection_creation_rate|max\.connection\.creation\.rate|max\.connections(?:\.per\.ip(?:\.overrides)?)?)"
)
RATES = frozenset({"connection_creation_rate", "max.connection.creation.rate"})
FEW = 10
"""New connections in a second, below which brokers, their clients and a tool that looks may lack some: a restart makes all of
them connect anew at once."""


@dataclass(frozen=True)
class ConnectionLimit:
    """`where`: a znode, or a node's file."""

    key: str
    value: str
    where: str

    @property
    def in_words(self) -> str:
        return f"{self.key}={self.value} in {self.where}"

    @property
    def of_whom(self) -> str:
        whose = self.where.removeprefix("/config/ips/")
        if whose == self.where:
            return "at each listener" if self.key.startswith("listener.name.") else "at a broker"
        return "from any one address" if whose == "<default>" else f"from {whose}"

    @property
    def is_of_addresses(self) -> bool:
        """Also at a listener that brokers have for themselves, which the others spare (ConnectionQuotas.protectedListener)."""
        return self.where.startswith("/config/ips/")

    @property
    def is_tight(self) -> bool:
        """Of rates only: how many connections there are nobody sees here."""
        return LIMITS.sub(r"\1", self.key) in RATES and self.value.replace(".", "", 1).isdigit() and float(self.value) < FEW


def limits_in(where: str, config: Mapping[str, str]) -> Iterator[ConnectionLimit]:
    for key, value in config.items():
        if LIMITS.fullmatch(key):
            yield ConnectionLimit(key, str(value), where)


def how_to_lift(limit: ConnectionLimit) -> str:
    """Without a restart, which would make everybody connect anew."""
    whose = limit.where.rsplit("/", 1)[-1]
    kind = {"ips": "ips", "brokers": "brokers"}.get(limit.where.removeprefix("/config/").split("/")[0])
    entity = "--entity-default" if whose == "<default>" else f"--entity-name {whose}"
    if kind is None:
        change = f"--entity-type brokers --entity-default --add-config {limit.key}=NUMBER, which counts before the file"
    else:
        change = f"--entity-type {kind} {entity} --delete-config {limit.key}"
    return (
        "Raise or remove it, without a restart, which makes everybody connect anew: kafka-configs.sh --bootstrap-server … "
        f"--alter {change}. That has to connect too, and may need some tries. If somebody meant it against a client, give it "
        "to that one's address alone (--entity-type ips --entity-name ADDRESS)."
    )
