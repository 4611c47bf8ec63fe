"""What a cluster holds, as its brokers tell it."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from playground import content
from playground.content import Content, content_of


class JustStarted:
    """The admin client of a broker in ZooKeeper mode whose controller has told it of no topic yet. It refuses an empty list."""

    def list_topics(self, timeout: float) -> Any:
        return SimpleNamespace(topics={})

    def describe_configs(self, resources: list[Any]) -> Any:
        raise ValueError("Expected non-empty list of ConfigResource objects")

    def describe_acls(self, everything: Any) -> Any:
        return self._answered([])

    def describe_user_scram_credentials(self) -> Any:
        return self._answered({})

    def _answered(self, answer: Any) -> Future[Any]:
        answered: Future[Any] = Future()
        answered.set_result(answer)
        return answered


def test_a_broker_that_knows_of_no_topic_tells_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "admin_client", lambda _: JustStarted())
    assert content_of(["127.0.0.1:9092"]) == Content({}, frozenset(), frozenset())
