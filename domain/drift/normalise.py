"""One spelling for what ZooKeeper and KRaft write differently, so that a comparison needs no exceptions.

Both readers call these, so that what is equal looks equal. Sources: kafka.zk.ZkData, kafka.zk.migration.* and
org.apache.kafka.common.utils.Sanitizer of Kafka 3.9; the enumerations of org.apache.kafka.common.{acl,resource}.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, unquote_plus

from domain.drift.digests import Digester
from domain.redaction import is_harmless

DEFAULT_ENTITY = "<default>"
"""How a znode's name says `the default of all`. A user who is really called so is escaped in paths."""
USER, CLIENT_ID, IP = "user", "client-id", "ip"
"""Types of a quota's entity, as KRaft's records spell them."""

RESOURCE_TYPES = {2: "Topic", 3: "Group", 4: "Cluster", 5: "TransactionalId", 6: "DelegationToken", 7: "User"}
"""Of an ACL: codes in records, names in paths."""
PATTERNS = {3: "LITERAL", 4: "PREFIXED"}
OPERATIONS = {
    2: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}
PERMISSIONS = {2: "DENY", 3: "ALLOW"}
SCRAM_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}

_OPERATION_OF = {name.replace("_", ""): name for name in OPERATIONS.values()}
_JAVA_DOUBLE = re.compile(r"\s*([+-]?)(NaN|Infinity|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)[fFdD]?\s*", re.ASCII)
_DIGITS = re.compile(r"[0-9]{1,19}")
_UUID = re.compile(r"[\w-]{22}(==)?", re.ASCII)
_ENDPOINT = re.compile(r"([^:/]+)://(?:\[(.*)\]|(.*)):(-?\d+)")
_SECRET_PART = re.compile(
    r"password|passwd|secret|jaas|credential|private|passphrase|master\.key"
    r"|ssl\.keystore\.key$|ssl\.keystore\.certificate\.chain$|ssl\.truststore\.certificates$",
    re.IGNORECASE,
)


def desanitised(name: str) -> str:
    """The name that a znode's name stands for. `Sanitizer` is URL encoding, with `%2A` for an asterisk."""
    return unquote_plus(name)


def sanitised(name: str) -> str:
    """What Kafka calls the znode of this name."""
    return quote(name, safe="").replace("~", "%7E")


def entity_name(znode: str) -> str | None:
    """The name of a user or client; `None` for the default of all."""
    return None if znode == DEFAULT_ENTITY else desanitised(znode)


def config_resource(znode: str) -> str:
    """The name of a config resource; empty for the default of all, as in KRaft's records."""
    return entity_name(znode) or ""


def entity_text(parts: Iterable[tuple[str, str | None]]) -> str:
    """A quota's entity, e.g. `[["client-id","app"],["user",null]]`: sorted by type, null for the default of all."""
    return _canonical(sorted(([kind, name] for kind, name in parts), key=lambda part: str(part[0])))


def quota_value(text: str) -> float | None:
    """What Java's `Double.valueOf` takes, its hexadecimal form left out; `None` for what is no number."""
    found = _JAVA_DOUBLE.fullmatch(text)
    return None if found is None else float(found[1] + found[2])


def operation_name(znode: str) -> str:
    """`DescribeConfigs` as `DESCRIBE_CONFIGS`. What Kafka does not know either is `UNKNOWN`: it reads it so."""
    return _OPERATION_OF.get(znode.upper().replace("_", ""), "UNKNOWN")


def permission_name(znode: str) -> str:
    return znode.upper() if znode.upper() in PERMISSIONS.values() else "UNKNOWN"


def uuid_bytes(text: str) -> bytes:
    """A topic's id, from 22 characters of base 64 for URLs. `ValueError` where it is none."""
    if _UUID.fullmatch(text) is None:
        raise ValueError("not a UUID as 22 characters of base 64 for URLs")
    return base64.urlsafe_b64decode(text[:22] + "==")


def uuid_text(id_: bytes) -> str:
    return base64.urlsafe_b64encode(id_).decode().rstrip("=")


def endpoint_text(listener: str, host: str | None, port: int) -> str:
    """`LISTENER://host:port`, an IPv6 address in brackets, as Kafka's brokers register themselves in ZooKeeper."""
    name = host or ""
    return f"{listener.upper()}://{f'[{name}]' if ':' in name else name}:{port}"


def endpoints_text(endpoints: Iterable[tuple[str, str | None, int]]) -> str:
    """A JSON array, sorted, of listener, host and port."""
    return set_text(endpoint_text(*endpoint) for endpoint in endpoints)


def endpoint_parts(text: str) -> tuple[str, str, int]:
    """Listener, host and port of `LISTENER://host:port`. `ValueError` where it is none."""
    found = _ENDPOINT.fullmatch(text)
    if found is None:
        raise ValueError("not of the form LISTENER://host:port")
    return found[1], found[3] if found[2] is None else found[2], int(found[4])


def set_text(values: Iterable[str]) -> str:
    """A set of texts as a JSON array, sorted, without repetitions: of endpoints, of a token's renewers."""
    return _canonical(sorted(set(values)))


def scram_parts(text: str) -> dict[str, bytes]:
    """`salt=…,stored_key=…,server_key=…,iterations=n`, decoded; iterations as digits. `ValueError` without what is in it."""
    parts = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    if parts.keys() != {"salt", "stored_key", "server_key", "iterations"} or not _DIGITS.fullmatch(parts["iterations"]):
        raise ValueError("not the four parts of a SCRAM credential")
    iterations = parts.pop("iterations").encode()
    try:
        return {name: base64.b64decode(value, validate=True) for name, value in parts.items()} | {"iterations": iterations}
    except binascii.Error:
        raise ValueError("a part of the SCRAM credential is no base 64") from None


def is_secret_config(name: str) -> bool:
    """Kafka's PASSWORD configs, with the prefix of a listener or without, and whatever is named like a secret."""
    return _SECRET_PART.search(name) is not None


def is_secret_broker_config(name: str) -> bool:
    """All but those that are known to be none."""
    return is_secret_config(name) or not is_harmless(name)


def broker_config(digester: Digester, broker: str, name: str, value: str | None) -> tuple[str | None, str | None]:
    """Fields `value` and `digest` of a broker's config. `value` `None`: a secret that cannot be read, so unverifiable."""
    if not is_secret_broker_config(name):
        return value, ""
    return None, None if value is None else digester.digest(_canonical(["broker-config", broker, name]), value.encode())


def topic_config(digester: Digester, topic: str, name: str, value: str) -> str:
    """Field `value` of a topic's config. Kafka has no secret ones; what is named like one is digested all the same."""
    if not is_secret_config(name):
        return value
    return "keyed digest " + digester.digest(_canonical(["topic-config", topic, name]), value.encode())


def scram_digest(digester: Digester, user: str, mechanism: str, part: str, value: bytes) -> str:
    """Of `salt`, `stored_key` or `server_key`."""
    return digester.digest(_canonical(["scram", user, mechanism, part]), value)


def token_key(digester: Digester, token_id: str) -> str:
    """The key of a delegation token's row."""
    return digester.digest("token", token_id.encode())


def _canonical(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
