"""Where fetched things are kept: the user's cache directory, never the checkout."""

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

Announce = Callable[[str], None]
"""Called with one line that tells a waiting person what is going on."""


def silent(_line: str) -> None:
    """An `Announce` for those who do not want to know."""


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """`$KEEPERLESS_CACHE`, else `$XDG_CACHE_HOME/keeperless`, else `~/.cache/keeperless`. It need not exist yet."""
    if chosen := environment.get("KEEPERLESS_CACHE"):
        return Path(chosen).expanduser().absolute()
    if caches := environment.get("XDG_CACHE_HOME"):
        return Path(caches).absolute() / "keeperless"
    return Path.home() / ".cache" / "keeperless"


@contextmanager
def only_one_process(lock_file: Path) -> Iterator[None]:
    """Waits until no other process is inside. The lock ends with its holder, also when that is killed."""
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with lock_file.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
