"""Whole products of `Situation` and `Terms`, walked.

The products have up to 10^19 elements, so they are walked as a tree: a field takes a value only when `decide` or a property
reads it, and then takes each of its values in turn. A run that never read a field stands for all of its values. The weights
of all runs add up to the size of the product, and that is asserted: nothing was left out.

`make test` walks a sample of each product, the same one every time; `make test-real` and a plain pytest walk all of it.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any

import pytest

from domain.decisions import Intent, Step
from domain.errors import Unsafe
from domain.health.canary_debt import CanaryDebt
from domain.observed.observation import KafkaView, SharedPartitions
from domain.zk_to_kraft.conditions import GIVEN, Approval, Check, Compared, Terms
from domain.zk_to_kraft.invariant import ensure_allowed
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.situation import Claim, DualWrite, QuorumState, Registration, Replication, Situation
from domain.zk_to_kraft.steps import GateName, NodeStage, StepAction

BOOL = (False, True)
BROKER_STAGES = (None, *NodeStage)
CONTROLLER_STAGES = (None, NodeStage.MIGRATION, NodeStage.KRAFT)

BROKER_FIELDS: dict[str, Sequence[Any]] = {
    "mode": tuple(BrokerMode),
    "stage": BROKER_STAGES,
    "is_needed": BOOL,
    "is_zookeeper_controller": BOOL,
    "has_metadata_log": BOOL,
    "is_file_ours": BOOL,
    "canaries": (CanaryDebt.NONE,),
}
CONTROLLER_FIELDS: dict[str, Sequence[Any]] = {
    "mode": tuple(ControllerMode),
    "stage": CONTROLLER_STAGES,
    "is_leader": BOOL,
    "is_caught_up": BOOL,
    "is_flag_in_file": BOOL,
    "is_startable": BOOL,
    "is_file_ours": BOOL,
}
CLUSTER_FIELDS: dict[str, Sequence[Any]] = {
    "quorum": tuple(QuorumState),
    "claim": tuple(Claim),
    "dual_write": tuple(DualWrite),
    "registration": tuple(Registration),
    "replication": tuple(Replication),
    "is_copy_left_over": BOOL,
    "is_copy_stale": BOOL,
    "is_copy_failed": BOOL,
    "has_migration_znode": BOOL,
    "is_failover_harmful": BOOL,
    "is_mended_by_window": BOOL,
    "is_copy_made": BOOL,
    "is_release_due": BOOL,
    "lacks_topic_ids": BOOL,
    "running_again": ((), (1,)),
}
CHECKS = (
    Check(),
    Check(Compared.CLEAN, is_due=True),
    Check(Compared.NONE, is_missing=True),
    Check(Compared.DRIFT),
    Check(Compared.DRIFT, is_due=True),
    Check(Compared.INCONCLUSIVE),
)
"""What may be known of a look at clients' data."""
TERMS_FIELDS: dict[str, Sequence[Any]] = {
    "intent": tuple(Intent),
    "approval": tuple(Approval),
    "without_return": tuple(Approval),
    "is_held": BOOL,
    "has_begun": BOOL,
    "is_committed": BOOL,
    "is_soak_over": BOOL,
    "is_silence_long": BOOL,
    "failover": tuple(Approval),
    "may_fail_over": BOOL,
    "is_failed_copy_reverted": BOOL,
    "accepts_metadata_loss": BOOL,
    "accepts_new_topic_ids": BOOL,
    "compared": tuple(Compared),
    "is_check_due": BOOL,
    "is_checker_missing": BOOL,
    "baseline": CHECKS,
    "kept": CHECKS,
    "copy": CHECKS,
    "messages": CHECKS,
    "end": (Check(), Check(Compared.NONE, is_due=True)),
    "unaccepted": (frozenset(), frozenset({1}), frozenset({3001})),
}


SAMPLE = 10_000 if os.environ.get("KEEPERLESS_TESTS") == "quick" else None
"""Runs of a product; `None`: all."""


class Choices:
    """One path down the tree: the choices made so far, and how many there were at each fork."""

    def __init__(self, path: list[int]) -> None:
        self.path = path
        self.sizes: list[int] = []

    def choose(self, options: Sequence[Any]) -> Any:
        depth = len(self.sizes)
        if depth == len(self.path):
            self.path.append(0)
        self.sizes.append(len(options))
        return options[self.path[depth]]

    def next_path(self) -> list[int] | None:
        """The path after this one, depth first; `None` after the last."""
        path = self.path[: len(self.sizes)]
        while path and path[-1] + 1 == self.sizes[len(path) - 1]:
            path.pop()
        return [*path[:-1], path[-1] + 1] if path else None


class Drawn:
    """One element at random."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def choose(self, options: Sequence[Any]) -> Any:
        return self._random.choice(options)


class Lazy:
    """Stands for a dataclass: a field takes its value when it is read for the first time."""

    def __init__(self, choices: Choices | Drawn, fields: dict[str, Sequence[Any]], **fixed: Any) -> None:
        self.__dict__.update(fixed, _choices=choices, _fields=fields)

    def __getattr__(self, name: str) -> Any:
        value = self._choices.choose(self._fields[name])
        self.__dict__[name] = value
        return value

    def __repr__(self) -> str:
        """What has been read so far, which is all that the decision depends on."""
        return str({name: value for name, value in self.__dict__.items() if not name.startswith("_")})


class LazySituation(Lazy):
    nodes = Situation.nodes
    is_copy_gone = Situation.is_copy_gone
    is_nothing_known = Situation.is_nothing_known


class LazyTerms(Lazy):
    may_finalize = Terms.may_finalize
    has_begun_to_finalize = Terms.has_begun_to_finalize


@dataclass(frozen=True)
class Product:
    """A product of situations and terms: so many nodes, and the values that each field may take."""

    brokers: int
    controllers: int
    broker: dict[str, Sequence[Any]]
    controller: dict[str, Sequence[Any]]
    cluster: dict[str, Sequence[Any]]
    terms: dict[str, Sequence[Any]]

    @property
    def size(self) -> int:
        sizes = (prod(len(v) for v in f.values()) for f in (self.broker, self.controller, self.cluster, self.terms))
        broker, controller, cluster, terms = sizes
        return int(broker**self.brokers * controller**self.controllers * cluster * terms)

    def sample(self, check: Callable[[Any, Any], None], random: Random, count: int) -> None:
        """Call `check(situation, terms)` for so many elements at random."""
        for _ in range(count):
            self._at(Drawn(random), check)

    def _at(self, choices: "Choices | Drawn", check: Callable[[Any, Any], None]) -> None:
        brokers = tuple(Lazy(choices, self.broker, id=i) for i in range(1, self.brokers + 1))
        controllers = tuple(Lazy(choices, self.controller, id=3000 + i) for i in range(1, self.controllers + 1))
        situation = LazySituation(choices, self.cluster, brokers=brokers, controllers=controllers)
        check(situation, LazyTerms(choices, self.terms, evidence_hash="evidence"))

    def walk(self, check: Callable[[Any, Any], None]) -> tuple[int, int]:
        """Call `check(situation, terms)` for every element: how many runs that took, how many elements they were."""
        path: list[int] | None = []
        runs = elements = 0
        while path is not None:
            choices = Choices(path)
            self._at(choices, check)
            runs += 1
            elements += self.size // prod(choices.sizes)
            path = choices.next_path()
        return runs, elements


def only(fields: dict[str, Sequence[Any]], **values: Sequence[Any]) -> dict[str, Sequence[Any]]:
    """The same fields, some of them with fewer values."""
    assert values.keys() <= fields.keys()
    return fields | values


def walked(product: Product, check: Callable[[Any, Any], None]) -> None:
    if SAMPLE is not None:
        product.sample(check, Random(SAMPLE), SAMPLE)  # noqa: S311 - nobody has to be kept from guessing it
        return
    runs, elements = product.walk(check)
    assert elements == product.size, "the walk left something out"
    print(f"{elements:,} situations and terms walked in {runs:,} runs")


def kafka_view(*offline: str, shared: tuple[SharedPartitions, ...] = ()) -> KafkaView:
    """What brokers say, with these partitions without a leader."""
    return KafkaView(
        cluster_id=None,
        broker_ids=(),
        topic_count=0,
        partition_count=0,
        under_replicated=(),
        offline=offline,
        needs={},
        shared=shared,
    )


KAFKA = {
    Replication.IN_SYNC: kafka_view(),
    Replication.CATCHING_UP: kafka_view("orders-0"),
    Replication.UNKNOWN: None,
}
"""What the invariant is told of partitions. Where replicas are missing, the worst: a partition has no leader."""


class LazyFacts:
    """What a situation does not say, read as late as its fields are."""

    def __init__(self, s: Any, terms: Any) -> None:
        self._s, self._terms = s, terms

    @property
    def kafka(self) -> KafkaView | None:
        return KAFKA[self._s.replication]

    @property
    def approved(self) -> "LazyFacts":
        return self

    def __contains__(self, gate: str | None) -> bool:
        """Of approvals only the one that is asked for is read: all three would make the walk a hundred times as long."""
        fields = {
            GateName.FINALIZE: "approval",
            GateName.FINALIZE_WITHOUT_RETURN: "without_return",
            GateName.FAIL_OVER: "failover",
        }
        return gate is not None and getattr(self._terms, fields[GateName(gate)]) in GIVEN

    @property
    def is_rollback(self) -> bool:
        return bool(self._terms.intent is Intent.REVERT)

    @property
    def is_failover_allowed(self) -> bool:
        return bool(self._terms.may_fail_over)


def check_invariant(s: Any, terms: Any, step: Step) -> None:
    """What a rule decides is allowed, but for one thing that the activity refuses as well (`activities.rolling.starting`): a
    controller that has no flag in its file is never started from it, nor failed over to it, before the log is final.
    """
    facts: Any = LazyFacts(s, terms)
    if not starts_without_flag(s, step):
        ensure_allowed(s, step, facts)
        return
    with pytest.raises(Unsafe, match="would run without the migration flag"):
        ensure_allowed(s, step, facts)


def starts_without_flag(s: Any, step: Step) -> bool:
    if step.action not in {StepAction.START_NODE, StepAction.FAIL_OVER} or s.quorum is QuorumState.POST_MIGRATION:
        return False
    node = next(c for c in s.controllers if c.id == step.node_id)
    return bool(node.stage is NodeStage.KRAFT or not node.is_flag_in_file)
