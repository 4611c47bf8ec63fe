"""Certificates as nodes show and believe them: what is read of each, and whose truststore leads to whose certificate.

Java's own rules are stricter in places (PKIX, RFC 5280). What is refused here, Java refuses too.
"""

import re
from collections.abc import Iterator, Sequence

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from domain.observed.survey import Certificate

PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
MOST_LINKS = 10

Chain = Sequence[x509.Certificate]
"""A node's own certificate first, then those that signed it, as far as they are shown."""


def certificates_in(text: str) -> list[x509.Certificate]:
    """`ValueError` where one is none."""
    return [x509.load_pem_x509_certificate(found.encode("ascii")) for found in PEM.findall(text)]


def described(chain: Chain) -> Certificate:
    """The first one; its validity ends with the first of the chain's that ends. A root is trusted whatever its validity."""
    own = chain[0]
    shown = [one for one in chain if one.subject != one.issuer] or [own]
    uses = _uses(own)
    return Certificate(
        subject=own.subject.rfc4514_string(),
        since=max(one.not_valid_before_utc for one in shown),
        until=min(one.not_valid_after_utc for one in shown),
        names=tuple(_names(own)),
        can_serve=uses is None or ExtendedKeyUsageOID.SERVER_AUTH in uses,
        can_call=uses is None or ExtendedKeyUsageOID.CLIENT_AUTH in uses,
    )


def _uses(certificate: x509.Certificate) -> set[x509.ObjectIdentifier] | None:
    """Extended key usages; `None` where it may be used for everything."""
    try:
        extension = certificate.extensions.get_extension_for_oid(ExtensionOID.EXTENDED_KEY_USAGE)
    except x509.ExtensionNotFound:
        return None
    assert isinstance(extension.value, x509.ExtendedKeyUsage)  # noqa: S101 - its OID says so
    uses = set(extension.value)
    return None if ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in uses else uses


def _names(certificate: x509.Certificate) -> Iterator[str]:
    """DNS names and addresses; the common name where there is no DNS name (sun.security.util.HostnameChecker)."""
    try:
        alternative = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        alternative = x509.SubjectAlternativeName([])
    dns = alternative.get_values_for_type(x509.DNSName)
    yield from dns or (str(name.value) for name in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME))
    yield from (str(address) for address in alternative.get_values_for_type(x509.IPAddress))


def is_believed(chain: Chain, trusted: Sequence[x509.Certificate]) -> bool:
    """Whether signatures lead from the chain's first certificate to one of the trusted ones."""
    current = chain[0]
    for _ in range(MOST_LINKS):
        if current in trusted or any(_signed(current, one) for one in trusted):
            return True
        above = next((one for one in chain if one != current and _signed(current, one)), None)
        if above is None:
            return False
        current = above
    return False


def _signed(certificate: x509.Certificate, by: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(by)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True
