"""The command: every contender in turns, and how they compare. `make bench`.

    python -m bench.compare --sizes 1000 100000 1000000 --rounds 3

One group after the other: from raw files to a report, from staged rows to findings, segments. In a group all contenders are
started and warmed, then play rounds in turns, A B C A B C, so that a machine that others use is as bad for all of them. What
counts is the ratio to the group's first one, the median over rounds. A result that is not what was put in ends the run.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from bench import machine, packages
from bench.contenders import RAW, SEGMENTS, STAGED, Contender
from bench.inputs import cluster_inputs, segment_inputs
from bench.measuring import BenchError, Runner, running
from setup.environment import REPOSITORY

INPUTS = REPOSITORY / ".tools" / "bench-inputs"
RESULTS = REPOSITORY / "bench" / "results"
SEGMENT_MEBIBYTES = 512


@dataclass(frozen=True)
class Group:
    """`size`: partitions, or MiB of segments."""

    what: str
    size: int
    contenders: tuple[Contender, ...]
    make_inputs: Callable[[Path, int], tuple[Path, Mapping[str, int]]]

    def measured(self, folder: Path, rounds: int) -> dict[str, Any]:
        inputs, truth = self.make_inputs(folder, self.size)
        before = machine.load()
        with ExitStack() as stack:
            own = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="keeperless-bench-", ignore_cleanup_errors=True)))
            runners = [stack.enter_context(running(one, inputs, own / one.name, truth)) for one in self.contenders]
            _play(runners, rounds)
            told = _told(runners)
        return {"what": self.what, "size": self.size, "load": [before, machine.load()], "contenders": told, "truth": truth}


def _play(runners: Sequence[Runner], rounds: int) -> None:
    for runner in runners:
        for _ in range(runner.contender.warm_ups):
            runner.play(counts=False)
    for _ in range(rounds):
        for runner in runners:
            runner.play()


def _told(runners: Sequence[Runner]) -> list[dict[str, Any]]:
    first = runners[0]
    return [
        {
            "name": runner.contender.name,
            "seconds": [round(one.seconds, 4) for one in runner.rounds],
            "cpu_seconds": [round(one.cpu_seconds, 2) for one in runner.rounds],
            "ratio": round(median(a.seconds / b.seconds for a, b in zip(runner.rounds, first.rounds, strict=True)), 2),
            "peak_mebibytes": runner.peak_bytes >> 20,
        }
        for runner in runners
    ]


def groups(sizes: Sequence[int], only: Sequence[str], mebibytes: int) -> Iterator[Group]:
    for size in sizes:
        for what, all_of_them in (("raw files to report", RAW), ("staged rows to findings", STAGED)):
            yield Group(what, size, _wanted(all_of_them, size, only), cluster_inputs)
    yield Group("segments, checksums verified", mebibytes, _wanted(SEGMENTS, mebibytes, only), segment_inputs)


def _wanted(contenders: Sequence[Contender], size: int, only: Sequence[str]) -> tuple[Contender, ...]:
    return tuple(one for one in contenders if (not only or one.name in only) and (one.largest is None or size <= one.largest))


def lines(group: Mapping[str, Any]) -> Iterator[str]:
    """A table of one group."""
    unit = "MiB" if group["what"].startswith("segments") else "partitions"
    loads = " to ".join(f"{load[0]:.1f}" for load in group["load"])
    yield f"\n{group['what']}, {group['size']:,} {unit} (load {loads})"
    yield f"  {'':27}{'median s':>10}{'best s':>10}{'CPU s':>10}{'ratio':>9}{'peak MiB':>10}"
    for one in group["contenders"]:
        times = f"{median(one['seconds']):>10.3f}{min(one['seconds']):>10.3f}{median(one['cpu_seconds']):>10.2f}"
        speed = f"{group['truth']['bytes'] / min(one['seconds']) / 1e9:>8.2f} GB/s" if unit == "MiB" else ""
        yield f"  {one['name']:27}{times}{one['ratio']:>8.2f}x{one['peak_mebibytes']:>10,}{speed}"


def run(wanted: Sequence[Group], rounds: int, folder: Path, results: Path) -> Path:
    """Written after every group: what was measured stays, whatever happens to the rest."""
    begun = datetime.now(UTC)
    path = results / f"{begun:%Y-%m-%dT%H%M}.json"
    results.mkdir(parents=True, exist_ok=True)
    done: list[dict[str, Any]] = []
    for group in wanted:
        if group.contenders:
            done.append(group.measured(folder, rounds))
            print("\n".join(lines(done[-1])), flush=True)
            told = {"begun": begun.isoformat(timespec="seconds"), "rounds": rounds, "machine": machine.facts(), "groups": done}
            path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return path


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.compare")
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 100_000, 1_000_000], help="partitions")
    parser.add_argument("--mebibytes", type=int, default=SEGMENT_MEBIBYTES, help="of segments")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], metavar="CONTENDER", help="the first one of a group has ratio 1")
    parser.add_argument("--inputs", type=Path, default=INPUTS, help="made when they are not there, and kept")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    try:
        packages.install()
        wanted = list(groups(arguments.sizes, arguments.only, arguments.mebibytes))
        print(f"\nWritten: {run(wanted, arguments.rounds, arguments.inputs, arguments.results)}")
    except BenchError as wrong:
        print(f"bench: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
