"""PySpark's large package, fetched beside the demo's other work. Until it is there, checks run on the local engine."""

import os
import sys
from pathlib import Path

from playground import processes
from playground.cache import Announce
from playground.processes import Launch
from setup.checks import ChecksSetup
from setup.environment import REPOSITORY, Setup


def start_checks_setup(directory: Path, announce: Announce) -> None:
    """Ends by itself, or with the demo. Nothing is started when it is all there."""
    if not ChecksSetup(REPOSITORY, Setup(REPOSITORY, os.environ)).is_done():
        announce(f"PySpark is fetched in the background (456 MB, once); until then checks run without it: {log_of(directory)}")
        processes.start(launch(directory))


def launch(directory: Path) -> Launch:
    """At a lower priority: nobody waits for it. The log's name is a word that the program ignores, and we know it by."""
    return Launch(
        name="checks-setup",
        command=("nice", "-n", "10", sys.executable, "-m", "setup", "--checks", str(log_of(directory))),
        pid_file=directory / "checks-setup.pid",
        output_file=log_of(directory),
        environment=dict(os.environ) | {"PYTHONPATH": str(REPOSITORY)},
        mark=str(log_of(directory)),
    )


def log_of(directory: Path) -> Path:
    return directory / "checks-setup.log"
