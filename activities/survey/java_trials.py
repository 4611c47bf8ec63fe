"""Whether a node could start, as a file has it: a JVM of its java, with Kafka's jars, is tried beside it. The file is tried
with the overrides of its start command, which Kafka takes before it.
"""

import asyncio
import hmac
import json
import secrets
from collections import deque
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from activities.heartbeat import is_at
from activities.observing.node_survey import run_program
from activities.on_node import command_of
from activities.ports.nodes import NodeDriver
from activities.survey.start_commands import overrides_of
from domain.cluster import NodeSpec
from domain.configuration.properties import ENCODING, edit, parse
from domain.diagnosis.logs.redaction import without_secrets
from domain.diagnosis.machines.start import JavaTrial

AT_ONCE = asyncio.Semaphore(2)
"""On this machine, where all nodes may be: many JVMs that start together would all be slow, and look as if they hung."""
PROVEN = deque[str](maxlen=400)
"""Digests of what went well last, as the programs on the nodes' machines made them. Each is of one machine, and names all that
the trial rests on.
"""
KEY = secrets.token_bytes(32)
"""Of this process, as `PROVEN` is: a command line can be read by all users of a machine, and a file may hold a password."""
MAIN = "kafka.Kafka"
PROVIDERS = "config.providers"
OWN_PROVIDERS = frozenset(f"org.apache.kafka.common.config.provider.{kind}ConfigProvider" for kind in ("File", "Directory"))
"""They read what lies on the node. Variables a start command may set by itself, and what another provider does who is asked
nobody knows: then only java is tried."""


async def try_java(
    driver: NodeDriver,
    node: NodeSpec,
    pid: int | None,
    stage: str | None = None,
    text: str | None = None,
    *,
    has_agents: bool = True,
) -> JavaTrial:
    """`text`: of the file at that stage; it goes through a pipe, and lies nowhere. `pid`: of the process that runs; without one
    java is that of its start command. Takes a second, with agents half as much again; nothing where the same was tried by this
    process before, unless the file has values from elsewhere. Raises `CannotLook`, `Transient`.
    """
    overrides = await overrides_of(driver, node, str(pid or ""))
    whole = edit(text or "", overrides.given if text is not None else {})
    foreign = foreign_providers(parse(whole))
    given = "" if text is None or foreign else whole
    properties = parse(given)
    asked: dict[str, Any] = {
        "pid": pid,
        "kafka_home": node.kafka_home,
        "file": hmac.new(KEY, json.dumps(properties, sort_keys=True).encode(), "sha256").hexdigest() if given else None,
        "has_agents": has_agents,
        **({"words": words_of(node)} if pid is None else {}),
    }
    async with AT_ONCE:
        asked["known"] = () if PROVIDERS in properties else tuple(PROVEN)
        with is_at(f"a JVM of its java is tried beside node {node.id} (process {pid}), and has to end by itself"):
            command = command_of("try_java", asked)
            answer = await run_program(driver, command, environment=node.environment, stdin=given.encode(ENCODING))
    found = JavaTrial.model_validate_json(answer)
    PROVEN.extend(one for one in json.loads(answer)["proven"] if one not in PROVEN)
    told = {part: without_secrets(words) for part in ("failed", "refused") if (words := getattr(found, part)) is not None}
    if foreign and not found.untried:
        told["untried"] = f"its file has values from {', '.join(foreign)}, which a trial cannot ask: only its java was tried"
    return found.model_copy(update={"stage": stage, "overridden": tuple(one.key for one in overrides.told), **told})


def words_of(node: NodeSpec) -> list[str]:
    """The node's command line; where that is a script's, one as it would be, of which a trial takes java and class path."""
    words = [word.replace("{properties}", node.properties_file) for word in node.driver.service.start_command]
    first = words[0]
    if PurePosixPath(first).name == "java" and MAIN in words:
        return words
    java = first if PurePosixPath(first).name == "java" else node.java
    return [java, "-cp", ":".join(node.further_classes), MAIN]


def foreign_providers(properties: Mapping[str, str]) -> list[str]:
    """The classes of those that are not asked in a trial."""
    names = [name.strip() for name in properties.get(PROVIDERS, "").split(",")]
    classes = (properties.get(f"{PROVIDERS}.{name}.class", f"a config provider {name}") for name in names if name)
    return [found for found in classes if found.strip() not in OWN_PROVIDERS]


async def trials_of(driver: NodeDriver, node: NodeSpec, pid: int, files: Mapping[str, str]) -> tuple[JavaTrial, ...]:
    """One for each file, by stage, that the migration will still write for it, the first with its agents, which are the same
    for all. Of a node with none to come one of its java alone."""
    if not files:
        return (await try_java(driver, node, pid),)
    first = next(iter(files))
    return tuple([await try_java(driver, node, pid, s, text, has_agents=s is first) for s, text in files.items()])


async def trials_of_new(driver: NodeDriver, node: NodeSpec, files: Mapping[str, str]) -> tuple[JavaTrial, ...]:
    """The same of a node that is to be made, its first file included."""
    first = next(iter(files), None)
    return tuple([await try_java(driver, node, None, s, text, has_agents=s is first) for s, text in files.items()])
