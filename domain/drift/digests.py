"""Secrets are compared by keyed digests, made where they are read: no row, artefact or log ever has the secret itself."""

import hashlib
import hmac
from dataclasses import dataclass

DIGEST_BYTES = 16


@dataclass(frozen=True)
class Digester:
    """The same key for both sides of a comparison, and for a baseline that is compared later. `key`: 16 bytes or more."""

    key: bytes

    def __repr__(self) -> str:
        return "Digester(***)"

    def digest(self, purpose: str, secret: bytes) -> str:
        """Hexadecimal. `purpose` keeps equal secrets in different places from looking equal."""
        told = hmac.new(self.key, purpose.encode() + b"\0" + secret, hashlib.sha256)
        return told.digest()[:DIGEST_BYTES].hex()
