"""What lets a connection to PostgreSQL be made, by what libpq says of one that was not, which it does in words only. Pure."""

import re

NOTHING_LOST = "Nothing is lost: migrations continue where they were."

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
