"""Who is measured. Each is a context manager over inputs and a folder of its own: it gets ready, and gives a function that
does all of it once, into a new folder, and tells what it has found.
"""

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

Play = Callable[[Path], dict[str, int]]
Opened = Callable[[Path, Path], AbstractContextManager[Play]]


@dataclass(frozen=True)
class Contender:
    """`place`: module and function; libraries are imported by whoever is measured, and by nobody else.

    `warm_ups`: rounds before those that count. `largest`: size beyond which it takes too long or too much memory.
    """

    name: str
    place: str
    warm_ups: int = 1
    largest: int | None = None

    def opened(self, inputs: Path, own: Path) -> AbstractContextManager[Play]:
        module, _, function = self.place.partition(":")
        return cast("Opened", getattr(importlib.import_module(f"bench.contenders.{module}"), function))(inputs, own)


RAW = (
    Contender("ours-raw-local", "ours:raw_local"),
    Contender("ours-raw-spark", "ours_on_spark:raw", warm_ups=2),
    Contender("ours-raw-spark-new-session", "ours_on_spark:raw_in_new_sessions", warm_ups=2),
)
STAGED = (
    Contender("duckdb", "duck:full_join"),
    Contender("duckdb-row-hash", "duck:row_hash_join"),
    Contender("ours-local", "ours:staged_local"),
    Contender("ours-spark", "ours_on_spark:staged", warm_ups=2),
    Contender("polars", "polar:full_join"),
    Contender("datacompy-spark", "datacompy_on_spark:compared_by_datacompy", largest=1_000_000),
)
SEGMENTS = (
    Contender("plain-reading", "walking:plain"),
    Contender("walk", "walking:walked"),
    Contender("walk-two-processes", "walking:walked_by_two"),
)
BY_NAME = {one.name: one for one in (*RAW, *STAGED, *SEGMENTS)}
