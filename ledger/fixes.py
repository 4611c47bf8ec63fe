"""What lets the ledger's database answer again, by where a call stood still, and by the code with which it refuses. Pure."""

import sqlite3
from enum import StrEnum

from ledger.connecting import NOTHING_LOST, fix_of_connect
from ledger.errors import LOCKED, MEND


class Stage(StrEnum):
    """How far a call to the database is, and in words what has not come where it stands still."""

    WAITING = "others of this process were before this call, and did not end"
    CONNECTING = "no connection"
    WORKING = "no answer"
    COMMITTING = "its commit was not confirmed"


GRANT = (
    "Its role may not do this any more. As the owner of the tables: GRANT USAGE ON SCHEMA …, GRANT SELECT, INSERT, UPDATE, "
    "DELETE ON ALL TABLES IN SCHEMA … and USAGE ON ALL SEQUENCES to the role of KEEPERLESS_LEDGER_URL, or make it their owner "
    "again. Migrations go on by themselves."
)
ROW_SECURITY = (
    "Row-level security is on for tables of the ledger (relrowsecurity in pg_class). As their owner: ALTER TABLE … DISABLE ROW "
    "LEVEL SECURITY for each, or CREATE POLICY … ON … TO the role of KEEPERLESS_LEDGER_URL USING (true) WITH CHECK (true); or "
    "as a superuser ALTER ROLE … BYPASSRLS. No row is gone: restore no backup for it. Migrations go on by themselves."
)
FOREIGN_TRIGGER = (
    "That function is none of Keeperless': somebody has put a trigger on the ledger's tables, as for an audit or a copy (\\d "
    "TABLE in psql; pg_trigger). Mend what it says that the function lacks (a partition of its own table for this month, a "
    "right, a column), or take the trigger from the ledger's tables: ALTER TABLE … DISABLE TRIGGER NAME. Migrations go on by "
    "themselves."
)
FOREIGN_RULE = (
    "It refuses a row that every release of Keeperless writes: somebody has changed the ledger's tables (\\d TABLE in psql, "
    ".schema TABLE in sqlite3), by a constraint, a column or a trigger of their own. Take that back. Migrations go on by "
    "themselves."
)
NO_TABLES = (
    "Its tables are not where they were: compare KEEPERLESS_LEDGER_URL with what it was, search_path of the role and of the "
    "database (`SHOW search_path`), and whether the tables or SQLite's file were moved or renamed. Put that back; migrations "
    "go on by themselves. Where they are gone, restore the ledger from its last backup."
)
POOLER = (
    "A pooler between us and the database gives one connection to several (PgBouncer: pool_mode = transaction or statement). "
    "Set pool_mode = session for the ledger, or let KEEPERLESS_LEDGER_URL name the server itself. Migrations go on then."
)
NOT_LET_IN = (
    "Mend what it says. Not reached: start the server, or correct host and port of KEEPERLESS_LEDGER_URL. A password or a role "
    "that is refused: correct the role's password, or the URL and restart Keeperless' programs with it; pg_hba.conf. Too many "
    "connections: end those that idle (pg_stat_activity), raise max_connections or the role's CONNECTION LIMIT, of PgBouncer "
    f"max_client_conn. It starts up or shuts down: wait for it. {NOTHING_LOST}"
)
SILENT = (
    "Find out from this machine where it ends (`pg_isready -h HOST -p PORT`): its host is down or stands still, a firewall or "
    "a security group drops what is sent, the name still leads to the server of before a failover (`getent hosts`), or a "
    f"pooler before it has no connection left (PgBouncer: SHOW POOLS). No lock is in the way. {NOTHING_LOST}"
)
STANDS_STILL = (
    "It has let us in, and does not get on, though no lock is in the way: its host or its disk has too much to do or stands "
    "still, or something between holds packets back. Look there at load and disk (`top`, `iostat -x`, dmesg) and, where it "
    "answers you, for what it waits: wait_event of pg_stat_activity, where application_name is keeperless. "
    f"{NOTHING_LOST}"
)
COMMIT_HANGS = (
    "Ask it for what commits wait (wait_event of pg_stat_activity). SyncRep: a standby of synchronous_standby_names is down: "
    "start it, or take it out there (ALTER SYSTEM, pg_reload_conf()). WALSync, WALWrite: the disk of its WAL (pg_wal) hangs: "
    f"dmesg, `iostat -x`. End no session of Keeperless: the next one would wait likewise. {NOTHING_LOST}"
)
OWN_FILE = (
    "Give SQLite's file, its -wal, its -shm and their directory back to the user that Keeperless' programs run as (`ls -la`, "
    "all programs the same one), put the file back where KEEPERLESS_LEDGER_URL names it, or mount its file system for writing. "
    "Migrations go on by themselves."
)
MARKED = (
    "Somebody, or a program against intruders, has marked it so. The disk is well, no right is missing, no setting is wrong: "
    "`lsattr -d {0}` shows it, and `chattr -i -a {0}` as root takes it away; keep away what does it again. A program of "
    "Keeperless' that has ended meanwhile (SIGBUS, where the -shm was marked) has to be started. "
    f"{NOTHING_LOST}"
)
DELETED = (
    "Kill no program (-9), restore no backup, and delete nothing: what was written last is only in what they have open "
    "(`lsof +L1`). Stop all of Keeperless' programs in order, with SIGTERM: the last one that closes the ledger writes that "
    "back into it. Then start them. Keep away what deletes there (tmpreaper, cron, a clean-up of temporary files). "
    f"{NOTHING_LOST}"
)
FILE_DELETED = (
    "Stop no program of Keeperless yet: the ledger is only in what they have open, and its end would lose it. For one of them, "
    "`ls -l /proc/PID/fd`: copy what is marked (deleted), /proc/PID/fd/NUMBER of the ledger's file and of its -wal (that one "
    "by its name where it is not marked), to another directory, under these names. Then stop all programs, put both copies in "
    "the place of the ledger, without any other -wal and -shm beside them, check it (`sqlite3 FILE 'PRAGMA integrity_check'`), "
    "and start them."
)
FILE_SYSTEM = (
    "The file system that has SQLite's file fails it: look at `findmnt -T FILE`, `dmesg`, and the disk (`smartctl -a`). On "
    "NFS, CIFS or FUSE SQLite's locks and its -shm do not work: with all programs stopped move the file, its -wal and its -shm "
    f"to a local file system, or use PostgreSQL. {NOTHING_LOST}"
)
BUSY_DISK = (
    "Its disk takes longer than that, mostly because somebody else keeps it busy: a node that recovers its logs, a copy, a "
    "backup (`iostat -x 1`: w_await, %util; `iotop`; /proc/pressure/io). Let that end, or move that: the ledger stays where it "
    "is. Where the disk has nothing to do, and yet does not answer: `dmesg`, `smartctl -a`. Only where the file is on NFS, on "
    f"CIFS or FUSE (`findmnt -T FILE`), whose locks SQLite cannot rely on, has it to be moved one day. {NOTHING_LOST}"
)
FULL = (
    "Make room on the file system of the database (`df`, `df -i`; of PostgreSQL also that of pg_wal: an unused replication "
    f"slot keeps all of it, pg_replication_slots). {NOTHING_LOST}"
)
READ_ONLY = (
    "It takes no writes: a standby (SELECT pg_is_in_recovery()), as after a failover: let KEEPERLESS_LEDGER_URL, or the name "
    "in it, lead to the primary. Else somebody has switched on default_transaction_read_only of the role, the database or the "
    f"server: take it back. {NOTHING_LOST}"
)
STARTS_OR_ENDS = (
    "It starts, stops, or was switched over: wait for it, and look at its log where that lasts. Migrations go on by themselves."
)
RESOURCES = f"The server lacks memory, or another resource: its log says which. {NOTHING_LOST}"
LIMIT_REACHED = (
    "It is at a limit of its own. Where it speaks of wraparound: end prepared and old transactions (pg_prepared_xacts, "
    "pg_stat_activity), drop replication slots that nobody uses, and run VACUUM in the database that it names. "
    f"{NOTHING_LOST}"
)
SERVERS_DISK = f"The server's own disk, or the server, fails: its log and `dmesg` there say at what. {NOTHING_LOST}"
CUT = f"Mostly the connection was cut, by the server or on the way to it: its log says where it was the server. {NOTHING_LOST}"

FIXES: dict[object, str] = {
    "ExecWithCheckOptions": ROW_SECURITY,
    "check_enable_rls": ROW_SECURITY,
    "42501": GRANT,
    "42P01": NO_TABLES,
    "3F000": NO_TABLES,
    "26000": POOLER,
    "42P05": POOLER,
    "28": NOT_LET_IN,
    "3D000": NOT_LET_IN,
    "53300": NOT_LET_IN,
    "25006": READ_ONLY,
    "53100": FULL,
    "53": RESOURCES,
    "54": LIMIT_REACHED,
    "57P": STARTS_OR_ENDS,
    "57014": STANDS_STILL,
    "55P03": LOCKED,
    "40": LOCKED,
    "08": CUT,
    "58": SERVERS_DISK,
    "XX": SERVERS_DISK,
    sqlite3.SQLITE_BUSY: LOCKED,
    sqlite3.SQLITE_LOCKED: LOCKED,
    sqlite3.SQLITE_ERROR: NO_TABLES,
    sqlite3.SQLITE_CANTOPEN: OWN_FILE,
    sqlite3.SQLITE_PERM: OWN_FILE,
    sqlite3.SQLITE_READONLY: OWN_FILE,
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_IOERR: FILE_SYSTEM,
    sqlite3.SQLITE_PROTOCOL: FILE_SYSTEM,
    sqlite3.SQLITE_NOLFS: FILE_SYSTEM,
}
"""By SQLSTATE or how it begins, and by SQLite's primary result code (of which "no such table" is SQLITE_ERROR).

Before them by the function of PostgreSQL that refused, where one code has several causes (execMain.c, rls.c).
"""


def fix_of(code: object, *, is_of_a_connection: bool, function: str | None = None, said: str = "") -> str:
    """For what was answered. `code`: SQLSTATE, SQLite's primary code, or `None`, as of all that libpq says of a connect.
    `said`: in its words."""
    if code is None:
        return (fix_of_connect(said) or NOT_LET_IN) if is_of_a_connection else CUT
    known = (function, code, code[:3], code[:2]) if isinstance(code, str) else (code,)
    return next((FIXES[key] for key in known if key in FIXES), MEND)


def fix_of_silence(stage: Stage, dialect: str) -> str:
    """For a call that was given up at `stage`. Lock by lock, and statement by statement, the server would have said so."""
    if stage is Stage.WAITING:
        return MEND
    if dialect == "sqlite":
        return BUSY_DISK
    return {Stage.CONNECTING: SILENT, Stage.WORKING: STANDS_STILL, Stage.COMMITTING: COMMIT_HANGS}[stage]
