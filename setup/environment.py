"""The steps of `make setup`. Each looks whether its work is done, and appears whole or not at all: kill it and run it again.

1. uv: the one on PATH, else one of our own in `.tools/`, pinned by hash and installed by pip.
2. `.venv/` with the interpreter that runs this.
3. The packages of `requirements.lock`, by hash, and the project itself, editable, so that its console scripts exist.
4. The jars of Kafka and ZooKeeper, a JRE, Temporal's dev server (`setup.parts`).
5. A stamp in `.venv/`, of all that the steps depend on. While it holds there is nothing to do, and no network is needed.
"""

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from setup.package_sources import for_our_tools, pip_options

REPOSITORY = Path(__file__).parent.parent
UV_LOCK = Path(__file__).with_name("uv.lock.txt")
OLDEST_UV = (0, 8)
"""Of a uv that somebody else installed. Its `pip` commands have kept their meaning since."""

INPUTS = ("requirements.lock", "playground/jars.lock.toml", "setup/uv.lock.txt")
SECTIONS = ("build-system", "project")
CACHE_VARIABLES = ("KEEPERLESS_CACHE", "XDG_CACHE_HOME", "HOME", "KEEPERLESS_JAVA", "TEMPORAL_CLI_PATH")


class SetupError(Exception):
    """What went wrong, and what to do about it: all that a person is shown."""


def set_up() -> None:
    Setup(REPOSITORY, dict(os.environ)).run()


def told(act: Callable[[], None]) -> int:
    """The exit code of a set-up. What went wrong is said in words."""
    signal.signal(signal.SIGTERM, _leave)  # as an exception it ends our tools too
    try:
        act()
    except SetupError as error:
        print(f"\nsetup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nsetup: interrupted. What is fetched is kept; run it again to go on.", file=sys.stderr)
        return 130
    return 0


def _leave(_number: int, _frame: FrameType | None) -> None:
    sys.exit(143)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Setup:
    """One checkout, and the environment to work in."""

    def __init__(self, checkout: Path, environment: Mapping[str, str]) -> None:
        self._checkout = checkout
        self._environment = dict(environment)
        self._tools = checkout / ".tools"
        self._venv = checkout / ".venv"
        self._stamp = self._venv / "keeperless-setup.json"

    @property
    def python(self) -> Path:
        return self._venv / "bin" / "python"

    def run(self) -> None:
        """Everything, or nothing when it has been done."""
        if self.is_done():
            return
        with only_one(self._tools / "setup.lock"):
            if self.is_done():
                return
            self._stamp.unlink(missing_ok=True)
            self._environment = self.tool_environment()
            uv = self.uv()
            self._make_venv(uv)
            self._install(uv)
            kafka = self._fetch_parts()
            self._write_stamp(kafka)
            say(f"Ready. Everything is in {self._venv} and {kafka.parent}; the next set-up starts at once.")

    def is_done(self) -> bool:
        """The stamp is there and of what is here now. No process, no network."""
        try:
            stamp = json.loads(self._stamp.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        is_same = stamp.get("fingerprint") == self._fingerprint()
        return is_same and self.python.exists() and Path(stamp["kafka"]).is_dir()

    def _write_stamp(self, kafka: Path) -> None:
        fresh = self._stamp.with_suffix(".new")
        fresh.write_text(json.dumps({"fingerprint": self._fingerprint(), "kafka": str(kafka)}), encoding="utf-8")
        fresh.replace(self._stamp)

    def _fingerprint(self) -> str:
        """Of all that decides what set-up would install; not of settings of tools, which change nothing here."""
        project = tomllib.loads((self._checkout / "pyproject.toml").read_text(encoding="utf-8"))
        told = {
            "python": sys.version_info[:2],
            "place": str(self._checkout),
            "inputs": [(self._checkout / name).read_text(encoding="utf-8") for name in INPUTS],
            "project": [project[section] for section in SECTIONS],
            "environment": [self._environment.get(name) for name in CACHE_VARIABLES],
        }
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    def tool_environment(self) -> dict[str, str]:
        """The environment of every tool: pip's sources for all of them, and no interpreter but the one that was chosen."""
        environment = self._environment | for_our_tools(pip_options(), self._environment)
        for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "UV_PYTHON"):
            environment.pop(name, None)
        return environment | {"UV_PYTHON_DOWNLOADS": "never"}

    # ---- 1. uv ----

    def uv(self) -> str:
        found = shutil.which("uv", path=self._environment.get("PATH", ""))
        version = self._version_of_uv(found) if found else None
        if found and version is not None and version >= OLDEST_UV:
            say(f"uv: the one on PATH, {found}")
            return found
        return self.own_uv()

    def own_uv(self) -> str:
        """The pinned uv in `.tools/`, installed when it is not there. It is moved to its place when it is complete."""
        home = self._tools / f"uv-{hashlib.sha256(UV_LOCK.read_bytes()).hexdigest()[:12]}"
        if not (home / "uv").exists():
            say(f"Fetching uv, which installs the packages, into {home} (once, about 25 MB)")
            self._install_uv(home)
        return str(home / "uv")

    def _install_uv(self, home: Path) -> None:
        partial = self._tools / "uv.partial"
        shutil.rmtree(partial, ignore_errors=True)
        if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            raise SetupError(
                f"{sys.executable} has no venv with pip. Install it (Debian and Ubuntu: python{version}-venv), or install uv"
            )
        self.call([sys.executable, "-m", "venv", str(partial)], "a tool environment for uv could not be made")
        pip = [str(partial / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        self.call([*pip, "--only-binary=:all:", "--require-hashes", "-r", str(UV_LOCK)], f"uv could not be fetched. {NETWORK}")
        (partial / "bin" / "uv").replace(partial / "uv")
        for leftover in ("bin", "lib", "lib64", "include", "share", "pyvenv.cfg"):
            _remove(partial / leftover)
        partial.replace(home)

    def _version_of_uv(self, uv: str) -> tuple[int, ...] | None:
        """`None` for what is called uv and does not run: a shim of pyenv's without a version behind it, for instance."""
        told = subprocess.run([uv, "--version"], capture_output=True, text=True, check=False, env=self._environment)
        words = told.stdout.split()
        numbers = words[1].split(".") if told.returncode == 0 and len(words) > 1 else []
        return tuple(int(number) for number in numbers[:2]) if numbers and all(n.isdigit() for n in numbers[:2]) else None

    # ---- 2. and 3. the environment and its packages ----

    def _make_venv(self, uv: str) -> None:
        if self._is_venv_usable():
            return
        say(f"Making {self._venv} with {sys.executable}")
        _remove(self._venv)
        # The full path of an interpreter: uv cannot use the shims that version managers put on PATH.
        command = [uv, "venv", "--quiet", "--no-project", "--python", sys.executable, str(self._venv)]
        self.call(command, "the environment .venv could not be made")

    def _is_venv_usable(self) -> bool:
        """An interpreter of the wanted version answers from there. It does not when it was uninstalled since."""
        if not self.python.exists():
            return False
        ask = [str(self.python), "-c", "import sys; print(*sys.version_info[:2])"]
        told = subprocess.run(ask, capture_output=True, text=True, check=False, env=self._environment)
        return told.stdout.split() == [str(number) for number in sys.version_info[:2]]

    def _install(self, uv: str) -> None:
        say("Installing the packages of requirements.lock (cold about 175 MB: mostly a JRE, Temporal's server, PostgreSQL)")
        pip = [uv, "--quiet", "pip"]
        place = ["--python", str(self.python)]
        lock = str(self._checkout / "requirements.lock")
        self.call([*pip, "sync", *place, "--require-hashes", lock], f"the packages could not be installed. {NETWORK}")
        project = ["--no-deps", "--no-build-isolation", "--editable", str(self._checkout)]
        self.call([*pip, "install", *place, *project], "the project itself could not be installed")

    # ---- 4. what is not a package ----

    def _fetch_parts(self) -> Path:
        done = subprocess.run(
            [str(self.python), "-m", "setup.parts"],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
            cwd=self._checkout,
            env=self._environment,
        )
        if done.returncode != 0:
            raise SetupError("not finished, see above. What is fetched is kept; run it again to go on.")
        return Path(done.stdout.splitlines()[-1])

    def call_uv(self, arguments: Sequence[str], failure: str) -> None:
        """uv, for what else has packages of its own in `.venv`."""
        self._environment = self.tool_environment()
        self.call([self.uv(), *arguments], failure)

    def call(self, command: Sequence[str], failure: str) -> None:
        """A tool, told to be quiet. When it fails its own words stand above ours."""
        done = subprocess.run(command, stdin=subprocess.DEVNULL, check=False, cwd=self._checkout, env=self._environment)
        if done.returncode != 0:
            raise SetupError(failure)


NETWORK = (
    "Check that this machine reaches Python's package index: a mirror, proxy or certificate authority is named in pip's "
    "configuration (pip config list), and used for everything. What is fetched is kept; run it again to go on."
)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def only_one(lock_file: Path) -> Iterator[None]:
    """Of two set-ups of one checkout the second waits, and finds the work done."""
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with lock_file.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Waiting for another set-up of this checkout to end")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
