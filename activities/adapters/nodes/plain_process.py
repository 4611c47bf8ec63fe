"""A node that is one plain process, known by a pid file.

Two small files tell who ran last:

- the pid file: just the pid, as people and their scripts expect it;
- `<pid file>.identity`: `pid@start ticks`, written by the process itself before it becomes the node, and by `stop`
  before the signal when the process was not started by us.

So the identity of a dead process is known after every start of ours and every stop of ours: `last_identity` changes with
each start, even if the process died at once, and a stop does not change it. Only a process that others started, and that
died without our `stop`, is remembered by its pid alone: `pid@unknown`. Looking never writes.
A clean stop needs no kill: what does not end by SIGTERM is left alone and reported. `kill` is for who asks for it by name.

Needs `sh`, `setsid`, `flock`, `stat` and `tail` on the node (util-linux and coreutils: on every Debian and Red Hat); with
`python3` what a process prints is read wherever it prints it, without it in the output file only. A worker
that runs under systemd needs `KillMode=process`: a session of its own does not take a node out of the worker's control group.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

from activities.adapters.nodes.procfs import (
    Stat,
    may_name_file,
    names_file,
    names_file_from,
    parse_boot_time,
    parse_stat,
    started_at,
)
from activities.adapters.nodes.scripts import OUTPUT_TAIL, SIGNAL, START, START_PROCESS
from activities.on_node import BARE, command_of
from activities.ports.nodes import FileContent, Transport
from domain.cluster import NodeSpec
from domain.diagnosis.logs.lines import LASTING_WORDS
from domain.diagnosis.machines.node_output import NodeOutput
from domain.errors import KeeperlessError, Permanent, Transient
from domain.observed.observation import Process

BOOT_TIME = "import time; print(time.time() - time.clock_gettime(7))"
"""7: CLOCK_BOOTTIME."""

CALL_LIMIT = timedelta(seconds=30)
"""For our own small scripts; they end in milliseconds, and wait up to ten seconds for another start."""

START_BUSY = 75
"""Exit code of `START`: another start holds the lock."""

STOP_POLL_SECONDS = 0.1
EXEC_POLL_SECONDS = 0.005
EXEC_SECONDS = 1.0
"""How long a living process may show no command line; a thread of the kernel's never shows one."""

CLOCK_SECONDS = 2
"""By how much times of the kernel's and of files may differ."""

UNKNOWN_START = "unknown"

IN_ENGLISH = {"LC_ALL": "C"}
LANGUAGE = ("LANG", "LC_")
"""Variables of a node's environment by which the system's errors are called."""

REFUSED = "not permitted"
MAY_NOT = "; the worker has to be its user or root, or to have CAP_KILL (User=, CapabilityBoundingSet= of the unit)"

Signal = Literal["TERM", "KILL"]


class PidFileProcess:
    """A `ServiceManager`. Stateless: all that it knows lies on the node."""

    def __init__(self, transport: Transport, node: NodeSpec) -> None:
        self._transport = transport
        self._node = node
        self._service = node.driver.service
        self._identity_file = f"{self._service.pid_file}.identity"

    async def process(self) -> Process:
        pid, remembered = await self._pid(), await self._remembered()
        running = await self._running(pid)
        boot = parse_boot_time(await self._proc("stat") or b"") or await self._boot_time_by_clock()
        if running is None:
            last = _last(pid, remembered)
            began = await self._unless_of_another_boot(started_at(last, boot))
            return Process(is_running=False, identity=None, last_identity=last, started_at=began)
        return Process(
            is_running=True,
            identity=running.identity,
            last_identity=running.identity,
            started_at=started_at(running.identity, boot),
            is_paused=running.is_paused,
        )

    async def start(self) -> None:
        """Look, then start only if the two files are still as they were when we looked, under a lock of the kernel's.

        Of two starts at once the second finds the files changed and does nothing. The lock belongs to an open file, which the
        new process holds until it has written its pid: no crash, ours or its, leaves it locked or starts a second process.
        """
        seen = await self._files()
        if (await self.process()).is_running:
            return
        service = self._service
        arguments = (service.pid_file, self._identity_file, service.output_file, seen, START_PROCESS, *self._command())
        done = await self._transport.run(("sh", "-c", START, "start", *arguments), self._node.environment, CALL_LIMIT)
        if done.exit_code == START_BUSY:
            raise Transient(f"{service.pid_file}: another start holds the lock for 10 s; try again")
        if done.exit_code != 0:
            why = (done.errors or done.output).strip()[-500:]
            raise Permanent(f"{service.pid_file}: cannot start the process: {why}{await self._without_room()}")

    async def stop(self, identity: str, deadline: timedelta) -> None:
        await self._end("TERM", identity, deadline)

    async def kill(self, identity: str, deadline: timedelta) -> None:
        await self._end("KILL", identity, deadline)

    async def _end(self, signal: Signal, identity: str, deadline: timedelta) -> None:
        pid, remembered = await self._pid(), await self._remembered()
        running = await self._running(pid)
        if running is None or running.identity != identity:
            return
        if remembered != running.identity:
            await self._remember(running.identity)
        await self._send(signal, running)
        await self._await_end(signal, running, deadline)

    async def output(self, lines: int, logs: Sequence[str] = ()) -> NodeOutput:
        running = await self._running(await self._pid())
        asked = {
            "id": self._node.id,
            "pid": running.pid if running is not None else None,
            "output_file": self._service.output_file,
            "lines": lines,
            "lasting": LASTING_WORDS,
            "logs": list(logs),
            "places": [self._service.output_file, self._service.pid_file, *self._node.log_dirs],
        }
        language = {name: value for name, value in self._node.environment.items() if name.startswith(LANGUAGE)}
        try:
            done = await self._transport.run(command_of("read_output", asked), language, CALL_LIMIT)
            told = json.loads(done.output)
            printed = told["changed_at"]
            changed_at = datetime.fromtimestamp(printed, tz=UTC) if printed is not None else None
            return NodeOutput(
                tuple(told["lines"]),
                changed_at,
                told["elsewhere"],
                full=tuple(told["full"]),
                read_only=tuple(told["read_only"]),
                deleted=tuple((holder, size) for holder, size in told["deleted"]),
            )
        except (Permanent, ValueError, KeyError):
            return NodeOutput(await self._tail(lines))

    async def _tail(self, lines: int) -> tuple[str, ...]:
        done = await self._transport.run(
            ("sh", "-c", OUTPUT_TAIL, "tail", self._service.output_file, str(lines)), {}, CALL_LIMIT
        )
        if done.exit_code != 0:
            raise Transient(f"{self._service.output_file}: cannot be read: {done.errors.strip()[-500:]}")
        return tuple(done.output.splitlines()[-lines:]) if lines > 0 else ()

    async def _without_room(self) -> str:
        """A shell does not tell what a volume that is full has told it."""
        try:
            full = (await self.output(0)).full
        except KeeperlessError:
            return ""
        return f"; no room is left for {', '.join(full)}" if full else ""

    def _command(self) -> tuple[str, ...]:
        path = self._node.properties_file
        command = tuple(part.replace("{properties}", path) for part in self._service.start_command)
        if not names_file("\0".join(command).encode(), path):
            raise Permanent(f"start_command of node {self._node.id}: names neither {{properties}} nor {path}")
        return command

    async def _text(self, path: str) -> str:
        file = await self._transport.read_file(path)
        return "" if file is None else file.content.decode(errors="surrogateescape")

    async def _files(self) -> str:
        """Both files as `$(cat pid-file identity-file)` gives them."""
        return (await self._text(self._service.pid_file) + await self._text(self._identity_file)).rstrip("\n")

    async def _pid(self) -> int | None:
        text = (await self._text(self._service.pid_file)).strip()
        return int(text) if text.isascii() and text.isdigit() else None

    async def _remembered(self) -> str | None:
        return (await self._text(self._identity_file)).strip() or None

    async def _boot_time_by_clock(self) -> datetime | None:
        """Where `/proc` does not tell: lxcfs, a unit with ProcSubset=pid."""
        try:
            done = await self._transport.run(("python3", *BARE, "-c", BOOT_TIME), {}, CALL_LIMIT)
            return datetime.fromtimestamp(float(done.output), tz=UTC)
        except (Permanent, ValueError):
            return None

    async def _unless_of_another_boot(self, began: datetime | None) -> datetime | None:
        """Its start ticks count from the boot that it ran in: by those of another it began after its identity was written."""
        if began is None:
            return None
        told = await self._transport.run(("stat", "-c", "%Y", self._identity_file), {}, CALL_LIMIT)
        written = told.output.strip()
        is_earlier = written.isdigit() and began.timestamp() <= int(written) + CLOCK_SECONDS
        return began if is_earlier else None

    async def _remember(self, identity: str) -> None:
        owner = await self._transport.read_file(self._service.pid_file)
        uid, gid = (owner.uid, owner.gid) if owner else (-1, -1)
        await self._transport.write_file(self._identity_file, FileContent(f"{identity}\n".encode(), 0o644, uid, gid))

    async def _proc(self, name: str) -> bytes | None:
        file = await self._transport.read_file(f"/proc/{name}")
        return None if file is None else file.content

    async def _stat(self, pid: int) -> Stat | None:
        content = await self._proc(f"{pid}/stat")
        stat = None if not content else parse_stat(content)
        return stat if stat is not None and stat.is_alive else None

    async def _running(self, pid: int | None) -> Stat | None:
        """The living process of this node: the pid file's, if its command line names the node's properties file."""
        stat = None if pid is None else await self._stat(pid)
        if stat is None:
            return None
        command_line = await self._command_line(stat)
        return stat if command_line is not None and await self._is_ours(stat.pid, command_line) else None

    async def _command_line(self, stat: Stat) -> bytes | None:
        """`None` when the process is gone. Linux shows none for a moment while one program replaces another: look again."""
        end = time.monotonic() + EXEC_SECONDS
        while not (command_line := await self._proc(f"{stat.pid}/cmdline")) and time.monotonic() < end:
            if await self._stat(stat.pid) != stat:
                return None
            await asyncio.sleep(EXEC_POLL_SECONDS)
        return command_line

    async def _is_ours(self, pid: int, command_line: bytes) -> bool:
        path = self._node.properties_file
        if names_file(command_line, path):
            return True
        if not may_name_file(command_line, path):
            return False
        working_directory = await self._transport.run(("readlink", f"/proc/{pid}/cwd"), {}, CALL_LIMIT)
        return names_file_from(command_line, working_directory.output.rstrip("\n"), path)

    async def _send(self, signal: Signal, running: Stat) -> None:
        arguments = (str(running.pid), str(running.start_ticks), signal)
        done = await self._transport.run(("sh", "-c", SIGNAL, "stop", *arguments), IN_ENGLISH, CALL_LIMIT)
        if done.exit_code != 0 and await self._stat(running.pid) == running:
            why = done.errors.strip()[-500:]
            raise Permanent(f"process {running.identity}: SIG{signal} cannot be sent: {why}{MAY_NOT if REFUSED in why else ''}")

    async def _await_end(self, signal: Signal, running: Stat, deadline: timedelta) -> None:
        end = time.monotonic() + deadline.total_seconds()
        while await self._stat(running.pid) == running:
            if time.monotonic() >= end:
                seconds = deadline.total_seconds()
                raise Transient(f"process {running.identity}: has not ended {seconds:g} s after SIG{signal}; it is left alone")
            await asyncio.sleep(STOP_POLL_SECONDS)


def _last(pid: int | None, remembered: str | None) -> str | None:
    """Who ran last, when nobody runs. The pid file wins where the two disagree: others have started the node since."""
    if pid is None or (remembered is not None and remembered.partition("@")[0] == str(pid)):
        return remembered
    return f"{pid}@{UNKNOWN_START}"
