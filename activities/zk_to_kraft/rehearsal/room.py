"""The room of a rehearsal on this machine: `unshare`, with a network and processes of its own.

    unshare --net --pid --fork --kill-child  python -m activities.zk_to_kraft.rehearsal.program DIRECTORY OUTSIDE

Its standard input is the leash. If the program dies, the kernel ends all that it has started; if `unshare` dies, `--kill-child`
ends the program.
"""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from shutil import which

from pydantic import BaseModel, ValidationError

from activities.zk_to_kraft.rehearsal.isolation import network_of_this_process
from activities.zk_to_kraft.rehearsal.messages import TOLD, Ended, Failed, NotIsolated, Ready, Trying
from domain.errors import Permanent, Transient

NAMESPACES = ("--net", "--pid", "--fork", "--kill-child=KILL")
AS_ROOT_OF_OUR_OWN = "--map-root-user"
PASSED_ON = ("PATH", "HOME", "LANG", "TMPDIR", "VIRTUAL_ENV")
LONGEST_LINE = 64 * 1024 * 1024
END_SECONDS = 20.0
SOURCES = Path(__file__).resolve().parents[2]
HOW = "A rehearsal needs a network of its own: run the activity worker as root, or allow it user namespaces"


class UnsharedRoom:
    """A `RehearsalRoom`. `last_words`: of its program when that has ended; before it has begun they are `unshare`'s."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.last_words = ""

    async def order(self, order: BaseModel) -> None:
        assert self._process.stdin is not None  # noqa: S101 - it was asked for
        self._process.stdin.write(order.model_dump_json().encode() + b"\n")
        await self._process.stdin.drain()

    async def told(self) -> Ready | NotIsolated | Trying | Failed | Ended:
        """The next thing that it tells."""
        assert self._process.stdout is not None  # noqa: S101
        line = await self._process.stdout.readline()
        if not line:
            await self.leave()
            assert self._process.stderr is not None  # noqa: S101
            lines = (await self._process.stderr.read()).decode(errors="replace").strip().splitlines()
            self.last_words = lines[-1] if lines else "nothing"
            # The type of an error only: what it says may be anybody's.
            raise Transient(f"the rehearsal's program ended without a result: {self.last_words.partition(':')[0]}")
        try:
            return TOLD.validate_json(line)
        except ValidationError as error:
            raise Transient("the rehearsal's program reported something unknown") from error

    async def leave(self) -> None:
        """Let go of the leash, and wait until everything is gone; what does not go is killed."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


class UnsharedRooms:
    """`RehearsalRooms` on this machine."""

    @asynccontextmanager
    async def open(self, directory: Path) -> AsyncIterator[UnsharedRoom]:
        """A room whose directory is removed when it is left. `Permanent` where there can be none."""
        room = UnsharedRoom(await _started(directory))
        try:
            await _ensure_ready(room)
            yield room
        finally:
            await asyncio.shield(room.leave())

    def java(self, home: str | None) -> str:
        """This machine's `java` below that home, or on the path."""
        program = str(Path(home) / "bin" / "java") if home else which("java")
        if program is None or not Path(program).exists():
            raise Permanent(f"there is no Java at {home or 'PATH'} on the activity worker's machine: name one in java_home")
        return program

    def libs(self, kafka_home: str) -> str:
        """This machine's jars of the cluster's Kafka."""
        libs = Path(kafka_home) / "libs"
        if not any(libs.glob("kafka_*.jar")):
            raise Permanent(
                f"{libs} has no Kafka on the activity worker's machine: put the cluster's version there, or name its place in "
                "kafka_home"
            )
        return str(libs)


async def _started(directory: Path) -> Process:
    unshare = which("unshare")
    if unshare is None:
        raise Permanent(f"there is no program unshare (util-linux) on the activity worker's machine. {HOW}")
    mapped = () if os.geteuid() == 0 else (AS_ROOT_OF_OUR_OWN,)
    program = (sys.executable, "-m", "activities.zk_to_kraft.rehearsal.program", str(directory), network_of_this_process())
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return await asyncio.create_subprocess_exec(
        unshare,
        *NAMESPACES,
        *mapped,
        "--",
        *program,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={**environment, "PYTHONPATH": str(SOURCES)},
        cwd="/",
        limit=LONGEST_LINE,
        start_new_session=True,
    )


async def _ensure_ready(room: UnsharedRoom) -> None:
    try:
        told = await room.told()
    except Transient as error:
        raise Permanent(f"no isolated room for the rehearsal: {room.last_words}. {HOW}") from error
    if isinstance(told, NotIsolated):
        raise Permanent(f"no isolated room for the rehearsal: {told.why}. {HOW}")
