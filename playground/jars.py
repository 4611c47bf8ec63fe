"""Kafka, ZooKeeper and their agents, from a Maven repository into the user's cache.

`installed_kafka()` gives a folder laid out like Kafka's own installation:

    <cache>/kafka-3.9.2-<lock>/libs/*.jar     the class path of brokers, controllers, ZooKeeper servers and tools
    <cache>/kafka-3.9.2-<lock>/agents/*.jar   Jolokia and the Prometheus JMX exporter

Which files, and their sha256, is said by `jars.lock.toml` alone; nothing is resolved here. A file counts only after
its digest was checked, and the folder appears by one rename at the end, so that an interruption leaves nothing that
could be taken for whole. The next run goes on with the files that are there already.
"""

import hashlib
import shutil
import tomllib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from jgo.config import GlobalSettings
from jgo.constants import MAVEN_CENTRAL_URL
from jgo.maven import Artifact, MavenContext

from domain.errors import Permanent, Transient
from playground.cache import Announce, cache_directory, only_one_process, silent
from playground.maven_settings import mirror_of_central

LOCK_FILE = Path(__file__).with_name("jars.lock.toml")
AGENTS = frozenset({"jolokia-agent-jvm", "jmx_prometheus_javaagent"})
PARALLEL_DOWNLOADS = 4
TOLD_EVERY = 20
"""Of so many files one is told of, and the last."""


@dataclass(frozen=True)
class LockedJar:
    """One file of a Maven repository, by its coordinates, and what it must contain."""

    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str
    packaging: str = "jar"

    @property
    def file_name(self) -> str:
        return "-".join(part for part in (self.artifact, self.version, self.classifier) if part) + f".{self.packaging}"

    @property
    def folder(self) -> str:
        return "agents" if self.artifact in AGENTS else "libs"


@dataclass(frozen=True)
class KafkaHome:
    """An installation. `path` is what a node's `kafka_home` says."""

    path: Path

    @property
    def class_path(self) -> str:
        """For `java -cp`: the launcher expands the asterisk itself."""
        return f"{self.path}/libs/*"

    @property
    def jolokia(self) -> Path:
        return self._agent("jolokia-agent-jvm")

    @property
    def prometheus(self) -> Path:
        return self._agent("jmx_prometheus_javaagent")

    def _agent(self, artifact: str) -> Path:
        return next((self.path / "agents").glob(f"{artifact}-*.jar"))


def locked_jars(lock_file: Path = LOCK_FILE) -> tuple[LockedJar, ...]:
    """The content of jgo's lock file. An entry without a digest is an error: it could not be verified."""
    entries = tomllib.loads(lock_file.read_text(encoding="utf-8"))["dependencies"]
    without = [entry["artifactId"] for entry in entries if "sha256" not in entry]
    if without:
        raise Permanent(f"{lock_file.name} has no sha256 for {without}: make it again with python -m playground.lock_jars")
    return tuple(
        LockedJar(e["groupId"], e["artifactId"], e["version"], e.get("classifier", ""), e["sha256"], e.get("packaging", "jar"))
        for e in entries
    )


def installed_kafka(announce: Announce = silent, cache: Path | None = None, lock_file: Path = LOCK_FILE) -> KafkaHome:
    """The installation, fetched if it is not there yet. When it is, this neither resolves nor uses the network."""
    cache = cache or cache_directory()
    home = cache / home_name(lock_file)
    if not home.exists():
        with only_one_process(cache / f"{home.name}.lock"):
            if not home.exists():
                _install(locked_jars(lock_file), cache, home, announce)
    return KafkaHome(home)


def fetched_jars(lock_file: Path, announce: Announce = silent, cache: Path | None = None) -> list[Path]:
    """The verified files of another lock, as they lie in the cache: to be read, not to be run."""
    cache = cache or cache_directory()
    with only_one_process(cache / f"{lock_file.stem}.lock"):
        return [path for _, path in _fetch_all(locked_jars(lock_file), cache / "maven", announce)]


def home_name(lock_file: Path = LOCK_FILE) -> str:
    """Another lock is another folder: a cache never mixes two of them."""
    kafka = next(jar for jar in locked_jars(lock_file) if jar.artifact == "kafka_2.13")
    return f"kafka-{kafka.version}-{hashlib.sha256(lock_file.read_bytes()).hexdigest()[:12]}"


def _install(jars: tuple[LockedJar, ...], cache: Path, home: Path, announce: Announce) -> None:
    announce(f"Fetching {len(jars)} jars of Kafka, ZooKeeper and their metrics agents into {cache} (once, about 60 MB)")
    fetched = dict(_fetch_all(jars, cache / "maven", announce))
    staging = home.with_name(f"{home.name}.partial")
    shutil.rmtree(staging, ignore_errors=True)
    for jar, source in fetched.items():
        target = staging / jar.folder / jar.file_name
        target.parent.mkdir(parents=True, exist_ok=True)
        _link(source, target)
    staging.rename(home)
    announce(f"Kafka is ready: {len(jars)} jars verified")


def _link(source: Path, target: Path) -> None:
    """A hard link costs no space; a file system without them gets a copy."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copy2(source, target)


def _fetch_all(jars: tuple[LockedJar, ...], repository: Path, announce: Announce) -> Iterator[tuple[LockedJar, Path]]:
    context = maven_context(repository)
    with ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool:
        running: dict[Future[Path], LockedJar] = {pool.submit(_fetch, jar, context): jar for jar in jars}
        try:
            for done, future in enumerate(as_completed(running), start=1):
                jar, path = running[future], future.result()
                if done % TOLD_EVERY == 0 or done == len(jars):
                    announce(f"  {done} of {len(jars)} are there")
                yield jar, path
        finally:
            pool.shutdown(cancel_futures=True)


def maven_context(repository: Path) -> MavenContext:
    """jgo with the mirror that Maven's settings name, if any, and the repositories of jgo's own configuration before that."""
    settings = GlobalSettings.load()
    remotes = {"central": mirror_of_central() or MAVEN_CENTRAL_URL} | settings.repositories
    return MavenContext(repo_cache=repository, remote_repos=remotes, timeout=60)


def _fetch(jar: LockedJar, context: MavenContext) -> Path:
    """The verified file. jgo writes in place, so what an interruption left behind is known by its digest: once more."""
    component = context.project(jar.group, jar.artifact).at_version(jar.version)
    artifact = component.artifact(jar.classifier, jar.packaging)
    path = _download(artifact)
    if sha256_of(path) == jar.sha256:
        return path
    path.unlink()
    path = _download(artifact)
    if (digest := sha256_of(path)) != jar.sha256:
        path.unlink()
        raise Permanent(
            f"{jar.file_name}: sha256 is {digest}, {LOCK_FILE.name} says {jar.sha256}. The repository serves another file "
            "under this name: do not use it, ask the mirror's maintainer"
        )
    return path


def _download(artifact: Artifact) -> Path:
    try:
        return Path(artifact.resolve())
    except (OSError, RuntimeError) as error:  # requests' errors are OSErrors; jgo raises RuntimeError for "not found"
        raise Transient(
            f"{artifact.filename} could not be fetched ({error}). Check the network, or name a mirror in Maven's "
            "settings (~/.m2/settings.xml, mirrorOf central); what is fetched already is kept"
        ) from error


def sha256_of(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
