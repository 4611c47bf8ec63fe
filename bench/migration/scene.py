"""The cluster that a contender gets: new, seeded, in ZooKeeper mode, under acks=all writes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playground.clients import admin_client
from playground.cluster import PlaygroundCluster
from playground.load import Load
from playground.load_report import LoadReport
from playground.seed import Topic, create_topics, seed

TOPICS_AT_ONCE = 500


@dataclass(frozen=True)
class Size:
    """`topics`: of one partition with three replicas, besides those of the seed."""

    brokers: int = 3
    racks: int | None = None
    topics: int = 0


@dataclass(frozen=True)
class Scene:
    directory: Path
    cluster: PlaygroundCluster
    load: Load

    def verified(self) -> LoadReport:
        """Once the load has written on after the migration."""
        self.load.await_acknowledged(200)
        self.load.stop()
        return self.load.verify()


@contextmanager
def scene(directory: Path, size: Size) -> Iterator[Scene]:
    with PlaygroundCluster(directory / "cluster", broker_count=size.brokers, rack_count=size.racks) as cluster:
        seed(cluster.bootstrap_servers)
        for begin in range(0, size.topics, TOPICS_AT_ONCE):
            names = range(begin, min(begin + TOPICS_AT_ONCE, size.topics))
            create_topics(admin_client(cluster.bootstrap_servers), [Topic(f"many-{n:05}", 1) for n in names])
        cluster.await_in_sync(300)
        with Load(cluster.bootstrap_servers, directory / "load") as load:
            yield Scene(directory, cluster, load)


def told(report: LoadReport) -> Mapping[str, Any]:
    return {
        "acknowledged": report.acknowledged,
        "lost": len(report.lost),
        "twice": len(report.duplicated),
        "pause": round(report.longest_pause_seconds, 2),
        "slowest": round(report.slowest_acknowledgement_seconds, 2),
    }
