"""`python -m activities.zk_to_kraft.rehearsal.program DIRECTORY OUTSIDE`: a rehearsal, from inside its room.

Started by `unshare` as the first process of namespaces of its own. Standard input is the leash: when its other end is gone,
however that came, the servers end, the directory with all its secrets is removed, and so this program ends, and with it
whatever else is in the namespace.
"""

import asyncio
import os
import secrets
import shutil
import sys
import threading
import time
from base64 import urlsafe_b64encode
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

from pydantic import BaseModel

from activities.zk_to_kraft.rehearsal import copied_tree
from activities.zk_to_kraft.rehearsal.candidates import candidates_in
from activities.zk_to_kraft.rehearsal.isolation import NotAlone, enter_alone
from activities.zk_to_kraft.rehearsal.messages import (
    CONTROLLER,
    PASSED,
    ROWS,
    Copied,
    Ended,
    Failed,
    NotIsolated,
    Order,
    Ready,
    Trying,
)
from activities.zk_to_kraft.rehearsal.servers import Servers
from activities.zk_to_kraft.rehearsal.trial import Seen, Trials
from domain.amounts import counted
from domain.errors import KeeperlessError, Permanent
from domain.rehearsal import RehearsalLimits
from domain.zk_to_kraft.rehearsal.trials import Candidate, Outcome, Trial, next_trial

TOLD = 12
"""Lines of the controller's errors that are told."""


def tell(message: BaseModel) -> None:
    sys.stdout.write(message.model_dump_json() + "\n")
    sys.stdout.flush()


def hold_leash(directory: Path, servers: Servers, lines: "SimpleQueue[str]") -> None:
    """In a thread of its own: it ends everything, also while the rest of the program is busy."""
    for line in sys.stdin:
        lines.put(line)
    servers.end_all()
    shutil.rmtree(directory, ignore_errors=True)
    with suppress(OSError):
        directory.parent.rmdir()
    os._exit(0)


async def rehearse(directory: Path, order: Order, servers: Servers) -> Ended:
    """Trials until nothing more is to be learnt, or rounds or time are over."""
    deadline = time.monotonic() + order.seconds
    trials = Trials(directory, order, servers, new_cluster_id())
    begun = time.monotonic()
    tell(Trying(round=0, stage="formatting"))
    await trials.format()
    candidates: tuple[Candidate, ...] = ()
    made: list[Trial] = []
    copied = Copied()
    seconds: dict[str, float] = {"format": _since(begun)}
    left_out: frozenset[str] | None = frozenset()
    cut = ""
    while left_out is not None and not (cut := why_no_round(len(made), deadline - time.monotonic(), order.limits)):
        begun, number = time.monotonic(), len(made) + 1
        tell(Trying(round=number, stage="copying"))
        async with trials.zookeeper() as tree:
            if not made:
                ensure_new_enough(trials.files_end, order.newest_zxid)
            await copied_tree.end_sessions(tree)
            await copied_tree.register(tree, trials.brokers)
            candidates = candidates if made else await candidates_in(tree)
            trial, seen = await trials.run(tree, left_out)
        made.append(trial)
        seconds[f"round {number}: {trial.outcome}"] = _since(begun)
        if is_first_passed(made):
            keep(directory)
        if is_first_passed(made) or not copied.records:
            copied = copied_of(seen)
        left_out = None if seen.usage.was_out_of_memory or seen.refused else next_trial(candidates, made)
        cut = f"round {number} was not over after {order.limits.round_deadline}" if seen.is_out_of_time else ""
    return Ended(candidates=candidates, trials=tuple(made), copied=copied, cut=cut, seconds=seconds)


def why_no_round(made: int, seconds_left: float, limits: RehearsalLimits) -> str:
    """Why no further one begins, although it would tell more; the first always does."""
    if made >= limits.max_rounds:
        return f"{counted(made, 'round')} were made, and no more are"
    if made and seconds_left < limits.round_deadline.total_seconds():
        return f"after {counted(made, 'round')} the time was up"
    return ""


def is_first_passed(made: list[Trial]) -> bool:
    return made[-1].outcome is Outcome.COPIED and all(trial.outcome is not Outcome.COPIED for trial in made[:-1])


def keep(directory: Path) -> None:
    """The log and the rows of this trial, for the comparison."""
    (directory / PASSED).mkdir(mode=0o700)
    for name in (CONTROLLER, ROWS):
        (directory / name).rename(directory / PASSED / name)


def copied_of(seen: Seen) -> Copied:
    log = seen.log
    return Copied(
        records=log.kinds,
        copy_seconds=log.copy_ms / 1000 if log.copy_ms is not None else None,
        seconds_without_controller=log.seconds_without_controller,
        usage=seen.usage,
        waits=seen.refused or log.waits,
        told=log.errors[-TOLD:],
    )


def ensure_new_enough(files_end: int, newest_zxid: int) -> None:
    """A member that is down, cut off, or lags has old files: a rehearsal on them would prove nothing."""
    if files_end < newest_zxid:
        raise Permanent(
            f"the copied files end at transaction {files_end:#x}, and the ensemble was at {newest_zxid:#x} before they were "
            "copied: this member does not follow. Name one that does, or fix it."
        )


def new_cluster_id() -> str:
    """No other cluster's: no node of a living one can join this one."""
    return urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode().replace("-", "x")


def _since(begun: float) -> float:
    return round(time.monotonic() - begun, 3)


async def run(directory: Path, servers: Servers, lines: "SimpleQueue[str]") -> None:
    order = Order.model_validate_json(await asyncio.to_thread(lines.get))
    try:
        tell(await rehearse(directory, order, servers))
    except (KeeperlessError, TimeoutError) as error:
        tell(Failed(why=str(error) or type(error).__name__))
    finally:
        servers.end_all()


def main(directory: Path, outside: str) -> None:
    servers, lines = Servers(), SimpleQueue[str]()
    try:
        enter_alone(outside)
    except NotAlone as error:
        tell(NotIsolated(why=str(error)))
        return
    leash = threading.Thread(target=hold_leash, args=(directory, servers, lines), name="leash")
    leash.start()
    tell(Ready())
    try:
        asyncio.run(run(directory, servers, lines))
    finally:
        sys.stdout.close()  # Whatever has happened, nothing more is told: whoever listens need not wait.
        leash.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
