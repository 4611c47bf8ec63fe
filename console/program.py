"""A console script: `--help`, `--version`, wrong settings and a missing server answered in one sentence, then its work."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NoReturn

import structlog
from pydantic import BaseModel, ValidationError

from console.health import beat_file, why_unhealthy
from console.inherited import take_signals_as_they_are
from console.leaving import exit_cleanly
from console.logs import configure_logs
from console.worker_settings import WorkerSettings

WRONG_SETTINGS = 2
"""The exit code when a person has to change a setting first; argparse's own for wrong arguments."""

FROM_A_CHECKOUT = "0+checkout"
"""The packages are used where they lie, without having been installed."""

EXIT_CODES = """\
exit codes:
  0   stopped by SIGINT or SIGTERM
  1   an error; the log ends with it (keeperless-api: the port is taken; --health: the worker is not healthy)
  2   a setting or an argument is wrong
  69  Temporal does not answer (a worker; keeperless-api starts without it)
  75  this machine starts no more threads; start the program again
"""


class CannotStart(Exception):
    """Why a program cannot start: one sentence for the person who starts it. `code` is the exit code."""

    def __init__(self, sentence: str, code: int = WRONG_SETTINGS) -> None:
        super().__init__(sentence)
        self.code = code


@dataclass(frozen=True)
class Program:
    """One of our console scripts. `needs`: what has to be there, and where the program runs. `settings`: all that it reads."""

    name: str
    does: str
    needs: str
    settings: tuple[type[BaseModel], ...] = ()


def run_program(program: Program, serve: Callable[[], int]) -> NoReturn:
    """Answer `--help`, `--version` and `--health`; else serve, and leave with the exit code that `serve` returns."""
    asked = _parser(program).parse_args()
    take_signals_as_they_are()
    configure_logs(program.name)
    log = structlog.get_logger()
    try:
        code = _health_of(program) if getattr(asked, "health", False) else serve()
    except ValidationError as error:
        log.error("cannot start with these settings", error=wrong_settings(error))  # noqa: TRY400 - no bug, no traceback
        code = WRONG_SETTINGS
    except CannotStart as error:
        log.error("cannot start", error=str(error))  # noqa: TRY400
        code = error.code
    exit_cleanly(code)


def release() -> str:
    """The version of the packages that this process runs."""
    try:
        return version("keeperless")
    except PackageNotFoundError:
        return FROM_A_CHECKOUT


def _worker_settings(program: Program) -> type[WorkerSettings] | None:
    """`None` of a program that is no worker: it has no heartbeat."""
    return next((model for model in program.settings if issubclass(model, WorkerSettings)), None)


def _health_of(program: Program) -> int:
    model = _worker_settings(program)
    unhealthy = why_unhealthy(beat_file(model().runtime_directory, program.name)) if model is not None else ""
    print(unhealthy or f"{program.name} beats, and polls for tasks.")
    return 1 if unhealthy else 0


def wrong_settings(error: ValidationError) -> str:
    """Each wrong setting by the name of its variable, without its value."""
    return "; ".join(": ".join([*_variable(each["loc"]), each["msg"].removeprefix("Value error, ")]) for each in error.errors())


def _variable(loc: tuple[int | str, ...]) -> list[str]:
    """Nothing where several settings together are wrong: then the message names them."""
    return [".".join(f"KEEPERLESS_{part}".upper() for part in loc)] if loc else []


def default_of(value: object) -> str:
    """A setting's default as a person would write it, on any machine; empty where there is none."""
    if isinstance(value, timedelta):
        value = f"{value.days} days" if value >= timedelta(days=2) else f"{value.total_seconds():g} s"
    return "" if value is None or value == () else str(value).replace(str(Path.home()), "~")


def _parser(program: Program) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program.name,
        description=f"{program.does} {program.needs}",
        epilog=f"{_settings(program)}\n{EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{program.name} {release()}")
    if _worker_settings(program) is not None:
        words = "exit with 0 if this machine's worker beats and polls for tasks, else with 1 and a sentence"
        parser.add_argument("--health", action="store_true", help=words)
    parser.add_argument("label", nargs="?", help="ignored; distinguishes this process in ps")
    return parser


def _settings(program: Program) -> str:
    lines = ["settings, all of them environment variables (docs/configuration.md):"]
    for model in program.settings:
        for name, field in model.model_fields.items():
            lines.append(f"  KEEPERLESS_{name.upper():<20} {default_of(field.default)}".rstrip())
    return "\n".join([*lines, "  TEMPORAL_ADDRESS, …            as Temporal's own command line reads them\n"])
