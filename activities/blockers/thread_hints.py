"""What the threads are at of nodes that do not get on with their start, their end, or with what they are asked."""

import asyncio
import json
from collections.abc import Iterable
from datetime import timedelta
from functools import partial

from activities.observing.in_time import in_time
from activities.observing.node_survey import run_program
from activities.on_node import command_of
from activities.ports.nodes import NodeDriver
from activities.ports.ports import Ports
from domain.diagnosis.logs.threads import Standing, Thread, at_work_in, where_it_stands
from domain.errors import Transient
from domain.observed.observation import NodeView, Observation
from domain.records import ClusterRecord
from domain.zk_to_kraft.causes.case import SLOW

ASK_TIME = timedelta(seconds=5)
NOWHERE = Standing("", is_of_plugin=False)


async def thread_hints(
    ports: Ports, cluster: ClusterRecord, observation: Observation, nodes: Iterable[int], silent: list[str]
) -> dict[str, Standing]:
    """By name of a node, where it stands, in words; only of who has run for longer than most need to be well."""
    wanted = [node_id for node_id in nodes if _is_slow(observation, observation.node(node_id))]

    async def ask(node_id: int) -> Standing:
        name, process = cluster.spec.node_name(node_id), observation.node(node_id).process
        assert process is not None  # noqa: S101 - only who runs is asked
        ask = partial(_threads_of, ports.drivers.driver(cluster.spec.node(node_id)), process.pid)
        return await in_time(f"threads of {name}", ask, silent, NOWHERE, ASK_TIME.total_seconds())

    found = await asyncio.gather(*map(ask, wanted))
    return {
        cluster.spec.node_name(node_id): standing for node_id, standing in zip(wanted, found, strict=True) if standing.words
    }


def _is_slow(observation: Observation, view: NodeView) -> bool:
    process = view.process
    runs = process is not None and process.identity is not None and not process.is_paused
    begun = process.started_at if process is not None else None
    return runs and begun is not None and observation.ended_at - begun > SLOW


async def _threads_of(driver: NodeDriver, pid: str) -> Standing:
    answer = await run_program(driver, command_of("ask_threads", {"pid": int(pid)}), ASK_TIME)
    try:
        told = json.loads(answer)
        threads = {name: Thread(found["state"], found["places"]) for name, found in (told["threads"] or {}).items()}
        standing = where_it_stands(threads, is_deadlocked=told["is_deadlocked"])
        return standing if standing.words else at_work_in(threads)
    except (ValueError, KeyError) as error:
        raise Transient(f"what its machine says of its threads cannot be read: {error}") from error
