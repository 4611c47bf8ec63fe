"""Where a JVM stands, by the stacks of the threads that start and end a node."""

import pytest

from domain.zk_to_kraft.threads import HOOK, UNRESOLVED, Standing, Thread, where_it_stands

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


def test_a_deadlock_is_told_first() -> None:
    told = where_it_stands({"main": Thread(WAITS, AWAITS)}, is_deadlocked=True)
    assert told.words.startswith("its JVM has found a deadlock")
    assert not told.is_of_plugin
