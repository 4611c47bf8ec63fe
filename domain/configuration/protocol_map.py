"""`listener.security.protocol.map`, read and written as Kafka does. Pure.

Empty entries are dropped at the end, and refused anywhere else. Neither blanks around entries, names and protocols count, nor
case. A name ends at the last colon. The last of two entries with one name counts.

Source: org.apache.kafka.server.util.Csv.parseCsvMap and KafkaConfig.listenerSecurityProtocolMap of 3.9.2, run on each shape.
"""

from collections.abc import Collection

DEFAULT_PROTOCOL_MAP = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
"""Where a file has none (SocketServerConfigs.java)."""

PROTOCOL_MAP = "listener.security.protocol.map"


def protocols_in(text: str) -> dict[str, str]:
    """Protocol by listener, both in capital letters."""
    return {_name(entry): entry.rpartition(":")[2].strip().upper() for entry in _entries(text) if ":" in entry}


def with_listener(text: str, listener: str, protocol: str) -> str:
    """The map with one more entry at its end; as it is where it has that listener."""
    if listener.upper() in protocols_in(text):
        return text
    kept = text.rstrip(", \t\r\n\f")
    return f"{kept},{listener}:{protocol}" if kept else f"{listener}:{protocol}"


def without_listeners(text: str, listeners: Collection[str]) -> str:
    """The map without these listeners, given in capital letters; all else stays as it is."""
    return ",".join(entry for entry in text.split(",") if _name(entry) not in listeners).strip()


def merged_map(first: str, second: str) -> str:
    """Two maps in one; where both name a listener the first one's protocol stands."""
    own, theirs = ([entry for entry in _entries(text) if entry] for text in (first, second))
    names = {_name(entry) for entry in own}
    return ",".join([*own, *(entry for entry in theirs if _name(entry) not in names)])


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",")]


def _name(entry: str) -> str:
    return entry.rpartition(":")[0].strip().upper()
