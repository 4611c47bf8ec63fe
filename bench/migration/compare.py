"""The command: both contenders in turns, each on a new cluster, and how they compare. `make bench-migration`.

    python -m bench.migration.compare --rounds 5 --spark embedded --burners 2

What counts is the ratio to the bare script of the same run: the median over rounds. A message that was acknowledged and is lost
ends the run. Written after every round: what was measured stays, whatever happens to the rest.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from bench import machine
from bench.migration.bare import Bare
from bench.migration.ours import POLICY, Ours, programs
from bench.migration.processor import COUNTED, Meter
from bench.migration.scene import Scene, Size, scene, told
from bench.migration.stretches import PHASES, Stretches
from domain.errors import KeeperlessError, Transient
from setup.environment import REPOSITORY

RESULTS = REPOSITORY / "bench" / "results"
BURNER = "while True: pass"
BARE, OURS = "bare", "ours"


def round_of(contender: str, size: Size, spark: str, policy: dict[str, Any]) -> dict[str, Any]:
    """One migration of a new cluster."""
    folder = Path(tempfile.mkdtemp(prefix="keeperless-bench-"))
    try:
        with ExitStack() as stack:
            running = stack.enter_context(programs(folder, spark)) if contender == OURS else None
            place = stack.enter_context(scene(folder, size))
            player = Bare(place.cluster) if running is None else Ours(place, *running, {**POLICY, **policy})
            with Meter(folder) as meter:
                stretches = player.play()
            used = meter.seconds()
            if isinstance(player, Bare):
                used["bare script"] = round(player.processor_seconds, 2)
            told = _told(contender, stretches, used, place)
            return told if isinstance(player, Bare) else {**told, "plan": player.plan}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _told(contender: str, stretches: Stretches, used: dict[str, float], place: Scene) -> dict[str, Any]:
    load = told(place.verified())
    if load["lost"]:
        raise Transient(f"{contender}: {load['lost']} acknowledged messages are lost")
    return {
        "contender": contender,
        "total": round(stretches.total, 2),
        "phases": {phase: round(seconds, 2) for phase, seconds in stretches.phases().items()},
        "rolls": [round(seconds, 2) for seconds in stretches.rolls()],
        "gaps": [round(seconds, 2) for seconds in stretches.gaps()],
        "steps": [{**asdict(one), "begun": round(one.begun, 2), "ended": round(one.ended, 2)} for one in stretches.steps],
        "processor": used,
        "load": load,
        "machine load": machine.load(),
    }


@contextmanager
def burners(count: int) -> Iterator[None]:
    """So many processes that want a core each all the time."""
    running = [subprocess.Popen([sys.executable, "-c", BURNER]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def lines(rounds: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The table: medians of both, and the median of the ratios."""
    bare, ours = ([one for one in rounds if one["contender"] == name] for name in (BARE, OURS))
    if not bare or not ours:
        return
    yield f"{'':24}{'bare':>9}{'ours':>9}{'ratio':>8}"
    for phase in PHASES:
        yield _line(f"{phase}, s", [one["phases"][phase] for one in bare], [one["phases"][phase] for one in ours])
    yield _line("all, s", [one["total"] for one in bare], [one["total"] for one in ours])
    yield _line("one broker's roll, s", [median(one["rolls"]) for one in bare], [median(one["rolls"]) for one in ours])
    yield f"{'plan before, s':24}{'–':>9}{median(one['plan']['seconds'] for one in ours):>9.2f}"
    yield f"{'estimate, s':24}{'–':>9}{median(one['plan']['estimate'] for one in ours):>9.2f}"
    yield _line("between steps, p95, s", *([_p95(one["gaps"]) for one in of_one] for of_one in (bare, ours)))
    yield _line("processor, s", [_counted(one) for one in bare], [_counted(one) for one in ours])
    for name in sorted({name for one in rounds for name in one["processor"]}):
        yield _line(f"  {name}", *([one["processor"].get(name, 0.0) for one in of_one] for of_one in (bare, ours)))
    yield _line("longest pause, s", *([one["load"]["pause"] for one in of_one] for of_one in (bare, ours)))
    yield _line("slowest message, s", *([one["load"]["slowest"] for one in of_one] for of_one in (bare, ours)))


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[int(0.95 * len(values))] if values else 0.0


def _counted(one: dict[str, Any]) -> float:
    return float(sum(seconds for name, seconds in one["processor"].items() if name in COUNTED))


def _line(name: str, bare: Sequence[float], ours: Sequence[float]) -> str:
    pairs = [b / a for a, b in zip(bare, ours, strict=False) if a]
    ratio = f"{median(pairs):>7.2f}x" if pairs else f"{'–':>8}"
    return f"{name:24}{median(bare):>9.2f}{median(ours):>9.2f}{ratio}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.migration.compare")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=(BARE, OURS), help="this contender alone: no ratio")
    parser.add_argument("--spark", default="embedded", help="KEEPERLESS_SPARK of ours")
    parser.add_argument("--burners", type=int, default=0, help="processes that want a core each, beside both")
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--racks", type=int)
    parser.add_argument("--parallel", type=int, default=1, help="policy.max_parallel of ours: more than 1 rolls in waves")
    parser.add_argument("--topics", type=int, default=0, help="so many more, of one partition with three replicas")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    size, policy = Size(asked.brokers, asked.racks, asked.topics), {"max_parallel": asked.parallel}
    begun = datetime.now(UTC)
    path, rounds = asked.results / f"migration-{begun:%Y-%m-%dT%H%M}.json", list[dict[str, Any]]()
    options = {name: value for name, value in vars(asked).items() if name != "results"}
    about = {"begun": begun.isoformat(timespec="seconds"), "asked": options}
    try:
        with burners(asked.burners):
            for number in range(asked.rounds):
                for contender in (asked.only,) if asked.only else (BARE, OURS):
                    rounds.append(round_of(contender, size, asked.spark, policy))
                    print(f"round {number + 1}, {contender}: {rounds[-1]['total']:.1f} s, {rounds[-1]['load']}", flush=True)
                    path.write_text(json.dumps({**about, "machine": machine.facts(), "rounds": rounds}, indent=1) + "\n")
    except KeeperlessError as wrong:
        print(f"bench: {wrong}", file=sys.stderr)
        return 1
    print("\n".join(lines(rounds)), f"\nWritten: {path}", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
