"""Jars: only what the lock says, verified, resumable, and without network once they are there."""

import gc
import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from domain.errors import Permanent, Transient
from playground.jars import LOCK_FILE, home_name, installed_kafka, locked_jars
from playground.keycloak import LOCK_FILE as KEYCLOAK_LOCK

KAFKA = ("org.apache.kafka", "kafka_2.13", "3.9.2", "", b"kafka itself")
JOLOKIA = ("org.jolokia", "jolokia-agent-jvm", "2.6.0", "javaagent", b"an agent")
EXPORTER = ("io.prometheus.jmx", "jmx_prometheus_javaagent", "1.0.1", "", b"another agent")


class Repository:
    """A Maven repository on 127.0.0.1, and the requests it got."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: list[str] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Recording, self.requests, directory=str(folder)))
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def file_of(self, jar: tuple[str, str, str, str, bytes]) -> Path:
        group, artifact, version, classifier, _ = jar
        name = "-".join(part for part in (artifact, version, classifier) if part)
        return self.folder / group.replace(".", "/") / artifact / version / f"{name}.jar"

    def publish(self, jar: tuple[str, str, str, str, bytes], content: bytes | None = None) -> None:
        self.file_of(jar).parent.mkdir(parents=True, exist_ok=True)
        self.file_of(jar).write_bytes(jar[4] if content is None else content)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class _Recording(SimpleHTTPRequestHandler):
    def __init__(self, requests: list[str], *arguments: object, **options: object) -> None:
        self.requests = requests
        super().__init__(*arguments, **options)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.requests.append(self.path)
        super().do_GET()

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """jgo's own configuration names it as the mirror of Maven Central."""
    repository = Repository(tmp_path / "repository")
    for jar in (KAFKA, JOLOKIA, EXPORTER):
        repository.publish(jar)
    configuration = tmp_path / "jgo.conf"
    configuration.write_text(f"[repositories]\ncentral = {repository.url}\n", encoding="utf-8")
    monkeypatch.setenv("JGO_CONFIG_FILE", str(configuration))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield repository
    repository.close()


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    entries = [
        f'[[dependencies]]\ngroupId = "{group}"\nartifactId = "{artifact}"\nversion = "{version}"\n'
        f'classifier = "{classifier}"\nsha256 = "{hashlib.sha256(content).hexdigest()}"\n'
        for group, artifact, version, classifier, content in (KAFKA, JOLOKIA, EXPORTER)
    ]
    path = tmp_path / "jars.lock.toml"
    path.write_text("\n".join(entries), encoding="utf-8")
    return path


def test_the_committed_lock_names_every_file_with_its_digest() -> None:
    jars = locked_jars()
    names = {jar.file_name for jar in jars}
    assert {"kafka_2.13-3.9.2.jar", "zookeeper-3.8.4.jar", "slf4j-reload4j-1.7.36.jar"} <= names
    assert {jar.file_name for jar in jars if jar.folder == "agents"} == {
        "jolokia-agent-jvm-2.6.0-javaagent.jar",
        "jmx_prometheus_javaagent-1.0.1.jar",
    }
    assert len(names) == len(jars), "two files of one name would hide each other in libs"
    assert all(len(jar.sha256) == 64 for jar in jars)
    assert "://" not in LOCK_FILE.read_text(encoding="utf-8")


def test_the_lock_of_keycloak_names_one_archive_with_its_digest() -> None:
    (archive,) = locked_jars(KEYCLOAK_LOCK)
    assert archive.file_name == f"keycloak-quarkus-dist-{archive.version}.zip"
    assert len(archive.sha256) == 64
    assert "://" not in KEYCLOAK_LOCK.read_text(encoding="utf-8")


def test_an_entry_without_digest_is_refused(tmp_path: Path) -> None:
    lock = tmp_path / "jars.lock.toml"
    lock.write_text('[[dependencies]]\ngroupId = "g"\nartifactId = "a"\nversion = "1"\n', encoding="utf-8")
    with pytest.raises(Permanent, match="no sha256"):
        locked_jars(lock)


def test_files_land_in_libs_and_agents_and_how_far_it_is_is_said(repository: Repository, lock: Path, tmp_path: Path) -> None:
    said: list[str] = []
    kafka = installed_kafka(said.append, tmp_path / "cache", lock)
    assert (kafka.path / "libs" / "kafka_2.13-3.9.2.jar").read_bytes() == KAFKA[4]
    assert kafka.jolokia.read_bytes() == JOLOKIA[4]
    assert kafka.prometheus.read_bytes() == EXPORTER[4]
    assert "3 jars" in said[0]
    assert said[1:] == ["  3 of 3 are there", "Kafka is ready: 3 jars verified"]


def test_a_second_run_uses_no_network(repository: Repository, lock: Path, tmp_path: Path) -> None:
    first = installed_kafka(cache=tmp_path / "cache", lock_file=lock)
    repository.requests.clear()
    said: list[str] = []
    assert installed_kafka(said.append, tmp_path / "cache", lock) == first
    assert (repository.requests, said) == ([], [])


def test_a_half_written_file_is_fetched_again(repository: Repository, lock: Path, tmp_path: Path) -> None:
    half = tmp_path / "cache" / "maven" / repository.file_of(KAFKA).relative_to(repository.folder)
    half.parent.mkdir(parents=True)
    half.write_bytes(KAFKA[4][:5])
    kafka = installed_kafka(cache=tmp_path / "cache", lock_file=lock)
    assert (kafka.path / "libs" / "kafka_2.13-3.9.2.jar").read_bytes() == KAFKA[4]


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # jgo does not close the answer "not found"
def test_an_interruption_keeps_what_is_fetched_and_leaves_no_installation(
    repository: Repository, lock: Path, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    repository.file_of(JOLOKIA).unlink()
    with pytest.raises(Transient, match=r"jolokia-agent-jvm-2\.6\.0-javaagent\.jar could not be fetched"):
        installed_kafka(cache=cache, lock_file=lock)
    gc.collect()  # so that jgo's open socket is closed here, where its warning is forgiven
    assert not (cache / home_name(lock)).exists()
    repository.publish(JOLOKIA)
    repository.requests.clear()
    installed_kafka(cache=cache, lock_file=lock)
    assert not [path for path in repository.requests if "kafka_2.13" in path], "it was there already"


def test_a_file_with_other_content_is_never_used(repository: Repository, lock: Path, tmp_path: Path) -> None:
    repository.publish(KAFKA, b"something else")
    with pytest.raises(Permanent, match="serves another file under this name"):
        installed_kafka(cache=tmp_path / "cache", lock_file=lock)
    assert not (tmp_path / "cache" / home_name(lock)).exists()


def test_another_lock_is_another_installation(lock: Path) -> None:
    before = home_name(lock)
    lock.write_text(lock.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert home_name(lock) != before
    assert before.startswith("kafka-3.9.2-")
