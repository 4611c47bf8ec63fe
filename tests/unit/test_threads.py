"""Where a JVM stands, by the stacks of the threads that start and end a node."""

import pytest

from domain.diagnosis.logs.threads import (
    CONVERTS_FIX,
    HOOK,
    PLUGIN_FIX,
    UNRESOLVED,
    Standing,
    Thread,
    at_work_in,
    where_it_stands,
)

REPORTER = (
    "java.net.Socket.connect",
    "com.example.OwnReporter.close",
    "org.apache.kafka.common.metrics.Metrics.close",
    "kafka.server.KafkaServer.shutdown",
)
AWAITS = (
    "jdk.internal.misc.Unsafe.park",
    "java.util.concurrent.CountDownLatch.await",
    "kafka.server.KafkaServer.awaitShutdown",
)
APPENDER = ("java.net.PlainSocketImpl.socketConnect", "org.apache.log4j.net.SocketAppender.connect", "kafka.Kafka.main")


LOADS = (
    "java.io.RandomAccessFile.readBytes",
    "org.apache.kafka.common.record.FileRecords.readInto",
    "kafka.log.LogLoader.load",
    "kafka.server.KafkaServer.startup",
)
ASKS_ZOOKEEPER = ("sun.nio.ch.Net.poll", "kafka.zookeeper.ZooKeeperClient.waitUntilConnected", "kafka.Kafka.main")
ASKS_FOR_A_NAME = (
    "java.net.Inet6AddressImpl.lookupAllHostAddr",
    "java.net.InetAddress$PlatformNameService.lookupAllHostAddr",
    "java.net.InetAddress.getAllByName",
    "org.apache.zookeeper.client.StaticHostProvider.next",
    "kafka.Kafka.main",
)
POLLS = ("sun.nio.ch.EPoll.wait", "com.example.OwnReporter.configure", "kafka.Kafka.main")
SLEEPS = ("java.lang.Thread.sleep", "com.example.OwnReporter.configure", "kafka.Kafka.main")
AWAITS_ZOOKEEPER = ("jdk.internal.misc.Unsafe.park", "kafka.zookeeper.ZooKeeperClient.waitUntilConnected", "kafka.Kafka.main")
RUNS, WAITS, SLEEPING = "RUNNABLE", "WAITING", "TIMED_WAITING"
IN_CLOSE = "is in java.net.Socket.connect, called from com.example.OwnReporter.close"


@pytest.mark.parametrize(
    ("threads", "told", "is_of_plugin"),
    [
        ({"main": (RUNS, REPORTER)}, f"its thread main {IN_CLOSE}", True),
        (
            {"main": (RUNS, APPENDER)},
            "its thread main is in java.net.PlainSocketImpl.socketConnect, called from "
            "org.apache.log4j.net.SocketAppender.connect",
            True,
        ),
        (
            {"main": (WAITS, AWAITS), "SIGTERM handler": (WAITS, ("java.lang.Object.wait",)), HOOK: (RUNS, REPORTER)},
            f"its thread {HOOK} {IN_CLOSE}",
            True,
        ),
        (
            {"main": (SLEEPING, SLEEPS)},
            "its thread main is in java.lang.Thread.sleep, called from com.example.OwnReporter.configure",
            True,
        ),
        (
            {"main": (SLEEPING, AWAITS_ZOOKEEPER)},
            "its thread main is in jdk.internal.misc.Unsafe.park, called from "
            "kafka.zookeeper.ZooKeeperClient.waitUntilConnected",
            False,
        ),
        (
            {"main": (RUNS, ASKS_FOR_A_NAME)},
            "its thread main is in java.net.Inet6AddressImpl.lookupAllHostAddr, called from "
            f"org.apache.zookeeper.client.StaticHostProvider.next{UNRESOLVED}",
            False,
        ),
        ({"main": (WAITS, AWAITS)}, "", False),
        ({"main": (RUNS, LOADS)}, "", False),
        ({"main": (RUNS, ASKS_ZOOKEEPER)}, "", False),
        ({"main": (RUNS, POLLS)}, "", False),
        ({"main": (RUNS, ())}, "", False),
        ({}, "", False),
    ],
)
def test_where_it_stands(threads: dict[str, tuple[str, tuple[str, ...]]], told: str, is_of_plugin: bool) -> None:
    given = {name: Thread(*thread) for name, thread in threads.items()}
    assert where_it_stands(given, is_deadlocked=False) == Standing(told, is_of_plugin)


EVENTS = ("jdk.internal.misc.Unsafe.park", "org.apache.kafka.queue.KafkaEventQueue$EventHandler.handleEvents")
DECIDING = ("java.util.HashMap.get", "org.apache.kafka.controller.ReplicationControlManager.alterPartition", *EVENTS[1:])
IN_POLICY = ("java.net.Socket.connect", "com.example.OwnPolicy.validate", "org.apache.kafka.controller.QuorumController.x")
WRITING = (
    "jdk.internal.misc.Unsafe.park",
    "java.util.concurrent.CountDownLatch.await",
    "kafka.zookeeper.ZooKeeperClient.handleRequests",
    "org.apache.kafka.metadata.migration.KRaftMigrationDriver.x",
)


ZOOKEEPERS = ("jdk.internal.misc.Unsafe.park", "kafka.controller.ControllerEventManager$ControllerEventThread.doWork")
QUORUM, DRIVER = "quorum-controller-3001-event-handler", "controller-3001-migration-driver-event-handler"


@pytest.mark.parametrize(
    ("name", "state", "places", "told"),
    [
        (QUORUM, WAITS, EVENTS, ""),
        (QUORUM, RUNS, DECIDING, ""),
        (QUORUM, WAITS, DECIDING, ""),
        (QUORUM, RUNS, IN_POLICY, "is in java.net.Socket.connect, called from com.example.OwnPolicy.validate"),
        (DRIVER, WAITS, WRITING, "called from kafka.zookeeper.ZooKeeperClient.handleRequests"),
        (DRIVER, WAITS, EVENTS, ""),
        ("controller-event-thread", WAITS, ZOOKEEPERS, ""),
    ],
)
def test_where_who_decides_stands(name: str, state: str, places: tuple[str, ...], told: str) -> None:
    found = where_it_stands({name: Thread(state, places)}, is_deadlocked=False)
    assert told in found.words
    assert bool(told) is bool(found.words)


def test_a_deadlock_is_told_first() -> None:
    told = where_it_stands({"main": Thread(WAITS, AWAITS)}, is_deadlocked=True)
    assert told.words.startswith("its JVM has found a deadlock")
    assert not told.is_of_plugin


AT_REST = ("sun.nio.ch.EPoll.wait", "org.apache.kafka.common.network.Selector.select", "kafka.network.Processor.run")
IDLE = ("java.util.concurrent.ArrayBlockingQueue.poll", "kafka.network.RequestChannel.receiveRequest")
CONVERTING = (
    "java.util.zip.Inflater.inflateBytesBytes",
    "org.apache.kafka.common.record.DefaultRecordBatch$3.next",
    "org.apache.kafka.common.record.RecordsUtil.downConvert",
    "org.apache.kafka.common.record.LazyDownConversionRecords$Iterator.makeNext",
    "org.apache.kafka.common.network.NetworkSend.writeTo",
    "kafka.network.Processor.run",
)
ASKING = (
    "sun.nio.ch.SocketDispatcher.read0",
    "com.example.policy.RemoteAuthorizer.authorize",
    "kafka.server.AuthHelper.authorize",
    "kafka.server.KafkaRequestHandler.run",
)


def pool(kind: str, *stacks: tuple[str, ...]) -> dict[str, Thread]:
    return {f"data-plane-kafka-{kind}-{n}": Thread("RUNNABLE", places) for n, places in enumerate(stacks)}


@pytest.mark.parametrize(
    ("threads", "words", "fix"),
    [
        (pool("network-thread", CONVERTING, CONVERTING, AT_REST), "2 of its 3 network-threads convert records", CONVERTS_FIX),
        (pool("network-thread", CONVERTING, AT_REST, AT_REST), "", ""),
        (
            pool("request-handler", *(ASKING,) * 5, *(IDLE,) * 3),
            "5 of its 8 request-handlers are in com.example",
            PLUGIN_FIX,
        ),
        (pool("request-handler", ASKING, *(IDLE,) * 7), "", ""),
        (pool("network-thread", *(AT_REST,) * 3) | pool("request-handler", *(IDLE,) * 8), "", ""),
        ({"main": Thread("RUNNABLE", ASKING)}, "", ""),
    ],
    ids=["old clients", "one of them", "a plug-in", "one request", "at rest", "another thread"],
)
def test_what_a_broker_is_at_that_answers_nobody(threads: dict[str, Thread], words: str, fix: str) -> None:
    found = at_work_in(threads)
    assert found.words.startswith(words)
    assert bool(found.words) is bool(words)
    assert found.fix == fix


def test_who_starts_and_ends_a_node_is_not_taken_for_who_works_on_requests() -> None:
    assert where_it_stands(pool("request-handler", *(IDLE,) * 8), is_deadlocked=False) == Standing("", is_of_plugin=False)
