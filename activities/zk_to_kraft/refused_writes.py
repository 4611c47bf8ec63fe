"""A change that the active controller could not write to ZooKeeper, by its log.

Kafka does not try it again, and with the next change `/migration` goes past it: by its offset ZooKeeper has everything.
"""

from collections.abc import Collection
from dataclasses import dataclass

from activities.last_words import LOG_LINES
from activities.ports.nodes import NodeDriver, NodeDrivers
from domain.diagnosis.logs.layouts import in_kafkas_layout
from domain.diagnosis.logs.lines import Found
from domain.health.quorum import quorum_leader
from domain.observed.observation import MigrationGauge, Observation
from domain.records import ClusterRecord
from domain.zk_to_kraft.causes.failed_writes import has_begun_to_write, in_words, refused_in


@dataclass(frozen=True)
class Writing:
    """What a controller says of its writes to ZooKeeper. `is_whole`: its log reaches back to when it began with them."""

    refused: Found | None = None
    is_whole: bool = True


async def writing_of_leader(
    observation: Observation, cluster: ClusterRecord, drivers: NodeDrivers, strays: Collection[int]
) -> Writing:
    """Of the controller that leads, since it does; nothing where none does. Raises as its driver does. `strays`: offsets of
    what ZooKeeper cannot hold."""
    leader = quorum_leader(observation, cluster.spec)
    if leader is None or leader.metrics.migration_gauge is not MigrationGauge.MIGRATION:
        return Writing()
    return await writing_of(drivers.driver(cluster.spec.node(leader.id)), strays)


async def writing_of(driver: NodeDriver, strays: Collection[int]) -> Writing:
    """The same of the controller of this driver."""
    lines = in_kafkas_layout((await driver.output(LOG_LINES)).lines)
    return Writing(refused_in(lines, strays), has_begun_to_write(lines))


async def refused_last(driver: NodeDriver, strays: Collection[int]) -> Found | None:
    """The same in the last that it has printed into the output file: in a tenth of the time."""
    return refused_in(in_kafkas_layout(await driver.output_tail(LOG_LINES)), strays)


def told(found: Found, name: str) -> str:
    """What that means for a way back, and what to do first. `name`: of the controller."""
    return (
        f"{name} could not write a change to ZooKeeper, and does not try again: {in_words(found)}. Fix what it names (GET "
        f"blockers), then restart {name}: the next active controller writes what differs."
    )
