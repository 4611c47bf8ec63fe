"""What `client_properties` may say: kafka-python's settings."""

from activities.ports.stores import SecretStore
from domain.cluster import KafkaClientSpec
from domain.errors import Permanent

SETTINGS = frozenset(
    {
        "security.protocol",
        "sasl.mechanism",
        "sasl.plain.username",
        "sasl.plain.password",
        "ssl.cafile",
        "ssl.certfile",
        "ssl.keyfile",
        "ssl.password",
        "ssl.crlfile",
    }
)
"""What `client_properties` may hold: kafka-python's settings with dots. SCRAM takes its user from `sasl.plain.*`, too."""

PROTOCOLS = frozenset({"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"})


def settings_of(spec: KafkaClientSpec, secrets: SecretStore) -> dict[str, str]:
    """kafka-python's settings from `key=value` lines. Names may show in an error, values never do."""
    text = "" if spec.client_properties is None else secrets.resolve(spec.client_properties).reveal()
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith(("#", "!")))
    given = {key.strip(): value.strip() for key, _, value in pairs}
    unknown = sorted(given.keys() - SETTINGS)
    if unknown:
        raise Permanent(f"{spec.client_properties}: unknown properties {unknown}; expected some of {sorted(SETTINGS)}")
    if given.get("security.protocol", "PLAINTEXT") not in PROTOCOLS:
        raise Permanent(f"{spec.client_properties}: security.protocol is none of {sorted(PROTOCOLS)}")
    return {key.replace(".", "_"): value for key, value in given.items()}
