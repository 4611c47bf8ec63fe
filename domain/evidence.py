"""The hash of evidence: what an approval binds to is the same for all who approve the same."""

import hashlib
import json
from typing import Any


def hash_of(data: dict[str, Any]) -> str:
    """Sha256 (hex) of canonical JSON: the same for equal data, in whatever order it was built."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":"), default=str).encode()).hexdigest()
