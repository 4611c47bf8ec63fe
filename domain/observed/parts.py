"""What all parts of an observation are made of."""

from pydantic import BaseModel, ConfigDict

from domain.errors import Obstacle


class ObservedPart(BaseModel):
    """Frozen, comparable, and tolerant of fields that an older observation has and we no longer know."""

    model_config = ConfigDict(frozen=True)


NO_ANSWER = "no answer within"
"""Before the time that was given: what was asked did not come, where other reasons are answers."""
LEAST_SECONDS = 0.25
"""With less than that nobody could have answered: what did not come then says nothing of who was asked."""


def no_answer(seconds: float) -> str:
    """Why there is none of what was asked for so long."""
    return f"{NO_ANSWER} {seconds:.2g} s" if seconds >= LEAST_SECONDS else "not looked up, no time was left for it"


class Unanswered(ObservedPart):
    """A part that did not answer: `what` as in `zookeeper`, `metrics of broker-2`; `why` without any secret.

    `is_refused`: it never will, before somebody corrects what we were given. `broker_id`, `address`: the one broker because of
    which it did not, and where nobody listens though that broker is said to. `obstacle`: why, where that is known.
    `is_cut_short`: it had less time than a migration's own looks give it. `listed`: brokers that one or the other lists, where
    they do not agree.
    """

    what: str
    why: str
    is_refused: bool = False
    broker_id: int | None = None
    address: str | None = None
    obstacle: Obstacle | None = None
    is_cut_short: bool = False
    listed: tuple[int, ...] = ()

    @property
    def in_words(self) -> str:
        more = ". This look had less time than the migration's own: a large answer, or a slow network, may be all"
        return self.why + (more if self.is_cut_short else "")


class Suspect(ObservedPart):
    """A znode that Kafka's copy cannot read, or what a failover would choke on: what it is, and why.

    `is_mended_by_window`: the revert window mends it by itself. `is_lost_change`: ZooKeeper has not got it, and a way back is
    without it; `offset`: that of its record in the quorum's log.
    """

    what: str
    why: str
    is_mended_by_window: bool = False
    is_lost_change: bool = False
    offset: int = -1


GAUGES_OF_ANOTHER = "these are the gauges of node"
"""What an endpoint is told of that answers for another node: then that one is well, and nobody is to end it."""
