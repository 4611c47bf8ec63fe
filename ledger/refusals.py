"""What a caller may do about an error of the database: the one place where those become ours."""

import errno
import os
import re
import resource
import sqlite3
from collections.abc import Mapping

from sqlalchemy import exc

from domain.errors import KeeperlessError
from ledger.errors import LedgerDamaged, LedgerMarked, LedgerMisuse, LedgerUnavailable
from ledger.fixes import FOREIGN_TRIGGER, MARKED, OPEN_FILES, fix_of
from ledger.own_files import marked

UNIQUE_VIOLATED = frozenset({"23505", sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY})

DAMAGED = frozenset({"XX001", "XX002", sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
"""PostgreSQL's data_corrupted and index_corrupted; SQLite's "disk image is malformed" and "file is not a database"."""


class Outrun(LedgerUnavailable):
    """Somebody else wrote the same unique value in this moment: looking again shows what they wrote."""


OWN_FUNCTIONS = frozenset({"events_are_append_only"})


OF_THE_SERVER = ("40", "53", "55", "57", "58", "XX")
"""How codes begin of what may happen in any statement, a trigger's too: locks, room, limits of time, damage."""


def foreign_function(error: BaseException | None) -> str | None:
    """The function of PL/pgSQL that an error of its own came up in, as of a trigger that somebody has put on our tables.

    Nothing but the context names it. In another language of the server than English the error is told like any other.
    """
    if (getattr(error, "sqlstate", None) or "").startswith(OF_THE_SERVER):
        return None
    context = getattr(getattr(error, "diag", None), "context", None) or ""
    found = re.search(r"PL/pgSQL function (?:(?P<schema>[\w\"]+)\.)?(?P<name>[\w\"]+)\(", context)
    if found is None or found["name"] in OWN_FUNCTIONS:
        return None
    return ".".join(filter(None, found.groups()))


def translated(error: exc.SQLAlchemyError, file: str = "") -> KeeperlessError:
    """What a caller may do about an error of the database. Decided by class and code, but for `foreign_function` and what libpq
    says of a connect. `file`: of SQLite.

    Wrong is the call only where a value is. Of all else somebody may rid the database, while who asks tries again.
    """
    cause = error.orig if isinstance(error, exc.DBAPIError) else None
    code = getattr(cause, "sqlstate", None) or getattr(cause, "sqlite_errorcode", None)
    # The first line only: PostgreSQL's details may show the row.
    said = f"{type(cause or error).__name__}: {cause or error}".partition("\n")[0]
    if (function := foreign_function(cause)) is not None:
        return LedgerUnavailable(f"the ledger's database refuses a write in {function} ({said})", FOREIGN_TRIGGER)
    if code in UNIQUE_VIOLATED:
        return Outrun(f"the ledger was written by another process at the same moment ({said}); try again")
    code = code & 0xFF if isinstance(code, int) else code
    if code in DAMAGED:
        return LedgerDamaged(f"the ledger's database is damaged ({said})")
    is_of_a_value = isinstance(error, (exc.IntegrityError, exc.DataError))
    if isinstance(error, exc.DBAPIError) and not is_of_a_value:
        is_of_a_connection = isinstance(error, exc.OperationalError) and error.statement is None
        function = getattr(getattr(cause, "diag", None), "source_function", None)
        if code in OF_MARKS and (marks := marked(file)):
            return _marked(said, marks)
        if code == sqlite3.SQLITE_CANTOPEN and (number := why_not_opened(file)):
            return _not_opened(said, number)
        fix = fix_of(code, is_of_a_connection=is_of_a_connection, function=function, said=said)
        return LedgerUnavailable(f"the ledger's database does not answer as it should ({said})", fix)
    return LedgerMisuse(f"the ledger refused a call ({said})")


OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE})


def why_not_opened(file: str) -> int:
    """The number of the system's error, of which SQLite tells none; 0 where its file could be opened.

    It is not opened for that: as it was closed again, all locks of this process on it would be lost (fcntl(2)).
    """
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
        os.stat(file)  # noqa: PTH116
    except OSError as error:
        return error.errno or 0
    return 0 if os.access(file, os.R_OK | os.W_OK) else errno.EACCES


OF_MARKS = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM})
"""What SQLite says where the system does not let it change a file (EPERM)."""


def _marked(said: str, marks: Mapping[str, str]) -> LedgerMarked:
    told = ", ".join(f"{path} ({words})" for path, words in marks.items())
    return LedgerMarked(
        f"the ledger's database takes no writes: {told} cannot be changed ({said})", MARKED.format(" ".join(marks))
    )


def _not_opened(said: str, number: int) -> LedgerUnavailable:
    told = f"the ledger's database does not answer as it should ({said}: {os.strerror(number)})"
    if number in OUT_OF_FILES:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return LedgerUnavailable(f"{told}; process {os.getpid()} may have {limit} files open", OPEN_FILES)
    return LedgerUnavailable(told, fix_of(sqlite3.SQLITE_CANTOPEN, is_of_a_connection=True))
