"""`LinuxDoctor`: asks machines by a program that is run there once, and reads what their kernel says (proc(5), cgroups(7))."""

import asyncio
import json
import os
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from activities.observing.node_survey import run_program
from activities.on_node import command_of
from activities.on_node.watch_process import watch
from activities.ports.nodes import MemberMachine, NodeDriver
from domain.cluster import NodeSpec
from domain.diagnosis.machines.vital_signs import PortHolder, VitalSigns, vital_signs_in

WATCH_TIME, HOLDERS_TIME = timedelta(seconds=10), timedelta(seconds=60)


class LinuxDoctor:
    """Of Linux machines with Python 3.7 or later."""

    async def watch(self, driver: NodeDriver, node: NodeSpec, pid: int) -> VitalSigns:
        answer = await _told(driver, {"watch": pid, "log_dirs": node.log_dirs})
        return vital_signs_in(answer, answer["clock"], time.time())

    async def watch_server(
        self, machine: MemberMachine, port: int, data_dirs: Sequence[str], *, is_shut: bool
    ) -> VitalSigns | None:
        answer = await _told(machine, {"watch_port": port, "log_dirs": data_dirs, "is_shut": is_shut})
        return vital_signs_in(answer, answer["clock"], time.time()) if answer else None

    async def watch_ourselves(self) -> VitalSigns:
        answer = await asyncio.to_thread(watch, os.getpid(), [])
        return vital_signs_in(answer, answer["clock"], time.time())

    async def holders(self, machine: NodeDriver | MemberMachine, ports: Sequence[int]) -> tuple[PortHolder, ...]:
        answer = await _told(machine, {"ports": ports}, HOLDERS_TIME)
        return tuple(PortHolder.model_validate(found) for found in answer["holders"])


async def _told(
    machine: NodeDriver | MemberMachine, asked: Mapping[str, object], timeout: timedelta = WATCH_TIME
) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(await run_program(machine, command_of("watch_process", asked), timeout))
    return told
