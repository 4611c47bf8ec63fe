"""What lets a connection to PostgreSQL be made, by what libpq says of one that was not, which it does in words only. Pure."""

import re

NOTHING_LOST = "Nothing is lost meanwhile: migrations go on where they stood."

OPEN_FILES = (
    "That process has no file left to open: raise LimitNOFILE= of its unit, or ulimit -n (of the whole machine: fs.file-max), "
    "and restart it. `ls /proc/PID/fd | wc -l` says how many it has, and `ls -l /proc/PID/fd` what. The ledger is well: leave "
    f"its files where they are. {NOTHING_LOST}"
)
CERTIFICATE = (
    "The server shows a certificate that is not trusted here. It has run out: renew it there (`openssl s_client -starttls "
    "postgres -connect HOST:PORT` shows it). Its authority is another one: let sslrootcert in KEEPERLESS_LEDGER_URL name that "
    f"one's certificate. Its name is another one: use that name in the URL. {NOTHING_LOST}"
)
CERTIFICATE_FILE = (
    "Put that file where it is named, readable for the user of that program only (chmod 600 for a key), or let sslrootcert, "
    "sslcert and sslkey in KEEPERLESS_LEDGER_URL name others: without them libpq looks below ~/.postgresql of that user. "
    f"{NOTHING_LOST}"
)
NO_TLS = (
    "KEEPERLESS_LEDGER_URL asks for TLS (sslmode), and whoever answers there offers none: switch ssl on at the server, or at "
    f"the pooler before it; see that host and port lead to it. {NOTHING_LOST}"
)
NO_ENTRY = (
    "pg_hba.conf of the server has no line that lets this user in from this address to this database: add one, and reload it "
    "(SELECT pg_reload_conf()). Where it says `no encryption`, and the line that is meant is of hostssl: sslmode=require in "
    f"KEEPERLESS_LEDGER_URL. {NOTHING_LOST}"
)
NO_NAME = (
    "The machine of that program does not resolve the server's name: `getent hosts NAME`, /etc/resolv.conf, /etc/hosts there; "
    f"else correct the name in KEEPERLESS_LEDGER_URL. {NOTHING_LOST}"
)
PASSWORD = (
    "The server is there, and does not take this user or his password: correct it in KEEPERLESS_LEDGER_URL (or in ~/.pgpass) "
    "of that program and restart it, or at the role (ALTER ROLE … PASSWORD, VALID UNTIL). Programs that were started before it "
    f"was changed have the old one. {NOTHING_LOST}"
)
TOO_MANY = (
    "End connections that idle (pg_stat_activity), or raise max_connections, CONNECTION LIMIT of the role or the database, or "
    f"of PgBouncer max_client_conn. {NOTHING_LOST}"
)
NO_SERVER_FREE = (
    "PgBouncer let us in, and none of its connections to the server was free in time: SHOW POOLS there (cl_waiting), raise "
    f"default_pool_size, or find what keeps the server from answering it. {NOTHING_LOST}"
)
FIXES = {
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


def fix_of_connect(said: str) -> str:
    """Empty where it is none of these, or said in another language than English."""
    return next((fix for words, fix in FIXES.items() if words.search(said)), "")
