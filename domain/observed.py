"""What all parts of an observation are made of."""

from pydantic import BaseModel, ConfigDict


class ObservedPart(BaseModel):
    """Frozen, comparable, and tolerant of fields that an older observation has and we no longer know."""

    model_config = ConfigDict(frozen=True)


class Unanswered(ObservedPart):
    """A part that did not answer: `what` as in `zookeeper`, `metrics of broker-2`; `why` without any secret."""

    what: str
    why: str


class Suspect(ObservedPart):
    """A znode that Kafka's copy cannot read, or what a failover would choke on: what it is, and why.

    `is_mended_by_window`: the revert window mends it by itself.
    """

    what: str
    why: str
    is_mended_by_window: bool = False
