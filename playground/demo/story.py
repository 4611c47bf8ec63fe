"""What happens in which order. From the registration on the product is spoken to by HTTP only."""

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console, RenderableType

from domain.decisions import Intent
from domain.errors import Permanent
from domain.records import MigrationState, OpenGate
from domain.zk_to_kraft.steps import GateName
from playground.acknowledgements import LoadCounters
from playground.by_hand import ByHand
from playground.demo.asking import Verdict, ask, ask_back, question, way_back
from playground.demo.backstage import CLUSTER_NAME, Backstage
from playground.demo.board import Board
from playground.demo.cast import RollCall
from playground.demo.door import Door, MigrationSeen, Refused
from playground.demo.meddling import Edits, Meddling, StandsInTheWay
from playground.demo.options import Options, Plot
from playground.demo.report import Circumstances, DemoReport, report_of
from playground.demo.screen import Screen
from playground.demo.state import Addresses, DemoState, Line, Tone
from playground.demo.words import left_behind
from playground.own_unit import accepting

DRAW_EVERY_SECONDS = 0.25
ASK_EVERY_SECONDS = 0.5
LOOK_EVERY_SECONDS = 1.0
MESSAGES_AFTER_THE_END = 400
"""So many more are written before the load stops: the cluster works after the migration, too."""
UNATTENDED_SECONDS = 600.0
"""An unattended run gives up once its migration has reported nothing for so long, and says what it waited for."""
REASON = {Verdict.APPROVE: "approved in the demo's terminal", Verdict.REJECT: "rejected in the demo's terminal"}
BACK = "asked for in the demo's terminal"
BACK_UNATTENDED = "asked for unattended (--yes)"
HEADINGS: dict[Plot, tuple[Intent, ...]] = {
    Plot.FORWARD: (Intent.FORWARD,),
    Plot.ROLLBACK: (Intent.REVERT, Intent.FORWARD),
    Plot.DRIFT: (Intent.FORWARD,),
    Plot.BLOCKED: (Intent.FORWARD,),
    Plot.NONE: (),
}
"""The migrations of each plot, by where they end: one that ends in ZooKeeper turns round at the gate."""
TITLES = {
    Plot.FORWARD: "ZooKeeper → KRaft, in place, under continuous writes",
    Plot.ROLLBACK: "ZooKeeper → KRaft → ZooKeeper → KRaft, in place, under continuous writes",
    Plot.DRIFT: "ZooKeeper → KRaft, in place, under continuous writes, while ZooKeeper is edited past Kafka",
    Plot.BLOCKED: "ZooKeeper → KRaft, in place, under continuous writes, with much in the way",
    Plot.NONE: "A cluster in ZooKeeper mode, under continuous writes, to play with",
}
FROZEN = 3
"""The broker that stands still for a while in the plot `blocked`."""
POLICIES: dict[Plot, dict[str, Any]] = {Plot.DRIFT: {"recheck_interval": "PT5S"}}
"""Where nobody should have to wait for the product's own pace."""


class Story:
    """One run of the demo."""

    def __init__(self, options: Options, backstage: Backstage, screen: Screen) -> None:
        self._options = options
        self._stage = backstage
        self._screen = screen
        addresses = Addresses(backstage.temporal.ui_url, f"{backstage.services.api_url}/docs")
        self._board = Board(time.time(), addresses, TITLES[options.story])
        self._door = Door(backstage.services.api_url)
        self._roll_call = RollCall(backstage.cast, backstage.directory)
        self._meddling = self._meddling_of(options.story)
        self._is_asking = False
        self._loop = asyncio.get_running_loop()

    def _meddling_of(self, plot: Plot) -> Meddling | None:
        cluster = self._stage.cluster
        if plot is Plot.DRIFT:
            return Edits(self._door, ByHand(cluster), self._announce)
        if plot is Plot.BLOCKED:
            return StandsInTheWay(self._door, ByHand(cluster), self._announce, FROZEN, cluster.pid)
        return None

    @property
    def last_state(self) -> DemoState:
        return self._board.state(time.time())

    async def play(self) -> DemoReport | None:
        """From nothing to the proof, if there is something to prove. Raises what went wrong, in words for people if it can."""
        try:
            async with asyncio.TaskGroup() as group:
                drawing = group.create_task(self._draw())
                await self._stage.start(self._announce_from_thread)
                await self._migrate()
                report = await self._prove() if HEADINGS[self._options.story] else None
                self._screen.show(self.last_state)
                drawing.cancel()
        finally:
            self._screen.pause()
            await self._door.close()
        return report

    def left_behind(self) -> str:
        """In which state the cluster is, when it is not in KRaft."""
        return left_behind(self.last_state)

    # --- the migration ---------------------------------------------------------------------------------------------

    async def _migrate(self) -> None:
        """Registers the cluster, and plays one migration after the other, until one does not end as it was meant to."""
        self._board.doing = "planning"
        await self._door.register(self._stage.cluster.spec)
        self._announce(f"PUT /clusters/{CLUSTER_NAME}: registered")
        for heading in HEADINGS[self._options.story]:
            migration = await self._play_one(heading)
            if heading is Intent.REVERT and migration.state != MigrationState.REVERTED:
                return
        self._board.doing = "ready"

    async def _play_one(self, heading: Intent) -> MigrationSeen:
        """Starts, watches, decides; gives the migration as it is when there is nothing more to wait for."""
        policy = accepting(POLICIES.get(self._options.story, {}))
        start = self._door.start_migration if self._meddling is None else self._meddling.start
        migration_id = await start(CLUSTER_NAME, policy)
        if not self._board.migrations:
            self._stage.census.begin()
        self._board.doing = "migrating"
        self._announce(f"POST /migrations: {migration_id}")
        async with asyncio.TaskGroup() as group:
            watching = [group.create_task(task) for task in (self._follow(migration_id), self._look(), self._call_the_roll())]
            migration = await self._await_end(migration_id, heading)
            for task in watching:
                task.cancel()
        await self._catch_up(migration_id)
        return migration

    async def _await_end(self, migration_id: str, heading: Intent) -> MigrationSeen:
        decided: dict[str, Verdict] = {}
        back = None if heading is Intent.REVERT else Verdict.REJECT
        moved, told = time.monotonic(), self._board.last_seq
        while True:
            migration = await self._door.migration(migration_id)
            self._board.note_migration(migration)
            if self._meddling is not None:
                await self._meddling.meddle(migration)
                self._board.disturbance = self._meddling.disturbance
            for gate in migration.gates:
                if gate.name == GateName.FINALIZE and back is not Verdict.REJECT:
                    back = back or await self._turn_back(migration_id)
                elif gate.evidence_hash not in decided:
                    decided[gate.evidence_hash] = await self._decide(migration_id, gate)
            verdict = list(decided.values())[-1] if decided else back
            if migration.ended_at is not None or verdict is Verdict.NOBODY:
                return migration
            if migration.state == "held" and (verdict is Verdict.REJECT or not self._has_audience):
                return migration
            if told != self._board.last_seq:
                moved, told = time.monotonic(), self._board.last_seq
            if time.monotonic() - moved > UNATTENDED_SECONDS and not self._has_audience:
                raise Permanent(
                    f"the migration has reported nothing for {UNATTENDED_SECONDS:.0f} s: {migration.model_dump_json()}"
                )
            await asyncio.sleep(ASK_EVERY_SECONDS)

    @property
    def _has_audience(self) -> bool:
        return sys.stdin.isatty() and not self._options.yes

    async def _follow(self, migration_id: str) -> None:
        async for event in self._door.follow(migration_id):
            self._tell(self._board.note_event(event))

    async def _catch_up(self, migration_id: str) -> None:
        """Events that were told after the stream was left, and a last look."""
        while page := await self._door.events(migration_id, self._board.last_seq):
            for event in page:
                self._tell(self._board.note_event(event))
        self._board.note_sight(await self._door.look(CLUSTER_NAME))

    async def _call_the_roll(self) -> None:
        """By itself: a look waits for the very programs that may be gone."""
        while True:
            for text, tone in await asyncio.to_thread(self._roll_call.changes):
                self._announce(text, tone)
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    async def _look(self) -> None:
        while True:
            self._board.note_sight(await self._door.look(CLUSTER_NAME))
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    async def _decide(self, migration_id: str, gate: OpenGate) -> Verdict:
        """At a gate of the product's."""
        self._board.note_sight(await self._door.look(CLUSTER_NAME))
        verdict = await self._asked(question(gate, self.last_state), lambda console: ask(console, gate))
        if verdict is Verdict.NOBODY:
            self._announce("no person to ask: the gate stays closed", Tone.ALERT)
            return verdict
        reason = "approved unattended (--yes)" if self._options.yes else REASON[verdict]
        try:
            await self._door.decide(migration_id, gate, verdict, reason)
        except Refused as refusal:  # the evidence has changed meanwhile: a new gate asks anew
            self._announce(str(refusal), Tone.ALERT)
        return verdict

    async def _turn_back(self, migration_id: str) -> Verdict | None:
        """Whether to go back, on what that would mean. A no leads on to the gate's own question.

        `None` where the preview did not hold any more: then somebody is to be asked again.
        """
        preview = await self._door.preview(migration_id)
        verdict = await self._asked(way_back(preview), ask_back)
        if verdict is Verdict.APPROVE:
            reason = BACK_UNATTENDED if self._options.yes else BACK
            try:
                await self._door.roll_back(migration_id, preview.preview_hash, reason)
            except Permanent as refusal:
                self._announce(str(refusal), Tone.ALERT)
                return None
        return verdict

    async def _asked(self, shown: RenderableType, ask_people: Callable[[Console], Verdict]) -> Verdict:
        self._is_asking = True
        try:
            self._screen.show(self.last_state)
            self._screen.pause()
            self._screen.console.print(shown)
            return await self._verdict(ask_people)
        finally:
            self._is_asking = False

    async def _verdict(self, ask_people: Callable[[Console], Verdict]) -> Verdict:
        if self._options.yes:
            return Verdict.APPROVE
        if not sys.stdin.isatty():
            return Verdict.NOBODY
        return await asyncio.to_thread(ask_people, self._screen.console)

    # --- the proof -------------------------------------------------------------------------------------------------

    async def _prove(self) -> DemoReport:
        """Some more writes, then everything is read again from the beginning, and compared by identifier."""
        self._board.doing = "proving"
        await asyncio.to_thread(self._stage.load.await_acknowledged, MESSAGES_AFTER_THE_END)
        self._announce("the load stops; everything is read back from the beginning")
        await asyncio.to_thread(self._stage.witness.stop)
        await asyncio.to_thread(self._stage.load.stop)
        proof = await asyncio.to_thread(self._stage.load.verify)
        self._board.note_proof(proof.acknowledged, proof.read_back, len(proof.lost))
        self._board.doing = "done"
        now = time.time()
        state = self._board.state(now)
        peak = await asyncio.to_thread(self._stage.memory.stop)
        seen, told = self._stage.census.restarts(), self._board.restarts_told()
        judged = Circumstances(self._board.held_by, state.disturbance, self._planned_seconds)
        return report_of(self._board.migrations, state.phase, state.phases, seen, told, proof, state.seconds, peak, judged)

    @property
    def _planned_seconds(self) -> float | None:
        return self._meddling.planned_seconds if self._meddling is not None else None

    # --- what is shown ---------------------------------------------------------------------------------------------

    async def _draw(self) -> None:
        while True:
            now = time.time()
            self._note_numbers(now)
            if not self._is_asking:
                self._screen.show(self._board.state(now))
            await asyncio.sleep(DRAW_EVERY_SECONDS)

    def _note_numbers(self, now: float) -> None:
        stage, board = self._stage, self._board
        if board.load.lost is None:
            counters: LoadCounters = stage.load.counters()
            board.note_load(counters, stage.witness.read_back, stage.witness.missing, now)
        board.peak_mib = stage.memory.peak_mib

    def _announce_from_thread(self, text: str) -> None:
        self._loop.call_soon_threadsafe(self._announce, text)

    def _announce(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        self._tell(self._board.note_text(text, time.time(), tone))

    def _tell(self, line: Line | None) -> None:
        if line is not None:
            self._screen.tell(line)
