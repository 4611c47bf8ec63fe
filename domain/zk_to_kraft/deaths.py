"""What a process says when it dies: the words of Kafka 3.9 and of a JVM, what would be right, and what to do."""

import re
from collections.abc import Sequence

from domain.zk_to_kraft.log_lines import OUT_OF_MEMORY, TOO_MANY_OPEN_FILES, Found, Told, first_of

ITS_FILES = "the process can read and write its own files"
DEATHS = (
    OUT_OF_MEMORY,
    Told(
        "disk-full",
        re.compile(r"No space left on device"),
        "room on every log directory",
        "Make room: move or delete what is not Kafka's, or grow the volume. Then start it.",
    ),
    Told(
        "disk-failed",
        re.compile(r"Read-only file system|Input/output error"),
        "a disk that can be written and read",
        "Look at the kernel's log and the mount: mend or replace the disk, then start the node.",
    ),
    Told(
        "log-dirs-failed",
        re.compile(r"Shutdown broker because all log dirs in .{1,160} have failed"),
        "a log directory that can be written and read",
        "Look at the room on that volume, at its mount, at the kernel's log, and further up in the node's own: an "
        "IOException says what failed. Mend it, then start the node.",
        is_vague=True,
    ),
    Told(
        "installation-gone",
        re.compile(
            r"Could not find or load main class [\w.$]{1,100}|Unable to access jarfile \S{1,160}|"
            r"Error opening zip file or JAR manifest missing ?: \S{1,160}"
        ),
        "Kafka and its agents lie where the node's start command says",
        "Put the installation back (a volume that is not mounted, a package that was removed), or correct kafka_home and "
        "the start command. Then start the node.",
    ),
    Told(
        "java-cannot-start",
        re.compile(
            r"UnsupportedClassVersionError|Unrecognized VM option '[^']{1,60}'|"
            r"Could not reserve enough space for|(?:java|exec): .{0,80}not found"
        ),
        "a Java that can run this Kafka",
        "Correct JAVA_HOME, heap and options in the node's environment and start command; Kafka 3.9 runs on Java 8 to 21.",
    ),
    Told(
        "java-failed",
        re.compile(r"Error occurred during initialization of VM"),
        "a Java that starts",
        "Look at the lines around it: options, heap, agents and libraries in the node's start command. Then start the node.",
        is_vague=True,
    ),
    TOO_MANY_OPEN_FILES,
    Told(
        "lock-held",
        re.compile(r"Failed to acquire lock on file \.lock in ([^\s.]+)"),
        "no other process has the log directory",
        "Another process, perhaps the node's own old one, uses the directory. Find it with `fuser`, stop it, then start "
        "the node.",
    ),
    Told(
        "port-in-use",
        re.compile(r"Address already in use|Socket server failed to bind to \S+:\d+"),
        "the node's ports are free",
        "Find who listens with `ss -ltnp`, stop it, or give one of the two another port. Then start the node.",
    ),
    Told(
        "cluster-id-differs",
        re.compile(r"Invalid cluster\.id in: \S{1,160} Expected \S{1,64}, but read \S{1,64}"),
        "meta.properties and ZooKeeper name one cluster",
        "Where /cluster/id is not what meta.properties says on every broker, somebody has deleted or written it: put it back. "
        "Else the node reaches another ZooKeeper, or lies on another cluster's directory: correct zookeeper.connect or "
        "log.dirs. Then start it.",
    ),
    Told(
        "directory-of-nobody",
        re.compile(r"Found directory \S{1,160}, '[^']{1,100}' is not in the form of topic-partition"),
        "nothing but Kafka's own directories in a log directory",
        "Move it away, or remove it where it is an empty lost+found: that comes with a new file system, and log.dirs is better "
        "a folder on it than its root. Then start the node.",
    ),
    Told(
        "storage-of-another",
        re.compile(r"InconsistentBrokerIdException|Stored node id \d+ doesn't match previous node id \d+"),
        "meta.properties has the node's own id",
        "The log directory is another node's: correct log.dirs, or node.id.",
    ),
    Told(
        "not-formatted",
        re.compile(r"No (?:readable )?meta\.properties (?:files? )?found(?: in any of the)?"),
        "formatted storage",
        "The log directory is empty or was put aside: mount the right volume. A controller of ours is formatted anew once its "
        "directory is absent.",
    ),
    Told(
        "node-exists",
        re.compile(r"NodeExistsException: KeeperErrorCode = NodeExists"),
        "no session of an earlier process keeps /brokers/ids/…",
        "The old session lives until zookeeper.session.timeout.ms is over: start it once more after that. If it lasts, another "
        "broker runs with this id.",
    ),
    Told(
        "zookeeper-no-auth",
        re.compile(r"NoAuthException: KeeperErrorCode = NoAuth(?: for \S{1,80})?"),
        "the node's identity may write ZooKeeper",
        "Give the node the same ZooKeeper credentials as the brokers (zookeeper.set.acl, JAAS or TLS), then start it.",
    ),
    Told(
        "zookeeper-unreachable",
        re.compile(r"ZooKeeperClientTimeoutException: Timed out waiting for connection while in state: \w+"),
        "ZooKeeper answers the node",
        "Look at the ensemble first; if it is well, at zookeeper.connect and the network between.",
    ),
    Told(
        "flag-on-kraft-cluster",
        re.compile(r"Should not have ZK migrations enabled on a cluster that was created in KRaft mode"),
        "a quorum whose first activation had the migration flag",
        "The quorum's log was begun without the flag: stop all controllers, ask for a rollback, and begin anew.",
    ),
    Told(
        "migration-copy-failed",
        re.compile(r"Encountered fatal fault: (?:Migration to KRaft failed|.{0,40}migration.{0,60})", re.IGNORECASE),
        "a copy that every znode lets through",
        "A znode cannot be copied. `copy-cannot-finish` names it where it can be found: mend it, then migrate again.",
    ),
    Told(
        "no-permission",
        re.compile(r"AccessDeniedException: \S{1,160}|\S{1,160} ?\(Permission denied\)|Permission denied"),
        ITS_FILES,
        "Give the files back to the user that Kafka runs as (chown -R, chmod u+rwX), then start it.",
    ),
    Told(
        "missing-file",
        re.compile(r"(?:FileNotFoundException|NoSuchFileException): \S{1,160}"),
        "every file that its properties name",
        "Put the file back, or correct the property that names it. Then start it.",
    ),
    Told(
        "bad-configuration",
        re.compile(r"ConfigException: (?:Missing required configuration \"[\w.]+\"|.{0,200}?for configuration [\w.]+|.{0,60})"),
        "a properties file that Kafka accepts",
        "Correct the named property in the node's file, then start it.",
    ),
    Told(
        "bad-requirement",
        re.compile(r"IllegalArgumentException: requirement failed: [^=]{0,160}"),
        "a properties file that Kafka accepts",
        "Correct the named property in the node's file, then start it.",
    ),
    Told(
        "class-not-found",
        re.compile(r"ClassNotFoundException: [\w.$]{1,120}"),
        "every class that its properties name is in kafka_home's libs",
        "Install the plug-in on this node, or remove the property that names it.",
    ),
)
"""What a process says when it dies. The last line that fits counts, of those that are not vague where there is one; of one line
the first pattern."""


def death_in(lines: Sequence[str]) -> Found | None:
    """Why a process died, by its last words; `None` where they are none that we know."""
    deaths = [found for line in lines if (found := first_of(line, DEATHS)) is not None]
    exact = [found for found in deaths if not found.told.is_vague]
    return next(reversed(exact or deaths), None)
