"""The union of class lists, and when an archive is another one."""

from dataclasses import replace
from pathlib import Path

from playground.jars import KafkaHome
from playground.jvm import Runtime
from playground.shared_classes import archive_name
from spark.session.classes import union_of


def test_every_class_once_and_nothing_made_at_run_time(tmp_path: Path) -> None:
    broker, zookeeper = tmp_path / "1.classes", tmp_path / "2.classes"
    broker.write_text("# NOTE\njava/lang/Object id: 0\nkafka/Kafka$ id: 7\n@lambda-proxy kafka/Kafka$ run ()V\n")
    zookeeper.write_text("# NOTE\nkafka/Kafka$ id: 3\nx/Made id: 9 super: 0 source: jrt:/x\norg/Peer id: 4\n")
    assert union_of([broker, zookeeper]) == [
        "java/lang/Object",
        "kafka/Kafka$",
        "@lambda-proxy kafka/Kafka$ run ()V",
        "org/Peer",
    ]


def test_another_kafka_or_java_is_another_archive(tmp_path: Path) -> None:
    (tmp_path / "release").write_text('JAVA_VERSION="21"')
    runtime = Runtime(tmp_path, KafkaHome(Path("/kafka-1")), Path("/log4j.properties"))
    before = archive_name(runtime)
    assert archive_name(replace(runtime, log4j=Path("/elsewhere"))) == before
    assert archive_name(replace(runtime, kafka=KafkaHome(Path("/kafka-2")))) != before
    (tmp_path / "release").write_text('JAVA_VERSION="25"')
    assert archive_name(runtime) != before


def test_a_runtime_with_archive_says_so_on_the_command_line() -> None:
    plain = Runtime(Path("/java"), KafkaHome(Path("/kafka")), Path("/log4j.properties"))
    assert not [part for part in plain.java(96) if "SharedArchiveFile" in part]
    assert "-XX:SharedArchiveFile=/a.jsa" in replace(plain, archive=Path("/a.jsa")).java(96)
    assert plain.java(96)[-2:] == ("-cp", "/kafka/libs/*")
