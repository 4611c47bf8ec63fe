"""What lets the ledger's database answer again, by where a call stood still, and by the code with which it refuses. Pure."""

import re
import sqlite3
from enum import StrEnum

from ledger.errors import LOCKED, MEND


class Stage(StrEnum):
    """How far a call to the database is, and in words what has not come where it stands still."""

    WAITING = "others of this process were before this call, and did not end"
    CONNECTING = "no connection"
    WORKING = "no answer"
    COMMITTING = "its commit was not confirmed"


NOTHING_LOST = "Nothing is lost: migrations continue where they were."

GRANT = (
    "As the owner of the tables: GRANT USAGE ON SCHEMA …, GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA … "
    "and USAGE ON ALL SEQUENCES to the role of KEEPERLESS_LEDGER_URL, or make it their owner again: it has lost these "
    "rights. Migrations continue by themselves."
)
ROW_SECURITY = (
    "Row-level security is on for tables of the ledger (relrowsecurity in pg_class). As their owner: ALTER TABLE … DISABLE "
    "ROW LEVEL SECURITY for each, or CREATE POLICY … ON … TO the role of KEEPERLESS_LEDGER_URL USING (true) WITH CHECK "
    "(true); or as a superuser ALTER ROLE … BYPASSRLS. No row is gone: restore no backup for it. Migrations continue by "
    "themselves."
)
FOREIGN_TRIGGER = (
    "That function does not belong to Keeperless: a trigger was put on the ledger's tables, as for an audit or a copy (\\d "
    "TABLE in psql; pg_trigger). Give the function what the error says it lacks (a partition of its own table for this "
    "month, a right, a column), or disable the trigger: ALTER TABLE … DISABLE TRIGGER NAME. Migrations continue by "
    "themselves."
)
FOREIGN_RULE = (
    "Undo the change of the ledger's tables (\\d TABLE in psql, .schema TABLE in sqlite3): they refuse a row that every "
    "release of Keeperless writes, because of an added constraint, column or trigger. Migrations continue by themselves."
)
NO_TABLES = (
    "The tables are not where they were. Compare KEEPERLESS_LEDGER_URL with its earlier value, check search_path of the "
    "role and of the database (`SHOW search_path`), and whether the tables or SQLite's file were moved or renamed. Undo "
    "that; migrations continue by themselves. If they are gone, restore the ledger from its last backup."
)
POOLER = (
    "Set pool_mode = session for the ledger, or let KEEPERLESS_LEDGER_URL name the server itself: a pooler gives one "
    "connection to several clients (PgBouncer: pool_mode = transaction or statement). Migrations then continue."
)
NOT_LET_IN = (
    "Fix what it says. If the server is not reached, start it, or correct host and port of KEEPERLESS_LEDGER_URL. If a "
    "password or a role is refused, correct the role's password, or the URL and restart Keeperless' programs with it; check "
    "pg_hba.conf. If there are too many connections, end idle ones (pg_stat_activity), raise max_connections, the role's "
    f"CONNECTION LIMIT or PgBouncer's max_client_conn. If it starts up or shuts down, wait for it. {NOTHING_LOST}"
)
SILENT = (
    "Find out from this machine where the connection ends (`pg_isready -h HOST -p PORT`). Possible causes: its host is down "
    "or unresponsive; a firewall or a security group drops packets; the name still leads to the server from before a "
    "failover (`getent hosts`); a pooler in front of it has no connection left (PgBouncer: SHOW POOLS). No lock blocks it. "
    f"{NOTHING_LOST}"
)
STANDS_STILL = (
    "Check the load and the disk of the server (`top`, `iostat -x`, dmesg), and the network to it: it accepted the "
    "connection but makes no progress, and no lock blocks it. If it answers you, wait_event of pg_stat_activity shows what "
    f"it waits for (application_name is keeperless). {NOTHING_LOST}"
)
COMMIT_HANGS = (
    "Look up what commits wait for (wait_event of pg_stat_activity). SyncRep: a standby of synchronous_standby_names is "
    "down. Start it, or remove it there (ALTER SYSTEM, pg_reload_conf()). WALSync, WALWrite: the disk of its WAL (pg_wal) "
    f"hangs: dmesg, `iostat -x`. End no session of Keeperless: the next one would wait likewise. {NOTHING_LOST}"
)
OWN_FILE = (
    "Give SQLite's file, its -wal, its -shm and their directory back to the user that Keeperless' programs run as (`ls "
    "-la`, the same one for all programs). Or restore the file where KEEPERLESS_LEDGER_URL names it, or mount its file "
    "system for writing. Migrations continue by themselves."
)
MARKED = (
    "`lsattr -d {0}` shows the attribute that a person or a security program has set, and `chattr -i -a {0}` as root "
    "removes it. Stop whatever sets it again. Disk, rights and settings are fine. Start any program of Keeperless that has "
    f"ended meanwhile (SIGBUS, if the -shm was marked). {NOTHING_LOST}"
)
DELETED = (
    "Do not kill a program (-9), restore a backup or delete anything: the latest writes are only in files that the programs "
    "have open (`lsof +L1`). Stop all of Keeperless' programs in order, with SIGTERM: the last one that closes the ledger "
    "writes them back into it. Then start them. Stop what deletes files there (tmpreaper, cron, a clean-up of temporary "
    f"files). {NOTHING_LOST}"
)
FILE_DELETED = (
    "Do not stop any program of Keeperless yet: the ledger exists only in their open files. For one of them, run `ls -l "
    "/proc/PID/fd`. Copy the ledger's file and its -wal to another directory under these names: from /proc/PID/fd/NUMBER if "
    "marked (deleted), else by name. Stop all programs. Put both copies in the place of the ledger, with no other -wal or "
    "-shm beside them. Check it (`sqlite3 FILE 'PRAGMA integrity_check'`). Start the programs."
)
FILE_SYSTEM = (
    "The file system of SQLite's file has errors: check `findmnt -T FILE`, `dmesg`, and the disk (`smartctl -a`). On NFS, "
    "CIFS or FUSE SQLite's locks and its -shm do not work: stop all programs, then move the file, its -wal and its -shm to "
    f"a local file system, or use PostgreSQL. {NOTHING_LOST}"
)
BUSY_DISK = (
    "Find what keeps the disk busy: a node that recovers its logs, a copy, a backup (`iostat -x 1`: w_await, %util; "
    "`iotop`; /proc/pressure/io). Let that end, or move that: the ledger stays where it is. If the disk is idle but does "
    "not answer: `dmesg`, `smartctl -a`. Only if the file is on NFS, CIFS or FUSE (`findmnt -T FILE`), whose locks SQLite "
    f"cannot rely on, the ledger has to be moved one day. {NOTHING_LOST}"
)
FULL = (
    "Free space on the file system of the database (`df`, `df -i`; with PostgreSQL also that of pg_wal: an unused "
    f"replication slot keeps all of it, pg_replication_slots). {NOTHING_LOST}"
)
READ_ONLY = (
    "It takes no writes. If it is a standby (SELECT pg_is_in_recovery()), as after a failover, let KEEPERLESS_LEDGER_URL, "
    "or the name in it, lead to the primary. Otherwise default_transaction_read_only of the role, the database or the "
    f"server was switched on: switch it off. {NOTHING_LOST}"
)
STARTS_OR_ENDS = (
    "It starts, stops, or was switched over: wait for it, and read its log if that lasts. Migrations continue by themselves."
)
RESOURCES = f"The server lacks memory, or another resource: its log says which. {NOTHING_LOST}"
LIMIT_REACHED = (
    "It has reached a limit of its own. If it mentions wraparound: end prepared and old transactions (pg_prepared_xacts, "
    f"pg_stat_activity), drop unused replication slots, and run VACUUM in the database that it names. {NOTHING_LOST}"
)
SERVERS_DISK = f"The server, or its disk, fails: its log and `dmesg` there show where. {NOTHING_LOST}"
CUT = (
    "The connection was probably cut, by the server or on the way to it: the server's log shows whether it was the "
    f"server. {NOTHING_LOST}"
)

OPEN_FILES = (
    "Raise LimitNOFILE= of that program's unit, or ulimit -n (of the whole machine: fs.file-max), and restart it: it has no "
    "open file left. `ls /proc/PID/fd | wc -l` counts its open files, and `ls -l /proc/PID/fd` lists them. The ledger is "
    f"healthy: leave its files where they are. {NOTHING_LOST}"
)
CERTIFICATE = (
    "The server's certificate is not trusted here. If it has expired, renew it there (`openssl s_client -starttls postgres "
    "-connect HOST:PORT` shows it). If its authority is unknown, let sslrootcert in KEEPERLESS_LEDGER_URL name that "
    f"authority's certificate. If its name differs, use that name in the URL. {NOTHING_LOST}"
)
CERTIFICATE_FILE = (
    "Put that file where it is named, readable only for the user of that program (chmod 600 for a key). Or let sslrootcert, "
    "sslcert and sslkey in KEEPERLESS_LEDGER_URL name others: without them libpq searches ~/.postgresql of that user. "
    f"{NOTHING_LOST}"
)
NO_TLS = (
    "Switch ssl on at the server, or at the pooler in front of it: KEEPERLESS_LEDGER_URL asks for TLS (sslmode), which is "
    f"not offered there. Check that host and port lead to the right server. {NOTHING_LOST}"
)
NO_ENTRY = (
    "Add a line to pg_hba.conf of the server that lets this user in from this address to this database, and reload it "
    "(SELECT pg_reload_conf()). If the error says `no encryption`, and the line that is meant is of hostssl, set "
    f"sslmode=require in KEEPERLESS_LEDGER_URL. {NOTHING_LOST}"
)
NO_NAME = (
    "The machine of that program cannot resolve the server's name: check `getent hosts NAME`, /etc/resolv.conf and "
    f"/etc/hosts there. Or correct the name in KEEPERLESS_LEDGER_URL. {NOTHING_LOST}"
)
PASSWORD = (
    "The server rejects this user or password. Correct it in KEEPERLESS_LEDGER_URL (or in ~/.pgpass) of that program and "
    "restart it, or at the role (ALTER ROLE … PASSWORD, VALID UNTIL). Programs that were started before the password "
    f"changed have the old one. {NOTHING_LOST}"
)
TOO_MANY = (
    "End idle connections (pg_stat_activity), or raise max_connections, the CONNECTION LIMIT of the role or the database, "
    f"or PgBouncer's max_client_conn. {NOTHING_LOST}"
)
NO_SERVER_FREE = (
    "PgBouncer accepted the connection, and none of its connections to the server was free in time. Run SHOW POOLS there "
    f"(cl_waiting), raise default_pool_size, or find what keeps the server from answering it. {NOTHING_LOST}"
)

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
OF_CONNECT = {
    re.compile(r"Too many open files"): OPEN_FILES,
    re.compile(r"(root certificate|certificate|private key) file .*(does not exist|not read|has group or world access)"): (
        CERTIFICATE_FILE
    ),
    re.compile(r"certificate verify failed|does not match host name|certificate has expired"): CERTIFICATE,
    re.compile(r"does not support SSL|SSL was required"): NO_TLS,
    re.compile(r"no pg_hba\.conf entry"): NO_ENTRY,
    re.compile(r"failed to resolve host|could not translate host name"): NO_NAME,
    re.compile(r"password authentication failed|no password supplied|role .* does not exist"): PASSWORD,
    re.compile(r"too many (clients|connections)|remaining connection slots|no more connections allowed"): TOO_MANY,
    re.compile(r"query_wait_timeout"): NO_SERVER_FREE,
}
"""By what libpq says of a connection that was not made, which it does in words only."""


def fix_of(code: object, *, is_of_a_connection: bool, function: str | None = None, said: str = "") -> str:
    """For what was answered. `code`: SQLSTATE, SQLite's primary code, or `None`, as of all that libpq says of a connect.
    `said`: in its words."""
    if code is None:
        of_connect = (fix for words, fix in OF_CONNECT.items() if words.search(said))
        return next(of_connect, NOT_LET_IN) if is_of_a_connection else CUT
    known = (function, code, code[:3], code[:2]) if isinstance(code, str) else (code,)
    return next((FIXES[key] for key in known if key in FIXES), MEND)


def fix_of_silence(stage: Stage, dialect: str) -> str:
    """For a call that was given up at `stage`. Lock by lock, and statement by statement, the server would have said so."""
    if stage is Stage.WAITING:
        return MEND
    if dialect == "sqlite":
        return BUSY_DISK
    return {Stage.CONNECTING: SILENT, Stage.WORKING: STANDS_STILL, Stage.COMMITTING: COMMIT_HANGS}[stage]
