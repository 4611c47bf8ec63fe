"""Values of properties that a configuration provider gives (KIP-297), such as `${file:/etc/kafka/x.properties:key}`.

Kafka reads them as it starts, on its node. A file has only where they lie: they are never resolved outside the node, and two of
them are compared as they stand.
"""

import re
from collections.abc import Mapping

REFERENCE = re.compile(r"\$\{[\w.-]+:(?!-)[^${}\s]*\}")
"""Where a value lies, and not what it is. `${NAME:-value}` is none: a shell's default holds the value itself."""


def is_provided(value: str) -> bool:
    """Whether a configuration provider gives the value, or a part of it."""
    return REFERENCE.search(value) is not None


def provided(properties: Mapping[str, str]) -> frozenset[str]:
    """Keys whose values a configuration provider gives."""
    return frozenset(key for key, value in properties.items() if is_provided(value))
