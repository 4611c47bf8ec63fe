"""Kafka's own tools log in to the brokers from a controller's host, with the settings that the controller will have.

One run asks all brokers. Only where it does not end well each broker is asked by itself, for the reason. Settings go to the
tool by its standard input.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta

import javaproperties

from activities.ports.nodes import Completed
from activities.survey.key_stores import ELSEWHERE, NodeSettings
from domain.configuration.listener_security import (
    LOGIN,
    inter_broker_listener,
    inter_broker_mechanism,
    protocol_of,
    settings_of,
)
from domain.errors import Permanent, Transient
from domain.observed.survey import LoginTried, Registration

ALL_TIME, ONE_TIME = timedelta(seconds=25), timedelta(seconds=30)
"""A JVM start, and what Kafka itself waits (`LIMITS`), on a busy machine."""
LIMITS = {"request.timeout.ms": "8000", "default.api.timeout.ms": "12000"}
SMALL = ("-Xmx128m", "-XX:TieredStopAtLevel=1")
MOST_ASKED = 3
"""At once: each is a JVM on a controller's host."""
NOT_ASKED = f"Kafka's own tool got no answer from them, and {MOST_ASKED} at most are asked one by one"
ANSWERED = re.compile(r"^\S+ \(id: (\d+) rack: .*\) -> \(", re.MULTILINE)
CAUSE = re.compile(r"^(?:Caused by: |Exception in thread \S+ )?([\w.$]+(?:Exception|Error)\b.*)", re.MULTILINE)


async def try_logins(asked: NodeSettings, registrations: Sequence[Registration]) -> tuple[LoginTried, ...]:
    listener = inter_broker_listener(asked.properties)
    protocol = protocol_of(asked.properties, listener)
    targets = {r.broker_id: r.addresses[listener] for r in registrations if listener in r.addresses}
    if protocol == "PLAINTEXT" or not targets:
        return ()
    what = f"{listener}, controllers to brokers"
    try:
        properties = client_properties(asked.properties, listener, protocol)
    except ValueError as error:
        return (LoginTried(what=what, unknown=str(error)),)
    try:
        return await _try(asked, properties, targets, listener)
    except Permanent as error:
        return (LoginTried(what=what, unknown=f"Kafka's own tool cannot be run there: {error}"),)


def client_properties(properties: Mapping[str, str], listener: str, protocol: str) -> bytes:
    """As a client's: `ValueError` where they are not wholly in the file."""
    mechanism = inter_broker_mechanism(properties)
    settings = settings_of(properties, listener, mechanism)
    if protocol.startswith("SASL") and LOGIN not in settings:
        raise ValueError(f"the login of {listener} ({mechanism}) is not in the properties, but in a JAAS file of Java's")
    elsewhere = sorted(key for key, value in settings.items() if ELSEWHERE in value)
    if elsewhere:
        raise ValueError(f"{elsewhere[0]} is with a config provider, which only a broker asks")
    own = {key: value for key, value in settings.items() if key.startswith(("ssl.", "sasl."))}
    return javaproperties.dumps({**own, "security.protocol": protocol, "sasl.mechanism": mechanism, **LIMITS}).encode("latin-1")


async def _try(asked: NodeSettings, properties: bytes, targets: Mapping[int, str], listener: str) -> tuple[LoginTried, ...]:
    answered = await _all(asked, properties, ",".join(targets.values()))
    silent = [broker for broker in targets if broker not in answered]
    tried = [LoginTried(what=f"{listener} of broker-{broker}") for broker in targets if broker in answered]
    refused: dict[str | None, list[str]] = {}
    problems = await asyncio.gather(*(_one(asked, properties, targets[broker]) for broker in silent[:MOST_ASKED]))
    for broker, problem in zip(silent, problems, strict=False):
        refused.setdefault(problem, []).append(f"broker-{broker} at {targets[broker]}")
    tried += [LoginTried(what=f"{listener} of {', '.join(brokers)}", problem=problem) for problem, brokers in refused.items()]
    rest = silent[MOST_ASKED:]
    if rest:
        tried.append(LoginTried(what=f"{listener} of {len(rest)} more brokers", unknown=NOT_ASKED))
    return tuple(tried)


async def _all(asked: NodeSettings, properties: bytes, servers: str) -> set[int]:
    """Ids of those that let us in. It never ends where a broker's certificate is not believed (3.9.2): its thread dies."""
    arguments = ("kafka.admin.BrokerApiVersionsCommand", "--bootstrap-server", servers, "--command-config", "/dev/stdin")
    try:
        done = await _java(asked, arguments, properties, ALL_TIME)
    except Transient:
        return set()
    return {int(broker) for broker in ANSWERED.findall(done.output)}


async def _one(asked: NodeSettings, properties: bytes, server: str) -> str | None:
    """Why this broker does not let us in; `None`: it does."""
    arguments = ("org.apache.kafka.tools.ClusterTool", "cluster-id", "--bootstrap-server", server, "--config", "/dev/stdin")
    done = await _java(asked, arguments, properties, ONE_TIME)
    if done.exit_code == 0 and "Cluster ID:" in done.output:
        return None
    causes = (re.sub(r"^(?:[\w$]+\.)+", "", cause.strip()) for cause in CAUSE.findall(done.output + "\n" + done.errors))
    told = [cause for cause in dict.fromkeys(causes) if not cause.startswith("ExecutionException")]
    return (": ".join(told[-3:]) or f"Kafka's own tool has ended with {done.exit_code}")[:400]


async def _java(asked: NodeSettings, arguments: Sequence[str], properties: bytes, limit: timedelta) -> Completed:
    program = [f"{asked.tools}java", *SMALL, "-cp", asked.node.class_path, *arguments]
    return await asked.driver.run(program, asked.environment, limit, properties)
