"""`python -m playground.load_process DIRECTORY RATE BOOTSTRAP TOPIC…`: writes and reads until SIGTERM.

A process of its own, so that whatever else the demo does cannot delay the moment at which an acknowledgement is seen.
One thread sends and polls, one reads along.
"""

import itertools
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from playground.acknowledgements import Recorder
from playground.clients import client_configuration

log = logging.getLogger("playground.load")

PUBLISH_EVERY_SECONDS = 0.2
GIVE_UP_AFTER_MS = 120_000
PAYLOAD = "x" * 120


def producer(bootstrap_servers: Sequence[str]) -> Producer:
    """Idempotent: a retried message is stored once, in order."""
    settings = {"acks": "all", "enable.idempotence": True, "linger.ms": 5, "delivery.timeout.ms": GIVE_UP_AFTER_MS}
    return Producer(client_configuration(bootstrap_servers) | settings, logger=log)


def write(recorder: Recorder, sender: Producer, topics: Sequence[str], rate: float, stopped: Callable[[], bool]) -> None:
    """Sends `rate` messages a second in turn to `topics`; a sender that falls behind does not catch up in a burst."""
    run = f"{os.getpid()}-{int(time.time() * 1000):x}"
    due = published = time.monotonic()
    for number, topic in zip(itertools.count(), itertools.cycle(topics), strict=False):
        if stopped():
            return
        send(recorder, sender, topic, f"{run}-{number}")
        due = max(due + 1 / rate, time.monotonic() - 1)
        while (now := time.monotonic()) < due:
            sender.poll(due - now)
        sender.poll(0)
        if now - published > PUBLISH_EVERY_SECONDS:
            recorder.publish(now)
            published = now


def send(recorder: Recorder, sender: Producer, topic: str, identifier: str) -> None:
    """One message, as soon as the client takes it; only then it counts as sent. Its value begins with the number of this
    sending, so that a reader can tell a second sending from a producer's retry. As long as a delivery may take it does not
    where its queue is full, because brokers pause, or where a broker that has just started in ZooKeeper mode has told it of no
    topic: Kafka serves before its controller has said what there is, and librdkafka leaves it to the application to try again.
    """
    begun = time.monotonic()
    confirm = partial(_confirm, recorder, identifier, begun)
    while True:
        try:
            sender.produce(topic, key=identifier, value=f"{recorder.sent} {PAYLOAD}", on_delivery=confirm)
        except BufferError:
            sender.poll(0.1)
        except KafkaException as error:
            is_late = time.monotonic() - begun > GIVE_UP_AFTER_MS / 1000
            if error.args[0].code() != KafkaError._UNKNOWN_TOPIC or is_late:
                raise
            sender.poll(0.1)
        else:
            recorder.sent += 1
            return


def _confirm(recorder: Recorder, identifier: str, sent_at: float, error: KafkaError | None, _: Message) -> None:
    if error is None:
        recorder.acknowledge(identifier, sent_at, time.monotonic())
    else:
        log.warning("%s was not acknowledged: %s", identifier, error)
        recorder.give_up()


def read_along(
    recorder: Recorder, bootstrap_servers: Sequence[str], topics: Sequence[str], stopped: Callable[[], bool]
) -> None:
    """A consumer group that follows the writes, as a real application would."""
    settings = {"group.id": "playground-load", "auto.offset.reset": "earliest", "session.timeout.ms": 10_000}
    consumer = Consumer(client_configuration(bootstrap_servers) | settings, logger=log)
    try:
        consumer.subscribe(list(topics))
        while not stopped():
            messages = consumer.consume(500, timeout=0.2)
            recorder.consumed += sum(message.error() is None for message in messages)
    finally:
        consumer.close()


def run(directory: Path, rate: float, bootstrap_servers: Sequence[str], topics: Sequence[str]) -> None:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with Recorder(directory) as recorder:
        reader = threading.Thread(target=read_along, args=(recorder, bootstrap_servers, topics, stop.is_set))
        reader.start()
        try:
            sender = producer(bootstrap_servers)
            write(recorder, sender, topics, rate, stop.is_set)
            sender.flush(GIVE_UP_AFTER_MS / 1000)
        finally:
            stop.set()  # a producer that failed ends the process: readers alone would look like a load
            reader.join()
            recorder.publish(time.monotonic())


def main() -> None:
    directory, rate, bootstrap_servers, *topics = sys.argv[1:]
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    run(Path(directory), float(rate), bootstrap_servers.split(","), topics)


if __name__ == "__main__":
    main()
