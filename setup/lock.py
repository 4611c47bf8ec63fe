"""`make lock`: write the locks anew from pyproject.toml. `--check` writes nothing and fails when one is out of date.

Always with our own pinned uv: another version may write the same thing in other words. Versions that are locked stay unless
`--upgrade` is given, so a check fails because somebody forgot to lock, not because somebody else released something.
"""

import argparse
import difflib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from setup.environment import REPOSITORY, Setup, SetupError

COMPILE = ("pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-header")
OLDEST_PYTHON = "3.11"


@dataclass(frozen=True)
class Lock:
    """A file of pinned packages, and what of pyproject.toml is in it."""

    name: str
    what: tuple[str, ...]


MAIN = Lock("requirements.lock", ("--group", "dev", "pyproject.toml"))
CHECKS = Lock("requirements-checks.lock", ("--group", "checks", "--constraint", MAIN.name))
"""The two are installed side by side, so what both have is of the same version. The first is to be current."""
BENCH = Lock("requirements-bench.lock", ("--group", "bench", "--constraint", CHECKS.name))
"""Before the others on the path of whoever is measured: again nothing is there in two versions."""
SERVICE = Lock("requirements-service.lock", ("--group", "build", "--constraint", MAIN.name, "pyproject.toml"))
"""What an installation needs, and what builds our own package: of the same versions as the first."""
PLAYGROUND = Lock("requirements-playground.lock", ("--group", "playground", "--constraint", MAIN.name))
"""What the container of the demo's nodes has besides."""
LOCKS = (MAIN, CHECKS, BENCH, SERVICE, PLAYGROUND)


def compiled(lock: Lock, *, is_upgrade: bool) -> str:
    """The content that the lock should have."""
    setup = Setup(REPOSITORY, os.environ)
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder, lock.name)
        if (REPOSITORY / lock.name).exists() and not is_upgrade:
            shutil.copyfile(REPOSITORY / lock.name, fresh)
        options = ["--python", sys.executable, "--python-version", OLDEST_PYTHON, "--output-file", str(fresh)]
        command = [setup.own_uv(), *COMPILE, *lock.what, *options]
        done = subprocess.run(command, cwd=REPOSITORY, env=setup.tool_environment(), check=False)
        if done.returncode != 0:
            raise SetupError(f"{lock.name} could not be made")
        return fresh.read_text(encoding="utf-8")


def write(lock: Lock, *, is_upgrade: bool) -> None:
    (REPOSITORY / lock.name).write_text(compiled(lock, is_upgrade=is_upgrade), encoding="utf-8")


def is_current(lock: Lock) -> bool:
    """Says what differs."""
    wanted = compiled(lock, is_upgrade=False)
    found = (REPOSITORY / lock.name).read_text(encoding="utf-8")
    sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), wanted.splitlines(True), lock.name, "wanted"))
    print(f"{lock.name} is current" if found == wanted else f"{lock.name} is out of date: make lock")
    return found == wanted


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m setup.lock")
    parser.add_argument("--check", action="store_true", help="fail when a lock is not what pyproject.toml asks for")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that pyproject.toml allows")
    arguments = parser.parse_args()
    try:
        if arguments.check:
            return 0 if min([is_current(lock) for lock in LOCKS]) else 1  # all are told of
        for lock in LOCKS:
            write(lock, is_upgrade=arguments.upgrade)
    except SetupError as error:
        sys.exit(f"lock: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
