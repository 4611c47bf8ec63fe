"""The machine that this worker runs on: its files and programs."""

import asyncio
import errno
import os
import shutil
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

from activities.ports.nodes import Completed, FileContent
from domain.errors import Permanent, Transient

T = TypeVar("T")

INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR")
"""What programs get of our environment. Not more: `env:` secrets live there, and a broker outlives us."""

PYTHON, OUR_PYTHON = "python3", Path(sys.executable).resolve()
"""By which name our small programs ask for whatever Python a machine has, and the one that runs this worker. What PATH finds
first may be a shim (pyenv, asdf) that starts four shells before it, each time, or nothing at all.
"""

LEASE_SECONDS, LEASE_POLL_SECONDS = 1.0, 0.02
"""For who has a lease on a file to give it back: somebody waits for each file, and several may, one after the other."""

LEASE_KEPT = (
    "fcntl F_SETLEASE), and opening it waits for up to fs.lease-break-time seconds. Find that program in /proc/locks "
    "(LEASE, DELEG), and end it: Samba with oplocks, or a client of an NFS server"
)
KILL_SECONDS = 0.5
"""For who was killed to end. Whom the kernel holds in a call that nothing interrupts does not."""

PERMANENT_ERRORS = (PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError)
PERMANENT_CODES = frozenset({errno.EXDEV})
"""A name on another file system: that is a copy, not a new name."""
ADVICE = {
    errno.EPERM: "if the worker is not root, it has to be the owner, or root. Not even root may if the file or its "
    "directory is immutable or append-only (`lsattr -d`, then `chattr -i`), or a security module or a "
    "container forbids it",
    errno.EACCES: "give the worker access, or correct the path",
    errno.EROFS: "mount it for writing; if others can write there, only the worker may not (ProtectSystem= or "
    "ReadOnlyPaths= of its unit, a volume of its container that is read-only)",
    errno.EAGAIN: "it cannot start a process: raise TasksMax= of the unit of keeperless-activities (pids.max), or ulimit -u",
    errno.EBUSY: "it is a mount of its own (`findmnt` shows its source: a volume of a container, /etc/fstab, a "
    "configuration tool), and a mount cannot be replaced, renamed or removed: mount its directory instead, or "
    "unmount it there. Nothing was replaced, and the migration continues by itself",
    errno.EDQUOT: "a quota of its file system is used up (`quota`, `repquota -a`): raise it, or free some of it",
}


class LocalMachine:
    """A `Transport`. All blocking work happens in threads; one instance serves any number of nodes.

    Of one path one reader at a time: where a file system hangs, whoever asks again waits, and takes no thread from others.
    """

    def __init__(self) -> None:
        self._reading: dict[str, asyncio.Task[Any]] = {}

    async def read_file(self, path: str) -> FileContent | None:
        return await self._in_turn(path, partial(_read, Path(path)))

    async def write_file(self, path: str, file: FileContent) -> None:
        await asyncio.to_thread(_write, Path(path), file)

    async def remove_file(self, path: str) -> None:
        await asyncio.to_thread(_remove, Path(path))

    async def read_part(self, path: str, offset: int, length: int) -> bytes | None:
        return await self._in_turn(path, partial(_read_part, Path(path), offset, length))

    async def rename(self, old: str, new: str) -> None:
        await asyncio.to_thread(_rename, Path(old), Path(new))

    async def remove_tree(self, path: str) -> None:
        await asyncio.to_thread(_remove_tree, Path(path))

    async def list_dir(self, path: str) -> tuple[str, ...] | None:
        return await self._in_turn(path, partial(_list, Path(path)))

    async def make_dir(self, path: str) -> None:
        await asyncio.to_thread(_make_dirs, Path(path))

    async def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], timeout: timedelta, stdin: bytes = b""
    ) -> Completed:
        """Outputs go to unnamed files: the end of the program is the end, even if a child of it keeps them open."""
        with _in_memory(stdin) as given, _unnamed() as output, _unnamed() as errors:
            process = await _spawn(arguments, environment, given, output, errors)
            try:
                async with asyncio.timeout(timeout.total_seconds()):
                    exit_code = await process.wait()
            except TimeoutError as error:
                message = f"{arguments[0]} on this machine: still running after {timeout.total_seconds():g} s; ended it"
                raise Transient(message) from error
            finally:
                await _end_group(process)
            return Completed(exit_code, *await asyncio.to_thread(_texts, output, errors))

    async def _in_turn(self, path: str, read: Callable[[], T]) -> T:
        """Its thread goes on when nobody waits for it any more, and keeps its turn until it ends."""
        while (before := self._reading.get(path)) is not None:
            await asyncio.wait({before})
        reading = asyncio.ensure_future(asyncio.to_thread(read))
        self._reading[path] = reading
        reading.add_done_callback(partial(self._ended, path))
        return await asyncio.shield(reading)

    def _ended(self, path: str, reading: "asyncio.Task[Any]") -> None:
        del self._reading[path]
        if not reading.cancelled():
            reading.exception()  # looked at also where nobody waits for it


def _unnamed() -> IO[bytes]:
    """A file in the worker's temporary directory, which may be gone, or be others' now."""
    try:
        return tempfile.TemporaryFile()
    except OSError as error:
        place = tempfile.tempdir or "TMPDIR"
        raise Transient(
            f"the temporary directory of this worker ({place}): {error.strerror}; make it again, writable for its user "
            "(/tmp: chmod 1777) and with room, or restart the worker with another TMPDIR"
        ) from error


def _in_memory(content: bytes) -> IO[bytes]:
    """A file that is on no disk, and that a program can open by `/dev/stdin` as it cannot a socket."""
    file = os.fdopen(os.memfd_create("stdin"), "w+b")
    file.write(content)
    file.seek(0)
    return file


async def _spawn(
    arguments: Sequence[str], environment: Mapping[str, str], given: IO[bytes], output: IO[bytes], errors: IO[bytes]
) -> asyncio.subprocess.Process:
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    with _os_errors(Path(arguments[0])):
        try:
            return await asyncio.create_subprocess_exec(
                _program(arguments[0]),
                *arguments[1:],
                stdin=given,
                stdout=output,
                stderr=errors,
                env={**inherited, **environment},
                cwd="/",
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise Permanent(f"{arguments[0]}: no such program on this machine") from error


def _program(name: str) -> str:
    """Ours may have been removed by an upgrade under a worker that runs."""
    return str(OUR_PYTHON) if name == PYTHON and os.access(OUR_PYTHON, os.X_OK) else name


async def _end_group(process: asyncio.subprocess.Process) -> None:
    """Kill what is left of a program that did not end by itself; it leads its own process group."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), KILL_SECONDS)


def _texts(*files: IO[bytes]) -> tuple[str, ...]:
    for file in files:
        file.seek(0)
    return tuple(file.read().decode(errors="replace") for file in files)


@contextmanager
def _os_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except PERMANENT_ERRORS as error:
        raise Permanent(f"{path}: {error.strerror}; {ADVICE.get(error.errno or 0, 'correct the path')}") from error
    except OSError as error:
        kind = Permanent if error.errno in PERMANENT_CODES else Transient
        advice = ADVICE.get(error.errno or 0)
        raise kind(f"{path}: {error.strerror or error}" + (f"; {advice}" if advice else "")) from error


def _read(path: Path) -> FileContent | None:
    with _os_errors(path):
        try:
            _regular(path)
            with _opened(path) as file:
                status = os.fstat(file.fileno())
                return FileContent(file.read(), status.st_mode & 0o7777, status.st_uid, status.st_gid)
        except (FileNotFoundError, ProcessLookupError):  # ESRCH: a file under /proc, its process just gone
            return None


def _regular(path: Path) -> os.stat_result:
    """Of a file that can be read to an end: whoever opens a FIFO waits for its other side."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise Permanent(f"{path} is no regular file")
    return status


def _opened(path: Path) -> IO[bytes]:
    """To read it. Where somebody has a lease on it, open(2) would wait for as long as the kernel lets him keep that."""
    until = time.monotonic() + LEASE_SECONDS
    while True:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except BlockingIOError as error:
            if time.monotonic() > until:
                raise Transient(f"{path}: another program keeps a lease on it ({LEASE_KEPT}") from error
            time.sleep(LEASE_POLL_SECONDS)
        else:
            os.set_blocking(handle, True)
            return os.fdopen(handle, "rb")


def _read_part(path: Path, offset: int, length: int) -> bytes | None:
    with _os_errors(path):
        try:
            if offset < 0:
                offset = max(_regular(path).st_size + offset, 0)
            with _opened(path) as file:
                file.seek(offset)  # and never to the end, which files of /proc refuse
                return file.read(length)
        except FileNotFoundError:
            return None


def _write(path: Path, file: FileContent) -> None:
    """New bytes beside the old, then one rename. Order matters: content is on disk before its name, its name before we return.

    A crash before the rename leaves the old file and a stray `.name.*.new`. A symbolic link stays one: its target changes.
    """
    target = path.resolve()
    _make_dirs(target.parent)
    with _os_errors(target):
        descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".new", dir=target.parent)
        try:
            with os.fdopen(descriptor, "wb") as new:
                new.write(file.content)
                new.flush()
                os.fchown(descriptor, file.uid, file.gid)
                os.fchmod(descriptor, file.mode)  # after chown, which clears the set-id bits
                os.fsync(descriptor)
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        _sync_dir(target.parent)


def _remove(path: Path) -> None:
    with _os_errors(path):
        try:
            path.unlink()
        except FileNotFoundError:
            return
        _sync_dir(path.parent)


def _rename(old: Path, new: Path) -> None:
    """A crash right after the rename can leave it undurable: whoever calls again syncs, although there is nothing to rename."""
    with _os_errors(old):
        try:
            old.replace(new)
        except FileNotFoundError as error:
            if not os.path.lexists(new):
                raise Permanent(f"{old}: not there, and neither is {new}; one of them was expected") from error
        for folder in {old.parent, new.parent}:
            _sync_dir(folder)


def _remove_tree(path: Path) -> None:
    """Links in the tree are removed, never followed. A tree that is itself a link is somebody's disk layout: refused."""
    with _os_errors(path):
        if path.is_symlink():
            raise Permanent(
                f"{path}: is a symbolic link to {path.readlink()}, expected a directory; it is not followed: remove the link, "
                "and what it points to, by hand"
            )
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            if path.exists():  # somebody else removes it at the same time
                raise
            return
        _sync_dir(path.parent)


def _list(path: Path) -> tuple[str, ...] | None:
    with _os_errors(path):
        try:
            return tuple(sorted(os.listdir(path)))  # noqa: PTH208 - names are wanted, not paths
        except FileNotFoundError:
            return None


def _make_dirs(path: Path) -> None:
    missing = [folder for folder in (path, *path.parents) if not folder.is_dir()]
    with _os_errors(path):
        for folder in reversed(missing):
            try:
                folder.mkdir(mode=0o700)
            except FileExistsError:
                if not folder.is_dir():
                    raise
            _sync_dir(folder.parent)


def _sync_dir(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot sync directories
            raise
    finally:
        os.close(descriptor)
