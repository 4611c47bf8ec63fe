"""Continuous `acks=all` writes, every message with an identifier of its own, and the proof at the end.

load = Load(cluster.bootstrap_servers, directory)
with load:
    …                       # load.counters() at any moment
load.verify().lost          # must be empty
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from domain.errors import Transient
from playground import processes
from playground.acknowledgements import LoadCounters, read_counters, read_identifiers
from playground.clients import admin_client, client_configuration
from playground.load_report import Copy, LoadReport, compare
from playground.processes import Launch
from playground.progress import wait_while_working
from playground.seed import Topic, create_topics

# Nothing here may expire or be compacted away: what was acknowledged must be readable at the end.
KEEP = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
LOAD_TOPICS = (
    Topic("load.strict", 6, config={"min.insync.replicas": "2"} | KEEP),
    Topic("load.single", 1, config={"min.insync.replicas": "2"} | KEEP),
    Topic("load.relaxed", 6, config={"min.insync.replicas": "1"} | KEEP),
    Topic("load.two-replicas", 4, replication_factor=2, config={"min.insync.replicas": "1"} | KEEP),
)
DEFAULT_RATE = 200.0

NOT_TOLD_YET = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
    }
)
"""A leader that was just elected tells no end before its followers have confirmed its high watermark (KIP-207)."""


class Load:
    """One run of the writing process. `directory`, its own, takes its pid file, log, counters and identifiers."""

    def __init__(
        self,
        bootstrap_servers: Sequence[str],
        directory: Path,
        *,
        topics: Sequence[Topic] = LOAD_TOPICS,
        rate_per_second: float = DEFAULT_RATE,
    ) -> None:
        self.directory = directory.absolute()
        self._bootstrap_servers = tuple(bootstrap_servers)
        self._topics = tuple(topics)
        self._launch = self._launch_at(rate_per_second)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self, servers: Sequence[Launch] = ()) -> None:
        """Creates the topics, starts writing; returns at the first acknowledgement. `servers`: whom it writes to."""
        if self.counters().sent:
            raise RuntimeError(f"{self.directory} holds another run: give every run a directory of its own")
        create_topics(admin_client(self._bootstrap_servers), self._topics, servers)
        processes.start(self._launch)
        try:
            self.await_acknowledged(1)
        except BaseException:
            self.stop(grace_seconds=0)
            raise

    def stop(self, grace_seconds: float = 130.0) -> None:
        """Lets messages on their way arrive (at most the producer's delivery timeout), then ends the process."""
        process = processes.running(self._launch)
        processes.stop([process] if process else [], grace_seconds)

    def counters(self) -> LoadCounters:
        return read_counters(self.directory)

    def await_acknowledged(self, more: int) -> None:
        """Returns when `more` further messages were acknowledged. Raises Transient, with the end of the log."""
        wanted = self._acknowledged() + more
        what = f"{more} more acknowledgements"
        wait_while_working(lambda: self._acknowledged() >= wanted, what, [self._launch], measure=self._acknowledged)

    def _acknowledged(self) -> int:
        return self.counters().acknowledged

    def pids(self) -> list[int]:
        process = processes.running(self._launch)
        return [process.pid] if process else []

    def verify(self, still_seconds: float = 120.0) -> LoadReport:
        """Reads everything back from the beginning. To be called when the writing has stopped."""
        if self.pids():
            raise RuntimeError("the load is still writing: stop it before you compare")
        read = read_everything(self._bootstrap_servers, [topic.name for topic in self._topics], still_seconds)
        counters = self.counters()
        return compare(
            read_identifiers(self.directory),
            read,
            unacknowledged=counters.unacknowledged,
            longest_pause_seconds=counters.longest_pause_seconds,
            slowest_acknowledgement_seconds=counters.slowest_acknowledgement_seconds,
        )

    def _launch_at(self, rate_per_second: float) -> Launch:
        names = [topic.name for topic in self._topics]
        module = ("-m", "playground.load_process", str(self.directory), str(rate_per_second))
        return Launch(
            name="load",
            command=(sys.executable, *module, ",".join(self._bootstrap_servers), *names),
            pid_file=self.directory / "load.pid",
            output_file=self.directory / "load.log",
            environment={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
            mark=str(self.directory),
        )


def read_everything(bootstrap_servers: Sequence[str], topics: Sequence[str], still_seconds: float) -> list[Copy]:
    """Every message between beginning and end of the topics, as often as it is there.

    Raises Transient when nothing was read for `still_seconds`: an incomplete reading would look like a loss.
    """
    settings = {"group.id": "playground-verify", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer(client_configuration(bootstrap_servers) | settings)
    try:
        return list(_read_to_the_end(consumer, topics, still_seconds))
    finally:
        consumer.close()


def _read_to_the_end(consumer: Consumer, topics: Sequence[str], still_seconds: float) -> Iterator[Copy]:
    ends = _end_offsets(consumer, topics, still_seconds)
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for topic, number in ends])
    unfinished = {partition for partition, end in ends.items() if end > 0}
    moved = time.monotonic()
    while unfinished:
        if time.monotonic() - moved > still_seconds:
            raise Transient(f"{len(unfinished)} of {len(ends)} partitions were not read to their end: {sorted(unfinished)}")
        for message in consumer.consume(1000, timeout=0.5):
            moved = time.monotonic()
            partition = (message.topic() or "", message.partition() or 0)
            if error := message.error():
                has_ended = error.code() == KafkaError._PARTITION_EOF
            else:
                yield _copy_of(message)
                has_ended = (message.offset() or 0) + 1 >= ends[partition]
            if has_ended:
                unfinished.discard(partition)


def _copy_of(message: Message) -> Copy:
    sending, _, _ = (message.value() or b"").partition(b" ")
    return Copy((message.key() or b"").decode("ascii"), int(sending))


def _end_offsets(consumer: Consumer, topics: Sequence[str], still_seconds: float) -> dict[tuple[str, int], int]:
    """(topic, partition) → the high watermark now."""
    metadata = consumer.list_topics(timeout=30)
    partitions = [TopicPartition(topic, number) for topic in topics for number in metadata.topics[topic].partitions]
    return {(p.topic, p.partition): _end_offset(consumer, p, still_seconds) for p in partitions}


def _end_offset(consumer: Consumer, partition: TopicPartition, still_seconds: float) -> int:
    deadline = time.monotonic() + still_seconds
    while True:
        try:
            return consumer.get_watermark_offsets(partition, timeout=max(min(30.0, deadline - time.monotonic()), 0.1))[1]
        except KafkaException as error:
            if error.args[0].code() not in NOT_TOLD_YET:
                raise
            if time.monotonic() > deadline:
                raise Transient(f"the end of {partition.topic}-{partition.partition} is not reported: {error}") from error
        time.sleep(0.1)


def main(arguments: Sequence[str]) -> None:
    """For whom a container separates from the files: the process that writes outlives `start`."""
    command, directory, servers = arguments
    load = Load(servers.split(","), Path(directory))
    match command:
        case "start":
            load.start()
        case "verify":
            load.stop()
            print(json.dumps(asdict(load.verify()), default=sorted))
        case _:
            sys.exit("usage: python -m playground.load start | verify DIRECTORY BOOTSTRAP")


if __name__ == "__main__":
    main(sys.argv[1:])
