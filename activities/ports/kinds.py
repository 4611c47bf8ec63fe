"""`ActivityKind`: what activities need of one kind of migration. A frozen record of functions, made in the kind's own room.

Generic activities look up the kind that a request names, and ask it: what else to look at, what to decide, what a restart is
for. The kinds reach them as `Ports.kinds`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from activities.ports.checks import CheckAttempt, CheckRunner
from activities.ports.kafka import Listeners
from domain.cluster import ClusterSpec
from domain.contracts import Assessment
from domain.decisions import Step
from domain.diagnosis.blockers import Diagnosis
from domain.drift.report import CheckName, DriftReport
from domain.kinds import ByName, Kind
from domain.observed.observation import Observation
from domain.plans import Asked, Plan
from domain.policy import MigrationPolicy
from domain.questions import ClusterSight, RollbackPreview, Runbook
from domain.records import ClusterRecord
from domain.rolling.change import Files, Rolls
from domain.rulings import Ruling

if TYPE_CHECKING:
    from activities.ports.ports import Ports

Probe = Callable[[Observation, ClusterRecord, "Ports", MigrationPolicy, float | None], Awaitable[Observation]]
"""Adds to an observation what this kind looks at besides, as far as what was seen asks for it. The last argument: seconds for
names that only people need; 0: none is searched for, `None`: as long as it may take."""


class Assess(Protocol):
    """Decides what to do next. Pure: the observation's end is the only clock."""

    def __call__(
        self,
        observation: Observation,
        spec: ClusterSpec,
        policy: MigrationPolicy,
        ruling: Ruling,
        observation_name: str,
        memory: Mapping[str, Any] = {},
        *,
        needs_survey: bool = False,
    ) -> Assessment: ...


Survey = Callable[[Observation, ClusterRecord, MigrationPolicy, "Ports"], Awaitable[Observation]]
"""Adds what is looked at only before the start."""


MakeCheck = Callable[["Ports", CheckRunner, CheckAttempt], Awaitable[DriftReport]]
"""Makes one check of metadata: its report."""


class Preview(Protocol):
    """What a rollback would do, from a fresh look. `for_people`: with what only people need to know, which takes seconds."""

    def __call__(
        self, cluster: ClusterRecord, ports: "Ports", policy: MigrationPolicy, *, for_people: bool
    ) -> Awaitable[RollbackPreview]: ...


Lookups = Callable[[ClusterRecord, Any, "Ports", list[str]], Awaitable[object]]
"""What only this kind looks up to tell why nothing happens, given its case: `Hints.of_kind`. The list takes what did not answer
in time."""


@dataclass(frozen=True)
class ActivityKind:
    """One kind of migration, for activities.

    `needs_survey`: whether this look could let a migration start: then `survey` is added to it. `ensure_allowed`: raises
    `Unsafe` if a step breaks the kind's invariant, whatever decided it; asked of the look right before every effect. `sight`:
    what is seen now, for people. `plan`: from what was seen; the last argument names the observation. `why_not_rehearsed`: the
    phase in which there is nothing left to rehearse. `runbook`: both ways by hand. `rolls`: what its restarts write and prove.
    `diagnosis`: the causes that it knows why nothing happens.
    `checks`: its comparisons of metadata. `effects`: the activities that only this kind has, for the task queue `cluster`.
    `bounded_grace`: the longest that a bounded step takes under the default policy; zero if it has none.
    """

    kind: Kind
    probe: Probe
    needs_survey: Callable[[Observation, ClusterSpec, MigrationPolicy, Ruling], bool]
    assess: Assess
    ensure_allowed: Callable[[Observation, ClusterSpec, MigrationPolicy, Ruling, Step], None]
    sight: Callable[[Observation, ClusterSpec, MigrationPolicy], ClusterSight]
    survey: Survey
    plan: Callable[[Observation, ClusterSpec, Files, Asked, str], Plan]
    why_not_rehearsed: Callable[[Observation, ClusterSpec, MigrationPolicy], str | None]
    preview: Preview
    runbook: Callable[[ClusterRecord, "Ports", MigrationPolicy], Awaitable[Runbook]]
    rolls: Rolls
    diagnosis: Diagnosis[Any]
    lookups: Lookups
    checks: Mapping[CheckName, MakeCheck]
    effects: Callable[["Ports", Listeners], Sequence[Callable[..., Any]]]
    bounded_grace: timedelta

    @property
    def name(self) -> str:
        return self.kind.name


ActivityKinds = ByName[ActivityKind]
