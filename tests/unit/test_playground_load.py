"""How the load is sent while brokers start, and read back while leaders have only just been elected."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from domain.errors import Transient
from playground import load
from playground.acknowledgements import Recorder
from playground.load_process import send
from playground.load_report import Copy


class NewLeader:
    """A consumer of one message, in a partition whose leader refuses to tell the end at first."""

    refusals: Iterator[int]

    def __init__(self, configuration: object) -> None:
        self._unread = [
            SimpleNamespace(
                topic=lambda: "t",
                partition=lambda: 0,
                error=lambda: None,
                key=lambda: b"first",
                value=lambda: b"7 x",
                offset=lambda: 0,
            )
        ]

    def list_topics(self, timeout: float) -> object:
        return SimpleNamespace(topics={"t": SimpleNamespace(partitions={0: None})})

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        code = next(self.refusals, None)
        if code is not None:
            raise KafkaException(KafkaError(code))
        return 0, 1

    def assign(self, partitions: list[TopicPartition]) -> None: ...

    def consume(self, count: int, timeout: float) -> list[object]:
        return [self._unread.pop()]

    def close(self) -> None: ...


def read_with(monkeypatch: pytest.MonkeyPatch, refusals: Iterator[int], still_seconds: float) -> list[Copy]:
    monkeypatch.setattr(NewLeader, "refusals", refusals, raising=False)
    monkeypatch.setattr(load, "Consumer", NewLeader)
    return load.read_everything(["127.0.0.1:1"], ["t"], still_seconds)


def test_a_leader_whose_high_watermark_is_not_confirmed_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = iter([KafkaError.OFFSET_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION])
    assert read_with(monkeypatch, refusals, 60.0) == [Copy("first", 7)]


def test_an_end_that_is_never_told_is_no_complete_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    always = iter(lambda: KafkaError.OFFSET_NOT_AVAILABLE, None)
    with pytest.raises(Transient, match="the end of t-0 is not reported"):
        read_with(monkeypatch, always, 0.2)


def test_what_does_not_pass_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        read_with(monkeypatch, iter([KafkaError.TOPIC_AUTHORIZATION_FAILED]), 60.0)


class Sender:
    """A producer that refuses so many times."""

    def __init__(self, *refusals: Exception) -> None:
        self.refusals = iter(refusals)
        self.sent: list[str] = []

    def produce(self, topic: str, **message: Any) -> None:
        if (refusal := next(self.refusals, None)) is not None:
            raise refusal
        self.sent.append(message["key"])

    def poll(self, timeout: float) -> None: ...


def test_a_message_is_sent_once_the_client_takes_it(tmp_path: Path) -> None:
    """A broker in ZooKeeper mode that has just started tells clients of no topic for a moment."""
    sender: Any = Sender(KafkaException(KafkaError(KafkaError._UNKNOWN_TOPIC)), BufferError())
    with Recorder(tmp_path) as recorder:
        send(recorder, sender, "t", "first")
        assert (sender.sent, recorder.sent) == (["first"], 1)


def test_a_message_that_the_client_refuses_for_good_ends_the_load(tmp_path: Path) -> None:
    sender: Any = Sender(KafkaException(KafkaError(KafkaError._FATAL)))
    with Recorder(tmp_path) as recorder, pytest.raises(KafkaException):
        send(recorder, sender, "t", "first")
