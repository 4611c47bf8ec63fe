"""PySpark and what it needs, beside the other packages of `.venv`: `make setup-checks`, and in the background of `make demo`.

Its source package is 456 MB, so it comes apart from the rest, and whole or not at all, even under the eyes of a program that
looks for it: it is installed into a folder that nobody reads, the folder is moved to its name, and then one file
`keeperless-checks.pth`, replaced in one step, makes every interpreter of `.venv` that starts from then on see it. `uv pip sync`
of the first lock leaves all that alone.
"""

import hashlib
import os
import shutil
import sys
from pathlib import Path

from setup.environment import NETWORK, REPOSITORY, Setup, only_one, say

LOCK = "requirements-checks.lock"
"""Made with the first lock as its constraint, so where they have a package in common it is in the same version."""


MAKE_ARCHIVE = "from spark.session.classes import make_archive; make_archive()"


class ChecksSetup:
    """PySpark for one checkout. `setup` has been run."""

    def __init__(self, checkout: Path, setup: Setup) -> None:
        self._checkout = checkout
        self._setup = setup
        self._venv = checkout / ".venv"

    @property
    def folder(self) -> Path:
        """Where the packages of this lock are, or will be."""
        return self._venv / f"checks-{hashlib.sha256((self._checkout / LOCK).read_bytes()).hexdigest()[:12]}"

    @property
    def _archive(self) -> Path:
        """Spark's classes (`spark.session.classes`): the last that is made."""
        return self.folder / "keeperless-spark.jsa"

    @property
    def _pointer(self) -> Path:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self._venv / "lib" / version / "site-packages" / "keeperless-checks.pth"

    def run(self) -> None:
        """Everything, or nothing when it has been done."""
        if self.is_done():
            return
        with only_one(self._checkout / ".tools" / "setup-checks.lock"):
            if self.is_done():
                return
            if not self.folder.is_dir():
                self._install()
            self._point()
            self._remove_others()
            self._make_class_archive()
            say(f"Ready. PySpark is in {self.folder}.")

    def is_done(self) -> bool:
        """No process, no network."""
        try:
            return self._pointer.read_text(encoding="utf-8").strip() == str(self.folder) and self._archive.exists()
        except OSError:
            return False

    def _install(self) -> None:
        """`--no-deps`, because the lock has everything. It also names, by hash, what may build PySpark's source package."""
        say("Installing PySpark, for the checks (cold 456 MB, half a minute on a fast line)")
        partial = self._venv / "checks.partial"
        shutil.rmtree(partial, ignore_errors=True)
        lock = str(self._checkout / LOCK)
        place = ["--python", str(self._setup.python), "--target", str(partial)]
        what = ["--require-hashes", "--no-deps", "--build-constraints", lock, "-r", lock]
        self._setup.call_uv(["pip", "install", "--quiet", *place, *what], f"PySpark could not be installed. {NETWORK}")
        shutil.rmtree(self.folder, ignore_errors=True)
        partial.replace(self.folder)

    def _point(self) -> None:
        fresh = self._pointer.with_suffix(".new")
        fresh.write_text(f"{self.folder}\n", encoding="utf-8")
        fresh.replace(self._pointer)

    def _make_class_archive(self) -> None:
        say("Preparing a class archive, so that Spark starts in half the time (once, about 30 s)")
        make = [str(self._setup.python), "-c", f"import sys; sys.path.insert(0, {str(self._checkout)!r}); {MAKE_ARCHIVE}"]
        self._setup.call(make, "the class archive of Spark could not be made")

    def _remove_others(self) -> None:
        for other in self._venv.glob("checks-*"):
            if other != self.folder:
                shutil.rmtree(other)


def set_up_checks() -> None:
    setup = Setup(REPOSITORY, dict(os.environ))
    setup.run()
    ChecksSetup(REPOSITORY, setup).run()
