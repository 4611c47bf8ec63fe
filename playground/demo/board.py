"""Collects what is known, from wherever it comes; gives a frozen `DemoState` whenever one is wanted.

Belongs to the event loop's thread. `now` is Unix time everywhere, because events carry the time at which they happened.
"""

from collections import Counter, deque
from dataclasses import replace
from itertools import pairwise

from domain.decisions import Intent
from domain.questions import ClusterSight, Gauges
from domain.records import Event, NodeStatus
from domain.zk_to_kraft.steps import StepAction
from playground.acknowledgements import LoadCounters
from playground.demo.door import MigrationSeen
from playground.demo.state import Addresses, DemoState, Line, LoadSeen, PhaseTime, Tone, WaitSeen, WorkSeen
from playground.demo.words import line_of

LINES_KEPT = 40
RATE_OVER_SECONDS = 5.0
OURSELVES = "keeperless"
"""Who holds a migration where no person does."""


class Board:
    """Everything that the demo knows. Its clock starts when it is made."""

    def __init__(self, began_at: float, addresses: Addresses, title: str = "") -> None:
        self.began_at = began_at
        self.title = title
        self.addresses = addresses
        self.doing = "starting"
        self.peak_mib = 0.0
        self.last_seq = 0
        self.held_by = ""
        """The person who holds the migration."""
        self.disturbance = ""
        self.load = LoadSeen()
        self._migration: MigrationSeen | None = None
        self._earlier: list[MigrationSeen] = []
        self._provisioned: Counter[str] = Counter()
        self._sight: ClusterSight | None = None
        self._phases: list[tuple[str, float]] = []
        self._ended_at: float | None = None
        self._work: tuple[str, float] | None = None
        self._lines: deque[Line] = deque(maxlen=LINES_KEPT)
        self._acknowledged: deque[tuple[float, int]] = deque()

    # --- what comes in ---------------------------------------------------------------------------------------------

    def note_text(self, text: str, at: float, tone: Tone = Tone.PLAIN) -> Line:
        line = Line(max(0.0, at - self.began_at), text, tone)
        self._lines.append(line)
        return line

    def note_event(self, event: Event) -> Line | None:
        """Gives the line that tells it, if there is one."""
        self.last_seq = event.seq
        at = event.at.timestamp()
        self._note_progress(event, at)
        told = line_of(event)
        return self.note_text(told[0], at, told[1]) if told is not None else None

    def _note_progress(self, event: Event, at: float) -> None:
        match event.kind:
            case "phase-entered":
                self._phases.append((event.data["phase"], at))
            case "step-started":
                self._work = (event.data.get("does", event.data["action"]), at)
            case "step-done" | "step-blocked":
                self._work = None
                if event.kind == "step-done" and event.data["action"] == StepAction.PROVISION_CONTROLLER:
                    self._provisioned[event.data["node"]] += 1
            case "held" | "rejected":
                self.held_by = event.data["by"] if event.data["by"] != OURSELVES else ""
            case "resumed":
                self.held_by = ""

    def note_migration(self, seen: MigrationSeen) -> None:
        if self._migration is not None and self._migration.id != seen.id:
            self._earlier.append(self._migration)
        self._migration = seen
        self._ended_at = seen.ended_at.timestamp() if seen.ended_at is not None else None
        if seen.links.temporal_ui is not None:
            self.addresses = replace(self.addresses, migration=seen.links.temporal_ui)

    def note_sight(self, sight: ClusterSight) -> None:
        self._sight = sight

    def note_load(self, counters: LoadCounters, read_back: int, missing: int, now: float) -> None:
        self._acknowledged.append((now, counters.acknowledged))
        while now - self._acknowledged[0][0] > RATE_OVER_SECONDS:
            self._acknowledged.popleft()
        self.load = LoadSeen(
            acknowledged=counters.acknowledged,
            rate=self._rate(),
            read_back=read_back,
            missing=missing,
            longest_pause_seconds=counters.longest_pause_seconds,
            waiting_seconds=counters.waiting_seconds,
        )

    def note_proof(self, acknowledged: int, read_back: int, lost: int) -> None:
        self.load = replace(self.load, acknowledged=acknowledged, read_back=read_back, lost=lost, missing=0, rate=0.0)

    # --- what goes out ---------------------------------------------------------------------------------------------

    def phases(self, now: float) -> tuple[PhaseTime, ...]:
        """Each phase once, in order of its first entry, with all the seconds spent in it; the last is still running."""
        end = now if self._ended_at is None else self._ended_at
        seconds: dict[str, float] = {}
        for (name, entered), (_, left) in pairwise([*self._phases, ("", end)]):
            seconds[name] = seconds.get(name, 0.0) + max(0.0, left - entered)
        return tuple(PhaseTime(name, spent) for name, spent in seconds.items())

    @property
    def migrations(self) -> tuple[MigrationSeen, ...]:
        """All that there were, in order."""
        return (*self._earlier, *([self._migration] if self._migration is not None else []))

    def restarts_told(self) -> dict[str, int]:
        """As the migrations tell it, together. A controller that is created anew has been started again, too."""
        told = Counter({name: count - 1 for name, count in self._provisioned.items()})
        for migration in self.migrations:
            told.update({node.name: node.restarts for node in migration.nodes})
        return dict(sorted(told.items()))

    def state(self, now: float) -> DemoState:
        sight = self._sight
        return DemoState(
            seconds=now - self.began_at,
            doing=self.doing,
            title=self.title,
            addresses=self.addresses,
            migration_id=self._migration.id if self._migration is not None else "",
            state=self._migration.state if self._migration is not None else "",
            is_going_back=self._migration is not None and self._migration.intent is Intent.REVERT,
            phase=self._phases[-1][0] if self._phases else None,
            phases=self.phases(now),
            nodes=self._nodes(),
            gauges=sight.gauges if sight is not None else Gauges(),
            unknown=sight.unknown if sight is not None else (),
            look_age_seconds=max(0.0, now - sight.observed_at.timestamp()) if sight is not None else None,
            load=self.load,
            waiting=self._waiting(now),
            working=WorkSeen(self._work[0], now - self._work[1]) if self._work is not None else None,
            lines=tuple(sorted(self._lines, key=lambda line: line.seconds)),
            disturbance=self.disturbance,
            quiet_seconds=now - self.began_at - max((line.seconds for line in self._lines), default=0.0),
            peak_mib=self.peak_mib,
        )

    def _nodes(self) -> tuple[NodeStatus, ...]:
        """As seen now; how often they were restarted all migrations together know, as in the summary."""
        restarts = self.restarts_told()
        nodes = self._sight.nodes if self._sight is not None else ()
        return tuple(node.model_copy(update={"restarts": restarts.get(node.name, 0)}) for node in nodes)

    def _waiting(self, now: float) -> WaitSeen | None:
        wait = self._migration.waiting if self._migration is not None else None
        if wait is None:
            return None
        return WaitSeen(wait.reason, wait.means, now - wait.since.timestamp(), wait.objects, wait.detail)

    def _rate(self) -> float:
        (first, before), (last, after) = self._acknowledged[0], self._acknowledged[-1]
        return (after - before) / (last - first) if last > first else 0.0
