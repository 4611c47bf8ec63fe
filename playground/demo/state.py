"""What the demo shows at one moment. Frozen: the view is a function of it and of nothing else."""

from dataclasses import dataclass, field
from enum import StrEnum

from domain.questions import Gauges
from domain.records import NodeStatus
from domain.zk_to_kraft.phases import Phase

PHASES = tuple(phase for phase in Phase if phase is not Phase.FINALIZED_EARLY)
"""In the order in which a migration passes them."""


class Tone(StrEnum):
    """How a line is meant; the view gives it a colour."""

    PLAIN = "plain"
    GOOD = "good"
    NEWS = "news"
    ALERT = "alert"


@dataclass(frozen=True)
class Line:
    """Something that happened, `seconds` after the demo's start."""

    seconds: float
    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True)
class PhaseTime:
    """A phase that was entered, and the seconds spent in it so far."""

    name: str
    seconds: float


@dataclass(frozen=True)
class LoadSeen:
    """The clients' side."""

    acknowledged: int = 0
    rate: float = 0.0
    """Acknowledgements a second, over the last few seconds."""
    read_back: int = 0
    """Messages that the witness has read."""
    missing: int = 0
    """Acknowledged more than `witness.PATIENCE_SECONDS` ago, and not read yet. It may still come: lost is said at the end."""
    lost: int | None = None
    """Acknowledged and not found when everything was read again at the end; None before that."""
    longest_pause_seconds: float = 0.0
    waiting_seconds: float = 0.0
    """Since the last acknowledgement, while messages are on their way."""


@dataclass(frozen=True)
class WaitSeen:
    """Why nothing happens just now, and for how long."""

    reason: str
    means: str
    seconds: float
    objects: tuple[str, ...] = ()
    detail: str = ""


@dataclass(frozen=True)
class WorkSeen:
    """The step in hand, and for how long."""

    text: str
    seconds: float


@dataclass(frozen=True)
class Addresses:
    """Where a browser finds more. Empty while it is not known."""

    temporal_ui: str = ""
    api_docs: str = ""
    migration: str = ""


@dataclass(frozen=True)
class DemoState:
    """Everything at one moment; `doing` is the demo's own chapter, `phase` the migration's."""

    seconds: float
    doing: str
    title: str = ""
    addresses: Addresses = field(default_factory=Addresses)
    migration_id: str = ""
    state: str = ""
    is_going_back: bool = False
    """Its migration leads back to ZooKeeper."""
    phase: str | None = None
    phases: tuple[PhaseTime, ...] = ()
    nodes: tuple[NodeStatus, ...] = ()
    gauges: Gauges = field(default_factory=Gauges)
    unknown: tuple[str, ...] = ()
    look_age_seconds: float | None = None
    """Since the last answer of `GET /clusters/{name}/observation`."""
    load: LoadSeen = field(default_factory=LoadSeen)
    waiting: WaitSeen | None = None
    working: WorkSeen | None = None
    lines: tuple[Line, ...] = ()
    disturbance: str = ""
    """What the demo itself did to clients, in words."""
    quiet_seconds: float = 0.0
    """Since the last line."""
    peak_mib: float = 0.0
