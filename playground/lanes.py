"""The slow tests, two at a time: what `make chaos` runs.

    python -m playground.lanes [--lanes N] TESTS… [-- ARGUMENTS OF PYTEST]

A test on a real cluster keeps two cores half busy and waits for the rest of its time: for sessions that end, for elections, for
proofs. So two of them at once take little longer than one. Each runs in a pytest of its own, in the order in which they are
named, and what it prints appears as a whole when it has ended. Tests that share a cluster stay together, and so do those that
need none, with the first that does: a run without any real cluster is none that counts.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
PYTEST = (sys.executable, "-m", "pytest", "-m", "chaos")
SHARED = frozenset({"tests/cluster/test_window.py"})
"""Files whose tests share one cluster."""


@dataclass(frozen=True)
class Entry:
    """What one pytest runs, and how that went."""

    tests: tuple[str, ...]
    seconds: float = 0.0
    is_passed: bool = False
    output: str = ""


def entries_of(ids: Sequence[str]) -> list[tuple[str, ...]]:
    """Who runs with whom, in the order of the ids."""
    without_cluster = [test for test in ids if not test.startswith("tests/cluster/")]
    groups: dict[str, list[str]] = {}
    for test in ids:
        file = test.partition("::")[0]
        if test not in without_cluster:
            groups.setdefault(file if file in SHARED else test, []).append(test)
    first, *others = [tuple(group) for group in groups.values()] or [()]
    return [(*without_cluster, *first), *others]


def collected(tests: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """The ids of what is to run."""
    command = [*PYTEST, "--collect-only", "-q", *tests, *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"nothing to run:\n{done.stdout}{done.stderr}")
    return [line for line in done.stdout.splitlines() if "::" in line]


def run(tests: tuple[str, ...], arguments: Sequence[str]) -> Entry:
    began = time.monotonic()
    command = [*PYTEST, "-rA", *arguments, *tests]
    done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return Entry(tests, time.monotonic() - began, done.returncode == 0, done.stdout)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Run the slow tests, several at a time.")
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument("tests", nargs="+")
    mine, arguments = (words, []) if "--" not in words else (words[: words.index("--")], words[words.index("--") + 1 :])
    asked = parser.parse_args(mine)
    began = time.monotonic()
    ended: list[Entry] = []
    with ThreadPoolExecutor(asked.lanes) as lanes:
        running = [lanes.submit(run, tests, arguments) for tests in entries_of(collected(asked.tests, arguments))]
        try:
            for future in as_completed(running):
                ended.append(future.result())
                print(ended[-1].output, flush=True)
        except KeyboardInterrupt:
            # What runs has got the same signal, and cleans up: it is waited for, and nothing else begins.
            lanes.shutdown(cancel_futures=True)
            raise
    for entry in ended:
        print(f"{'passed' if entry.is_passed else 'FAILED'} {entry.seconds:6.0f} s  {' '.join(entry.tests)}")
    print(f"{len(ended)} runs, {sum(e.seconds for e in ended):.0f} s one after the other, {time.monotonic() - began:.0f} s so")
    return 0 if all(entry.is_passed for entry in ended) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
