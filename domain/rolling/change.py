"""What a roll writes and proves, and what the kind of migration that it is part of says of both. Pure."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from domain.cluster import ClusterSpec, NodeSpec, Role
from domain.decisions import Step
from domain.observed.observation import Observation
from domain.policy import MigrationPolicy


class Making(StrEnum):
    """How a wanted file comes about."""

    EDIT = "edit"
    """Only what the stage needs is changed in the file as it is."""
    ARCHIVE = "archive"
    """From the archived original. What others edited since is gone."""
    INVERSE_EDIT = "inverse-edit"
    """There is no original: what the migration did is taken back key by key."""


@dataclass(frozen=True)
class Sources:
    """What a file can be made from, as texts.

    `current`: as it is now. `original`: what is archived of it from its first stage. `sibling`: another broker's file from a
    time when it had ZooKeeper.
    """

    current: str
    original: str | None = None
    sibling: str | None = None


@dataclass(frozen=True)
class WantedFile:
    text: str
    making: Making


@dataclass(frozen=True)
class NodeFile:
    """A node's properties file now, what is archived of it and where that is, or would be kept.

    `base`: the operator's own file that a controller's is made from, where there is one.
    """

    current: str | None
    original: str | None
    archive: str
    base: str | None = None


Files = Mapping[int, NodeFile]
"""By node id. A node whose files could not be read is missing."""


@dataclass(frozen=True)
class Missing:
    """What a node's proof still lacks: the wait that it amounts to, and in words."""

    reason: str
    words: str


@dataclass(frozen=True)
class Restart:
    """What a restart into a stage is, as far as a roll has to know.

    `is_restored`: the archived original comes back as it was, mode and owner included. `registers_in_zookeeper`: a broker reads
    the cluster's id there as it starts, and registers. `takes_topics_of_zookeeper`: it deletes replicas of topics that
    ZooKeeper does not have. `urgent`: roles whose restart waits for no trial of the file, no quorum and no pause of
    configuration management, because waiting would be worse.
    """

    is_restored: bool = False
    registers_in_zookeeper: bool = False
    takes_topics_of_zookeeper: bool = False
    urgent: frozenset[Role] = frozenset()


@dataclass(frozen=True)
class Rolls:
    """What a kind of migration says of the nodes that it restarts. Pure functions; a stage is the kind's own word.

    `restart`: by stage. `is_original`: whether a file, of a role, is the operators' own, from before the migration.
    `needs_sibling`: whether another broker's file would say what this one has lost. `make`: the file of a node at a stage.
    `edit`: the same of a file that needs no archive, as on the way forward. `is_staged`: whether some stage sets or removes a
    key of a role's file. `why_not_proven`: what a restarted node still lacks. `dead_besides`: other nodes, by name, that are
    known not to run. `returns_leadership`: whether preferred leaders are elected once a wave is proven.
    """

    restart: Callable[[str], Restart]
    is_original: Callable[[str, Role], bool]
    needs_sibling: Callable[[Sources, ClusterSpec, NodeSpec, str], bool]
    make: Callable[[Sources, ClusterSpec, NodeSpec, str], WantedFile]
    edit: Callable[[str, ClusterSpec, NodeSpec, str], str]
    is_staged: Callable[[str, Role], bool]
    why_not_proven: Callable[[Observation, ClusterSpec, MigrationPolicy, int, str], Missing | None]
    dead_besides: Callable[[Observation, ClusterSpec, MigrationPolicy, Collection[int], str], str]
    returns_leadership: Callable[[Step, Observation, ClusterSpec, MigrationPolicy], bool]
