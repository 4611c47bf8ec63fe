"""What a change of replication factors leads to, as a request says it."""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from domain.of_kind import Wanted

MOST_REPLICAS = 32767
"""A factor is an int16 for Kafka."""
LONGEST_TOPIC = 249
TOPIC = re.compile(r"[a-zA-Z0-9._-]+")
INTERNAL = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics that Kafka makes for itself: changed only where they are named."""
UNITS = {
    unit: factor
    for power, letter in enumerate("kMGT", start=1)
    for unit, factor in ((f"{letter}B", 1000**power), (f"{letter.upper()}iB", 1024**power))
}
AMOUNT = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(UNITS)})")


def bytes_of(amount: str, per_second: str = "") -> int:
    """`20MB` is 20,000,000 and `20MiB` 20,971,520. Raises `ValueError` if the unit is missing, or the amount is 0."""
    found = AMOUNT.fullmatch(amount.removesuffix(per_second))
    if found is None or (per_second and not amount.endswith(per_second)):
        raise ValueError(f"{amount!r}: give a number with its unit, such as 20MB{per_second} ({', '.join(UNITS)})")
    count = int(float(found[1]) * UNITS[found[2]])
    if not count:
        raise ValueError(f"{amount!r}: 0 bytes{per_second} would never end")
    return count


def _topic(name: str) -> str:
    if name in {".", ".."} or len(name) > LONGEST_TOPIC or TOPIC.fullmatch(name) is None:
        raise ValueError(f"{name!r} is no name of a topic")
    return name


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from error
    return text


def _rate(text: str) -> str:
    bytes_of(text, "/s")
    return text


def _size(text: str) -> str:
    bytes_of(text)
    return text


Topic = Annotated[str, AfterValidator(_topic)]
Factor = Annotated[int, Field(strict=True, ge=1, le=MOST_REPLICAS)]


class Assigned(BaseModel):
    """One partition of an assignment, as `kafka-reassign-partitions` has it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topic: Topic
    partition: Annotated[int, Field(strict=True, ge=0)]
    replicas: Annotated[tuple[Annotated[int, Field(strict=True, ge=0)], ...], Field(min_length=1)]
    log_dirs: tuple[str, ...] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        name = f"{self.topic}-{self.partition}"
        doubled = sorted({i for i in self.replicas if self.replicas.count(i) > 1})
        if doubled:
            raise ValueError(f"{name}: broker {', '.join(map(str, doubled))} is named twice")
        if self.log_dirs is not None and set(self.log_dirs) != {"any"}:
            raise ValueError(f"{name}: log_dirs names directories, which is not supported: leave them out, or say 'any'")
        return self


class Assignment(BaseModel):
    """The JSON of `kafka-reassign-partitions`, as it is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    partitions: Annotated[tuple[Assigned, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_once(self) -> Self:
        names = Counter((one.topic, one.partition) for one in self.partitions)
        if doubled := sorted(name for name, count in names.items() if count > 1):
            raise ValueError(f"{doubled[0][0]}-{doubled[0][1]} is assigned twice")
        return self


class FactorChange(BaseModel):
    """One change: of topics by name, of those that a pattern matches, or an assignment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topics: Annotated[tuple[Topic, ...], Field(min_length=1)] | None = Field(
        default=None, description="Names of topics. Kafka's own, such as `__consumer_offsets`, are changed only if named here."
    )
    pattern: Annotated[str, AfterValidator(_pattern)] | None = Field(
        default=None, description="A regular expression that the whole name matches. The plan names the topics."
    )
    replication_factor: Factor | None = Field(default=None, description="What these topics are to have.")
    assignment: Assignment | None = Field(default=None, description="The JSON of `kafka-reassign-partitions`, as it is.")

    @model_validator(mode="after")
    def _check_one_of(self) -> Self:
        named = [part for part in ("topics", "pattern", "assignment") if getattr(self, part) is not None]
        if len(named) != 1:
            raise ValueError("give exactly one of topics, pattern and assignment")
        if (self.replication_factor is None) == (self.assignment is None):
            raise ValueError("topics and pattern need replication_factor; an assignment has its own")
        return self

    @property
    def named(self) -> set[str]:
        """Topics that it names itself."""
        return {*(self.topics or ()), *(one.topic for one in (self.assignment.partitions if self.assignment else ()))}

    def matched(self, known: Collection[str]) -> list[str]:
        """Topics that it is about, of those known. A pattern never matches Kafka's own."""
        if self.pattern is None:
            return sorted(self.named & set(known))
        pattern = re.compile(self.pattern)
        return sorted(name for name in known if name not in INTERNAL and pattern.fullmatch(name))


class Limits(BaseModel):
    """What a change may take at the same time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bytes_in_flight: Annotated[str, AfterValidator(_size)] = Field(
        default="20GB",
        description="What a broker sends or receives at the same time. A partition that is larger goes alone.",
    )


class ReplicationFactorWanted(Wanted):
    """The replication factors that topics are to have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    changes: Annotated[tuple[FactorChange, ...], Field(min_length=1)]
    engine: Literal["native"] = Field(default="native", description="What moves replicas.")
    throttle: Annotated[str, AfterValidator(_rate)] | None = Field(
        default=None,
        description="What each broker may copy, with its unit, such as `20MB/s`. Without it, nothing slows it.",
    )
    limits: Limits = Limits()

    @property
    def bytes_per_second(self) -> int | None:
        """Per broker."""
        return None if self.throttle is None else bytes_of(self.throttle, "/s")

    def unmatched(self, known: Collection[str]) -> Iterator[str]:
        """What names no topic of the cluster, in words."""
        for change in self.changes:
            if change.pattern is not None and not change.matched(known):
                yield f"pattern {change.pattern!r} matches no topic"
            named = [
                *(change.topics or ()),
                *(one.topic for one in (change.assignment.partitions if change.assignment else ())),
            ]
            yield from (f"there is no topic {name}" for name in sorted(set(named) - set(known)))

    def doubly_matched(self, known: Collection[str]) -> list[str]:
        """Topics that two changes are about."""
        matched = Counter(name for change in self.changes for name in change.matched(known))
        return sorted(name for name, count in matched.items() if count > 1)

    def factors(self, known: Collection[str]) -> dict[str, int]:
        """By topic; nothing of those with an assignment."""
        return {
            name: change.replication_factor
            for change in self.changes
            if change.replication_factor is not None
            for name in change.matched(known)
        }
