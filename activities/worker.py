"""`keeperless-activities`: the worker that looks at clusters and changes them."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any, NoReturn

from activities.adapters.four_letter_words import FourLetterWords
from activities.adapters.listeners import TcpListeners
from activities.adapters.nodes.drivers import SpecDrivers
from activities.adopting import Adopting
from activities.assessing import Assessing
from activities.canaries.trying import Canaries
from activities.diagnosis.find_blockers import Blocking
from activities.diagnosis.machine_notes import MachineNotes
from activities.planning import Planning
from activities.ports.ports import Ports
from activities.previewing import Previewing
from activities.queues import Manner, Queue, serve
from activities.recording import Recording
from activities.rolling.configuration_management import ConfigurationManaging
from activities.rolling.roll import Rolling
from activities.settings import ActivitySettings
from activities.shipped_kinds import SHIPPED_KINDS
from console.program import Program, run_program
from domain.contracts import TaskQueue

MANNER = Manner(
    threads=64,
    grace=timedelta(seconds=20),
    heartbeat_throttle=timedelta(seconds=5),
    bounded_grace=max(kind.bounded_grace for kind in SHIPPED_KINDS.values()),
)
"""A roll under way is cut off after the grace, and taken up by the next worker where it stood. The revert window is not."""


def cluster_activities(ports: Ports, settings: ActivitySettings, notes: MachineNotes) -> list[Callable[..., Any]]:
    """What the `cluster` queue serves: looks and effects, each short or bounded."""
    return [
        Assessing(ports, notes).assess,
        Rolling(ports, TcpListeners()).roll_node,
        Canaries(ports).try_canaries,
        Canaries(ports).remove_canaries,
        ConfigurationManaging(ports).release_configuration,
        Recording(ports).claim_cluster,
        Recording(ports).record_progress,
        Adopting(ports, settings.signal_approvals).adopt_message,
        Previewing(ports).accept_rollback,
        *(effect for kind in ports.kinds.values() for effect in kind.effects(ports, TcpListeners())),
    ]


def watch_activities(ports: Ports, notes: MachineNotes) -> list[Callable[..., Any]]:
    """What the `watch` queue serves: long, cheap, many."""
    return [
        Assessing(ports, notes).watch,
        Assessing(ports, notes).observe_cluster,
        Previewing(ports).preview_rollback,
        Previewing(ports).write_runbook,
        Planning(ports).make_plan,
        Blocking(ports, FourLetterWords(), TcpListeners(), SpecDrivers()).find_blockers,
    ]


PROGRAM = Program(
    "keeperless-activities",
    "Observes clusters, and restarts and changes their nodes.",
    "Runs on the machine of the nodes, as a user that may stop and start them; needs Temporal and the ledger.",
    (ActivitySettings,),
)


async def run(settings: ActivitySettings) -> int:
    """Serve both queues until SIGINT or SIGTERM; the exit code."""

    async def queues(ports: Ports, stack: AsyncExitStack) -> list[Queue]:
        notes = await stack.enter_async_context(MachineNotes(ports, SpecDrivers()))
        return [
            Queue(TaskQueue.CLUSTER, cluster_activities(ports, settings, notes), settings.max_effects),
            Queue(TaskQueue.WATCH, watch_activities(ports, notes), settings.max_watches),
        ]

    return await serve(PROGRAM.name, settings, MANNER, SHIPPED_KINDS, queues)


def main() -> NoReturn:
    run_program(PROGRAM, lambda: asyncio.run(run(ActivitySettings())))


if __name__ == "__main__":
    main()
