"""The look as a node runs it: a program of its own, held against sockets, certificates and jars that are really there."""

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from activities.on_node import command_of, kernel

NOTHING: dict[str, Any] = {
    "log_dirs": [],
    "archive": "/",
    "kafka_home": "/nowhere",
    "pid": None,
    "class_path": [],
    "classes": [],
}


def run(**request: Any) -> dict[str, Any]:
    """As a node does: from the command line, without this repository."""
    asked = {**NOTHING, "own_port": None, "reach": [], **request}
    command = command_of("look_at_node", asked, sys.executable)
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True, cwd="/")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def certificate(folder: Path, until: datetime) -> Path:
    """Key and certificate in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(until - timedelta(days=365))
        .not_valid_after(until)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / "server.pem"
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


@contextmanager
def listener(context: ssl.SSLContext | None) -> Iterator[int]:
    """Accepts one connection at a time, with TLS where there is a context; gives the port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    accepted, _ = server.accept()
                except OSError:
                    return
                with accepted:
                    try:
                        if context is not None:
                            context.wrap_socket(accepted, server_side=True).close()
                    except OSError:
                        continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def tls(file: Path, *, wants_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    if wants_certificate:
        context.maximum_version = ssl.TLSVersion.TLSv1_2  # where the refusal comes before the handshake ends
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(file)
    return context


def reach(port: int, protocol: str) -> dict[str, Any]:
    target = {"what": "a listener", "host": "127.0.0.1", "port": port, "protocol": protocol}
    (found,) = run(reach=[target])["reached"]
    return dict(found)


@pytest.mark.parametrize("until", [datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC), datetime(2051, 1, 2, 3, 4, 5, tzinfo=UTC)])
def test_a_certificates_end_is_read_in_both_of_its_forms(tmp_path: Path, until: datetime) -> None:
    with listener(tls(certificate(tmp_path, until))) as port:
        found = reach(port, "SASL_SSL")
    assert found["problem"] is None
    assert datetime.fromisoformat(found["certificate_until"]) == until


def test_a_listener_that_wants_our_certificate_is_reached(tmp_path: Path) -> None:
    context = tls(certificate(tmp_path, datetime.now(UTC) + timedelta(days=9)), wants_certificate=True)
    with listener(context) as port:
        found = reach(port, "SSL")
    assert (found["problem"], found["certificate_until"]) == (None, None)


def test_a_listener_without_tls_where_there_should_be_some() -> None:
    with listener(None) as port:
        assert reach(port, "SSL")["problem"] is not None
        assert reach(port, "PLAINTEXT")["problem"] is None


def test_nobody_listens_and_a_port_that_is_taken() -> None:
    with listener(None) as port:
        assert run(own_port=["127.0.0.1", port])["is_port_taken"] is True
    assert reach(port, "PLAINTEXT")["problem"].startswith("ConnectionRefusedError")
    assert run(own_port=["127.0.0.1", port])["is_port_taken"] is False
    assert run()["is_port_taken"] is None


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_both_ends_of_a_processs_connections(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server, socket.create_connection(server.getsockname()[:2]) as client:
        found = run(pid=os.getpid())
        shown = f"[{host}]" if ":" in host else host
        ends = [f"{shown}:{end.getsockname()[1]}" for end in (client, server)]
        assert ends in found["sockets"]
        assert found["open_files"] > 2
        assert found["most_open_files"] >= found["open_files"]
        assert found["maps"] > 10


def test_an_ipv4_address_within_ipv6_is_shown_as_one() -> None:
    """As a JVM's sockets are in /proc/net/tcp6 (little-endian machines)."""
    if sys.byteorder == "little":
        assert kernel.address("0000000000000000FFFF00000100007F:1F90") == "127.0.0.1:8080"
        assert kernel.address("0100007F:1F90") == "127.0.0.1:8080"


def test_classes_in_jars_folders_and_nowhere(tmp_path: Path) -> None:
    libs = tmp_path / "kafka" / "libs"
    libs.mkdir(parents=True)
    with zipfile.ZipFile(libs / "policies.jar", "w") as jar:
        jar.writestr("com/example/InJar.class", b"")
    (libs / "broken.jar").write_bytes(b"no jar")
    folder = tmp_path / "classes"
    (folder / "com").mkdir(parents=True)
    (folder / "com" / "InFolder.class").write_bytes(b"")
    found = run(
        kafka_home=str(tmp_path / "kafka"),
        class_path=[str(folder), "/nowhere/*"],
        classes=["com.example.InJar", "com.InFolder", "com.example.Nowhere"],
    )
    assert found["absent_classes"] == ["com.example.Nowhere"]


def test_a_file_system_is_that_of_the_longest_mount_point(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"/": "ext4", "/run": "tmpfs", "/run/my\\040disk": "xfs", "/data": "ext4"}
    mounts = "".join(f"1 1 0:1 / {point} rw - {kind} /dev/a rw\n" for point, kind in points.items())
    monkeypatch.setattr(kernel, "text", lambda path: mounts)
    found = [kernel.mount_of(path) for path in ("/running", "/run/x", "/run/my disk/x", "/data", "/")]
    assert [mount and mount.kind for mount in found] == ["ext4", "tmpfs", "xfs", "ext4", "ext4"]
