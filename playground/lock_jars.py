"""`python -m playground.lock_jars`: resolve the wanted coordinates anew and write `jars.lock.toml`.

For maintainers only: users and CI never resolve, they fetch what the lock says.
"""

import tempfile
from pathlib import Path

from jgo.env._lockfile import LockFile
from jgo.maven import Dependency

from playground.jars import LOCK_FILE, maven_context

WITH_DEPENDENCIES = (
    ("org.apache.kafka", "kafka_2.13", "3.9.2"),
    ("org.slf4j", "slf4j-reload4j", "1.7.36"),
    # ZooKeeper's server needs these two at run time although its POM does not ask for them.
    ("org.xerial.snappy", "snappy-java", "1.1.10.5"),
    ("io.dropwizard.metrics", "metrics-core", "4.1.12.1"),
)
ALONE = (
    # The command line tools, as every installation has them; what they need is there already.
    ("org.apache.kafka", "kafka-tools", "3.9.2", ""),
    # The plain jar of this artefact is no agent: only the classifier `javaagent` is.
    ("org.jolokia", "jolokia-agent-jvm", "2.6.0", "javaagent"),
    ("io.prometheus.jmx", "jmx_prometheus_javaagent", "1.0.1", ""),
)


def resolve(repository: Path) -> LockFile:
    context = maven_context(repository)
    wanted = [
        Dependency(context.project(group, name).at_version(version).artifact(), scope="compile")
        for group, name, version in WITH_DEPENDENCIES
    ]
    inputs, transitive = context.resolver.resolve(wanted)
    agents = [
        Dependency(context.project(group, name).at_version(version).artifact(classifier), scope="runtime")
        for group, name, version, classifier in ALONE
    ]
    transitive.sort(key=lambda dependency: (dependency.groupId, dependency.artifactId))
    return LockFile.from_resolved_dependencies([*inputs, *transitive, *agents], environment_name="kafka")


def main() -> None:
    with tempfile.TemporaryDirectory() as repository:
        lock = resolve(Path(repository))
    lock.save(LOCK_FILE)
    print(f"{LOCK_FILE}: {len(lock.dependencies)} files")


if __name__ == "__main__":
    main()
