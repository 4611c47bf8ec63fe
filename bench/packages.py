"""The packages of `requirements-bench.lock`, by hash, in a folder that only contenders have on their path."""

import hashlib
import os
import shutil

from setup.environment import NETWORK, REPOSITORY, Setup, only_one

LOCK = REPOSITORY / "requirements-bench.lock"
"""Made with the lock of the checks as its constraint: what both have is of the same version."""
FOLDER = REPOSITORY / ".tools" / f"bench-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]}"


def install() -> None:
    """Once, whole or not at all."""
    with only_one(REPOSITORY / ".tools" / "bench.lock"):
        if FOLDER.is_dir():
            return
        partial = FOLDER.with_name("bench.partial")
        shutil.rmtree(partial, ignore_errors=True)
        setup = Setup(REPOSITORY, os.environ)
        place = ["--python", str(setup.python), "--target", str(partial)]
        what = ["--require-hashes", "--no-deps", "-r", str(LOCK)]
        setup.call_uv(["pip", "install", "--quiet", *place, *what], f"the bench's packages could not be installed. {NETWORK}")
        partial.rename(FOLDER)
