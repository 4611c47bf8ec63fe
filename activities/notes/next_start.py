"""Of the variables that a node's process was given by whoever started it those that a start of ours would give it, too."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from activities.ports.nodes import NodeDriver
from domain.cluster import NodeSpec
from domain.configuration.properties import ENCODING, parse

SCRIPT_BYTES = 1024 * 1024
OF_START = re.compile(r"(?:KAFKA|JAVA|JDK|JMX)_\w+|CLASSPATH|EXTRA_ARGS|LOG_DIR")
"""What Kafka's scripts and a JVM take. Whatever else a session, or systemd, has given it is no matter."""
TAKEN = re.compile(r"\$\{\w+:(?:[\w./-]*:)?(\w+)\}")
"""By a property, through EnvVarConfigProvider (KIP-887)."""
SOURCES = re.compile(r"^\s*(?:\.|source)\s+\S", re.MULTILINE)
"""A script that takes variables from a file of its own."""


async def environment_of_next_start(driver: NodeDriver, node: NodeSpec, known: Mapping[str, str]) -> dict[str, str]:
    """`known`: what its last noted process had. What its start script sets, or Kafka's own export, needs nobody else."""
    file = await driver.read_file(node.properties_file)
    properties = parse(file.content.decode(ENCODING)) if file is not None else {}
    taken = {name for value in properties.values() for name in TAKEN.findall(value)}
    own = [word for word in node.driver.service.start_command if PurePosixPath(word).is_absolute()]
    of_kafka = [f"{node.kafka_home}/bin/{name}" for name in ("kafka-server-start.sh", "kafka-run-class.sh")]
    sets, exports = await _texts(driver, own), await _texts(driver, of_kafka)
    return {
        name: value
        for name, value in known.items()
        if name in node.environment
        or not (name in taken or OF_START.fullmatch(name))
        or SOURCES.search(sets)
        or re.search(rf"\b{re.escape(name)}=", sets)
        or re.search(rf"\bexport\s+{re.escape(name)}\b", exports)
    }


async def _texts(driver: NodeDriver, paths: list[str]) -> str:
    return "\n".join([(await driver.read_part(path, 0, SCRIPT_BYTES) or b"").decode(errors="replace") for path in paths])
