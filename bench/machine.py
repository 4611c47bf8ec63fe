"""What the figures of a run are figures of."""

import os
import platform
import subprocess
from importlib.metadata import distributions
from pathlib import Path

import psutil

from bench.packages import FOLDER
from setup.environment import REPOSITORY

NAMED = ("crc32c", "datacompy", "duckdb", "numpy", "polars", "pyarrow", "pyspark")


def facts() -> dict[str, object]:
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": _versions(),
        "commit": _commit(),
    }


def load() -> list[float]:
    """Processes that wanted a core: over the last 1, 5 and 15 minutes."""
    return [round(average, 2) for average in os.getloadavg()]


def _processor() -> str:
    told = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in told if line.startswith("model name")), platform.machine())


def _versions() -> dict[str, str]:
    installed = [*distributions(path=[str(FOLDER)]), *distributions()]
    found = {one.name.lower(): one.version for one in installed}
    return {name: found[name] for name in NAMED if name in found}


def _commit() -> str:
    told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return told.stdout.strip() if told.returncode == 0 else "unknown"
