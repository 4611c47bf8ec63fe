"""Topics are created and deleted also while the broker that is asked goes away."""

from collections.abc import Mapping
from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from playground.clients import change_topics

GONE, UNKNOWN, REFUSED = KafkaError._TRANSPORT, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED


class Answers:
    """What one topic's request is answered with, try by try; None is done."""

    def __init__(self, *codes: int | None) -> None:
        self.left = list(codes)

    def ask(self) -> Mapping[str, Future[None]]:
        future: Future[None] = Future()
        code = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        if code is None:
            future.set_result(None)
        else:
            future.set_exception(KafkaException(KafkaError(code)))
        return {"orders": future}


@pytest.mark.parametrize("codes", [(None,), (GONE, None), (GONE, UNKNOWN), (KafkaError.NOT_CONTROLLER, GONE, None)])
def test_who_goes_away_before_the_answer_is_asked_again(codes: tuple[int | None, ...]) -> None:
    change_topics(Answers(*codes).ask, UNKNOWN, 60.0)


@pytest.mark.parametrize("codes", [(UNKNOWN,), (REFUSED,), (GONE, REFUSED)])
def test_what_kafka_refuses_is_told_at_once(codes: tuple[int, ...]) -> None:
    with pytest.raises(KafkaException) as told:
        change_topics(Answers(*codes, None).ask, UNKNOWN, 60.0)
    assert told.value.args[0].code() == codes[-1]


def test_who_never_answers_is_told_at_the_end() -> None:
    with pytest.raises(KafkaException, match="_TRANSPORT"):
        change_topics(Answers(GONE).ask, UNKNOWN, 0.5)
