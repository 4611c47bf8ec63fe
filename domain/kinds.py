"""`Kind`: what the product has to know of one kind of migration. A frozen record of values and pure functions, no base class.

A kind is written in rooms of its own (`domain/<kind>`, `activities/<kind>`). There it makes one of these, which is then added
to `domain.shipped_kinds`. API and workers are given the kinds as an argument, so that a test can bring its own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from domain.cluster import ClusterSpec
from domain.errors import Permanent
from domain.of_kind import Wanted
from domain.policy import MigrationPolicy
from domain.records import MigrationRecord
from domain.summary import NextSteps


@dataclass(frozen=True)
class Kind:
    """One kind of migration.

    `finding_codes`: of all findings that a plan or a preflight of it can have. `loss_names`: of all losses that a rollback of
    a cluster could ever have, and `loss_forms`, how these names are made, for people. `next_steps`: what people do after it
    has ended. `gates`: where people decide. `final_gates`, some of these: their section is the end of the migration, step by
    step; that of any other gate is one step. `policy`, `wanted`: how it may be tuned, and what it leads to, as requests say
    them. `aimed`: a cluster as it is registered, with what is wanted put in: as the migration sees it. Raises `ValueError` if
    the cluster cannot become that. `achieved`: the cluster as it is registered once the migration has succeeded.
    """

    name: str
    finding_codes: tuple[str, ...]
    loss_names: Callable[[ClusterSpec], frozenset[str]]
    loss_forms: tuple[str, ...]
    next_steps: NextSteps
    gates: tuple[str, ...]
    final_gates: frozenset[str]
    policy: type[MigrationPolicy]
    wanted: type[Wanted]
    aimed: Callable[[ClusterSpec, Wanted], ClusterSpec]
    achieved: Callable[[ClusterSpec, Wanted], ClusterSpec]

    def seen_by(self, migration: MigrationRecord, spec: ClusterSpec) -> ClusterSpec:
        """A cluster as it is registered while a migration of this kind is active, as that migration sees it."""
        return self.aimed(spec, migration.wanted)


class Named(Protocol):
    """Whatever has the name of a kind."""

    @property
    def name(self) -> str: ...


K = TypeVar("K", bound=Named, covariant=True)


class ByName(Mapping[str, K]):
    """Kinds of migration by name, in the order in which they are shipped."""

    def __init__(self, kinds: Iterable[K] = ()) -> None:
        self._kinds = {kind.name: kind for kind in kinds}

    def __getitem__(self, name: str) -> K:
        """Raises `Permanent` for a kind that this program does not have: it is older than what asks for it."""
        if name not in self._kinds:
            raise Permanent(f"this program has no migration of the kind {name}: it has {', '.join(self._kinds)}. Upgrade it")
        return self._kinds[name]

    def __contains__(self, name: object) -> bool:
        return name in self._kinds

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)


Kinds = ByName[Kind]
