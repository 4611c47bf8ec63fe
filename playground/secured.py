"""A private authority and what it signs: for clusters whose brokers speak SASL_SSL with each other.

Clients keep their plain listener; brokers speak on `INTERNAL`, and controllers on their own, both with TLS and PLAIN.
"""

import ipaddress
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, pkcs12
from cryptography.x509.oid import NameOID

from playground.ports import LOOPBACK

LISTENER = "INTERNAL"
USER = "platform"
VALID = timedelta(days=365)
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@dataclass(frozen=True)
class Authority:
    """Signs certificates, and is trusted by whoever has its truststore. Nobody else knows it."""

    name: str
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    @property
    def subject(self) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)])

    def certificate(self) -> x509.Certificate:
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        return (
            self._draft(self.subject, VALID, self.key).add_extension(constraints, critical=True).sign(self.key, hashes.SHA256())
        )

    def truststore(self, password: str) -> bytes:
        entry = pkcs12.PKCS12Certificate(self.certificate(), b"authority")
        return pkcs12.serialize_java_truststore([entry], BestAvailableEncryption(password.encode()))

    def keystore(self, password: str, address: str = LOOPBACK, valid: timedelta = VALID) -> bytes:
        """A new key with a certificate for one address."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "node")])
        addresses = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        signed = self._draft(name, valid, key).add_extension(addresses, critical=False).sign(self.key, hashes.SHA256())
        encryption = BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(b"node", key, signed, [self.certificate()], encryption)

    def _draft(self, name: x509.Name, valid: timedelta, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + valid)
        )


@dataclass(frozen=True)
class Security:
    """Files below `directory`, and the settings that name them. Passwords are of this one cluster."""

    directory: Path
    authority: Authority = field(default_factory=lambda: Authority("playground"))
    store_password: str = field(default_factory=secrets.token_hex)
    password: str = field(default_factory=secrets.token_hex)

    @property
    def truststore(self) -> Path:
        return self.directory / "truststore.p12"

    @property
    def client_properties(self) -> Path:
        """For Keeperless's own clients, on the same listener."""
        return self.directory / "client.properties"

    def keystore(self, node: str) -> Path:
        return self.directory / f"{node}.p12"

    def write(self, nodes: list[str]) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.truststore.write_bytes(self.authority.truststore(self.store_password))
        for node in nodes:
            self.keystore(node).write_bytes(self.authority.keystore(self.store_password))
        authority = self.directory / "authority.pem"
        authority.write_bytes(self.authority.certificate().public_bytes(Encoding.PEM))
        self.client_properties.write_text(
            f"security.protocol=SASL_SSL\nssl.cafile={authority}\nsasl.mechanism=PLAIN\n"
            f"sasl.plain.username={USER}\nsasl.plain.password={self.password}\n",
            encoding="utf-8",
        )

    def properties(self, node: str) -> str:
        """What a broker has, and a controller in its `base_properties`."""
        login = f'{PLAIN_LOGIN} username="{USER}" password="{self.password}" user_{USER}="{self.password}";'
        return f"""\
############################# TLS and logins #############################
inter.broker.listener.name={LISTENER}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,{LISTENER}:SASL_SSL
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.mechanism.controller.protocol=PLAIN
listener.name.{LISTENER.lower()}.plain.sasl.jaas.config={login}
listener.name.controller.plain.sasl.jaas.config={login}
ssl.keystore.type=PKCS12
ssl.keystore.location={self.keystore(node)}
ssl.keystore.password={self.store_password}
ssl.truststore.type=PKCS12
ssl.truststore.location={self.truststore}
ssl.truststore.password={self.store_password}
"""
