"""`make lock`: write `requirements.lock` anew from pyproject.toml. `--check` writes nothing and fails when it is out of date.

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
from pathlib import Path

from setup.environment import REPOSITORY, Setup, SetupError

LOCK = REPOSITORY / "requirements.lock"
COMPILE = ("pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-header", "--group", "dev", "pyproject.toml")
OLDEST_PYTHON = "3.11"


def compiled(*, is_upgrade: bool) -> str:
    """The content that the lock should have."""
    setup = Setup(REPOSITORY, os.environ)
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder, "requirements.lock")
        if LOCK.exists() and not is_upgrade:
            shutil.copyfile(LOCK, fresh)
        options = ["--python", sys.executable, "--python-version", OLDEST_PYTHON, "--output-file", str(fresh)]
        done = subprocess.run([setup.own_uv(), *COMPILE, *options], cwd=REPOSITORY, env=setup.tool_environment(), check=False)
        if done.returncode != 0:
            raise SetupError("requirements.lock could not be made")
        return fresh.read_text(encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m setup.lock")
    parser.add_argument("--check", action="store_true", help="fail when the lock is not what pyproject.toml asks for")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that pyproject.toml allows")
    arguments = parser.parse_args()
    try:
        wanted = compiled(is_upgrade=arguments.upgrade)
    except SetupError as error:
        sys.exit(f"lock: {error}")
    if not arguments.check:
        LOCK.write_text(wanted, encoding="utf-8")
        return 0
    found = LOCK.read_text(encoding="utf-8")
    sys.stdout.writelines(difflib.unified_diff(found.splitlines(True), wanted.splitlines(True), "requirements.lock", "wanted"))
    print("requirements.lock is current" if found == wanted else "requirements.lock is out of date: make lock")
    return 0 if found == wanted else 1


if __name__ == "__main__":
    sys.exit(main())
