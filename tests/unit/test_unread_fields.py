"""Every field of an observation is read by some rule, or stands here with the reason why none needs it.

A rule is what the domain says of a cluster: the preflight, decisions, waits, blockers, the rollback and its preview. A field
that only the preflight reads is seen in every look of a migration, and used by none: it stands in a list of its own.
Fields are recognised by their names alone: if two classes have a field of one name, the one that is read hides the other.
"""

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import get_args, get_type_hints

from domain.observed.observation import Observation
from domain.observed.parts import ObservedPart

ROOT = Path(__file__).parents[2] / "domain"
RULES = ROOT / "zk_to_kraft"
OWN = tuple((ROOT / "observed").glob("*.py"))
"""What a part says of itself (`Process.pid`) counts as read."""
ROOMS = ("by_hand", "checks", "configuration", "diagnosis", "health", "rolling")
MODULES = (
    *sorted(RULES.rglob("*.py")),
    *(path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))),
    ROOT / "topic_ids.py",
    *OWN,
)
BEFORE = {ROOT / "checks", RULES / "checks", RULES / "planning", RULES / "preflight.py", RULES / "rehearsal"}
"""Asked before the start only."""

UNREAD: dict[str, str] = {
    "KafkaView.topic_count": "shown in the artefact; what needs a number takes that of partitions",
    "MigrationZnode.controller_id": "gauges show the leader, and /controller the claimant",
    "NodeLook.memory": "shown in the artefact; a heap is judged by what the copy needs",
    "NodeMetrics.raft_high_watermark": "the comparison's cut reads it (activities.zk_to_kraft.consistent_cut)",
    "PauseMark.generation": "who writes a mark reads it again (activities.rolling)",
    "PauseMark.step_id": "as generation",
    "Reached.protocol": "shown in the artefact, beside what was tried",
    "RollMark.generation": "who writes a mark reads it again (activities.rolling)",
    "RollMark.marked_at": "as generation",
    "RollMark.step_id": "as generation",
}
"""Fields that no rule reads, and why none needs to."""
BEFORE_ONLY: dict[str, str] = {
    "NodeMetrics.under_replicated_partitions": "asked for to see that an agent gives numbers; Kafka's metadata has replicas",
}
"""Fields of every look that only the preflight reads, and why no rule of a migration needs them. A survey is taken before the
start only, so that its own fields are not meant."""


def parts_in(kind: object) -> frozenset[type[ObservedPart]]:
    """The models that a type is made of."""
    own = {kind} if isinstance(kind, type) and issubclass(kind, ObservedPart) else set()
    return frozenset(own).union(*map(parts_in, get_args(kind)))


@cache
def parts_of(whole: type[ObservedPart], without: str = "") -> frozenset[type[ObservedPart]]:
    """All models that one is made of, recursively. `without`: a field of the whole that is left out."""
    found = frozenset({whole})
    while True:
        hints = [h for model in found for name, h in get_type_hints(model).items() if (model, name) != (whole, without)]
        further = found.union(*map(parts_in, hints))
        if further == found:
            return found
        found = further


def fields_of(models: frozenset[type[ObservedPart]]) -> set[str]:
    return {f"{model.__name__}.{name}" for model in models for name in model.model_fields}


@cache
def read_in(path: Path) -> frozenset[str]:
    """Names of attributes that a module reads, and where it asks for some by a string, its strings."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
    is_asking = any(isinstance(n, ast.Name) and n.id == "getattr" for n in nodes)
    asked = {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)} if is_asking else set()
    return frozenset(names | asked)


def is_before(path: Path) -> bool:
    return any(path == place or place in path.parents for place in BEFORE)


def unread(fields: set[str], paths: Iterable[Path]) -> set[str]:
    names = frozenset[str]().union(*(read_in(path) for path in paths))
    return {field for field in fields if field.partition(".")[2] not in names}


def test_every_field_is_read_by_a_rule_or_named_with_why_not() -> None:
    fields = fields_of(parts_of(Observation))
    assert len(fields) > 200, "the whole observation is walked"
    assert unread(fields, MODULES) - UNREAD.keys() == set(), "a field that no rule reads"
    assert UNREAD.keys() - unread(fields, MODULES) == set(), "a rule reads it now"


def test_what_is_seen_in_every_look_is_used_in_every_phase() -> None:
    """As a topic without an id, that was asked about before the start, and appeared after it."""
    fields = fields_of(parts_of(Observation, "survey")) - UNREAD.keys()
    later = [path for path in MODULES if not is_before(path)]
    assert unread(fields, later) == BEFORE_ONLY.keys()


def test_a_field_that_nobody_reads_is_found() -> None:
    assert unread({"Observation.nobody_reads_this", "Observation.nodes"}, MODULES) == {"Observation.nobody_reads_this"}
