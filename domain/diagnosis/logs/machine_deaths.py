"""What a process dies of below Kafka: its Java, its memory, its disks, files and limits, its network.

The texts are those of the JVM (8 to 21), of Linux, and of Kafka 3.9's SocketServer. Of one line the first kind counts: what is
more exact stands first.
"""

import re

from domain.diagnosis.logs.lines import Told
from domain.diagnosis.logs.silence_lines import DIRECT_MEMORY, OUT_OF_MEMORY, TOO_MANY_OPEN_FILES

ITS_FILES = "the process can read and write its own files"
JAVA_THAT_STARTS = "a Java that starts"

EXPORTER_FIX = (
    "Its JMX exporter ends the JVM where it cannot read its file of rules, which its option -javaagent names last "
    "(…=PORT:FILE). Mend what is wrong there, by the line that is told and what it printed above it, or put the file of before "
    "back. Then start it."
)

BY_A_SHELL = r"^(?:\S+: (?:line )?\d+: +)?(?:\d{1,10} +)?"
"""With the line of its script, and the process."""

JAVA = (
    Told(
        "out-of-maps",
        re.compile(r"Map failed"),
        "room for every mapped file: two for each segment",
        "Raise vm.max_map_count (sysctl, 262144 or more), for good in /etc/sysctl.d; with many partitions above that. Then "
        "start it.",
    ),
    Told(
        "out-of-threads",
        re.compile(
            r"[Uu]nable to create (?:new )?native thread|pthread_create failed \(EAGAIN\)|"
            r"fork: (?:retry: )?Resource temporarily unavailable"
        ),
        "room for the threads that Kafka needs",
        "Raise the limit of processes (ulimit -u, TasksMax of the systemd unit, pids.max of the container), then start it.",
    ),
    Told(
        "out-of-metaspace",
        re.compile(r"OutOfMemoryError: (?:Metaspace|Compressed class space)"),
        "memory for classes besides the heap",
        "Raise or remove -XX:MaxMetaspaceSize in its options. Then start it.",
    ),
    DIRECT_MEMORY,
    OUT_OF_MEMORY,
    Told(
        "host-out-of-memory",
        re.compile(
            r"There is insufficient memory for the Java Runtime Environment to continue|os::commit_memory\([^)]{1,60}\) failed|"
            r"(?:fork|mmap|malloc)(?:: retry)?: Cannot allocate memory|\(Cannot allocate memory\)"
        ),
        "a host with the memory that the node's heap asks for",
        "Free memory on its host, give it more (the container's limit, too), or lower -Xmx. Then start it.",
    ),
    Told(
        "java-crashed-on-a-mapped-file",
        re.compile(
            r"SIGBUS \(0x[0-9a-f]{1,4}\)(?: at pc=0x[0-9a-f]{1,16})?|"
            rf"InternalError: a fault occurred in an? (?:recent )?unsafe memory access|{BY_A_SHELL}Bus error\b"
        ),
        "a disk that can be written and read under every file that is mapped",
        "Most often the volume under a log directory is full or fails, or somebody has cut a file off: look at `df`, `dmesg` "
        "and the mount first. Then start it: it recovers its logs.",
    ),
    Told(
        "java-crashed",
        re.compile(
            r"SIG(?:SEGV|ILL|FPE|ABRT) \(0x[0-9a-f]{1,4}\)(?: at pc=0x[0-9a-f]{1,16}(?: \(sent by kill\))?)?|"
            rf"#  Internal Error \([\w.:/ -]{{1,120}}\)|{BY_A_SHELL}(?:Segmentation fault|Illegal instruction|Aborted)\b"
        ),
        "a Java that does not crash",
        "Where it says `sent by kill`, somebody has sent that signal. Else read `Problematic frame` in the hs_err file: a "
        "native library or a Java with a bug (update it), or bad memory (`dmesg`, another host). Starting it again is safe.",
    ),
    Told(
        "java-crash-report",
        re.compile(r"\S{0,160}hs_err_pid\d{1,10}\.log|A fatal error has been detected by the Java Runtime Environment"),
        "a Java that does not crash",
        "The hs_err file says what was executed then, and what for. Starting it again is safe.",
        is_vague=True,
    ),
    Told(
        "java-log-file",
        re.compile(r"Error opening log file '[^']{1,160}': [\w ]{1,60}|Invalid -Xlog option"),
        "a folder for Java's own log that Kafka's user can write",
        "Make the folder of that file, or give it to Kafka's user, or correct -Xlog in KAFKA_GC_LOG_OPTS. Then start it.",
    ),
    Told(
        "installation-gone",
        re.compile(
            r"Could not find or load main class [\w.$]{1,100}|Unable to access jarfile \S{1,160}|"
            r"Error opening zip file or JAR manifest missing ?: \S{1,160}|Classpath is empty\. Please build the project first|"
            r"Could not find agent library \S{1,80}|Unable to initialize main class [\w.$]{1,100}|ClassNotFoundException: "
            r"kafka\.Kafka\b"
        ),
        "Kafka and its agents lie where the node's start command says",
        "Put the installation back (a volume that is not mounted, a package that was removed), or correct kafka_home and the "
        "start command. Then start the node.",
    ),
    Told(
        "java-gone",
        re.compile(r"\bjava: (?!.{0,40}GLIBC).{0,40}not found|(?:\S{1,160}/bin/java|env: '?java'?): No such file or directory"),
        "a Java where the node's environment and start command say",
        "Put that Java back (a package that is being upgraded, a volume that is not mounted), or correct JAVA_HOME. Then start "
        "the node.",
    ),
    Told(
        "program-gone",
        re.compile(
            r"exec: \S{1,160}: not found|\S{1,160}: (?:cannot execute: required file not found|bad interpreter: \S{1,80})"
        ),
        "the program of the start command is there, and the interpreter that its first line names",
        "Where the program is there, its first line (#!) names an interpreter that is not: mostly a script that was saved with "
        "Windows' line ends (`file` says CRLF; sed -i 's/\\r$//' takes them away). Else put it back, or correct the start "
        "command. Then start the node.",
    ),
    Told(
        "java-cannot-start",
        re.compile(
            r"UnsupportedClassVersionError|getSubject is (?:not|only) supported|"
            r"Unrecognized (?:VM )?option:? ?'?[\w:+-]{1,60}'?|"
            r"Could not reserve enough space for|Invalid \w{1,20} heap size: \S{1,20}|"
            r"Initial heap size set to a larger value|(?:Multiple|Conflicting) (?:garbage )?collector|"
            r"error while loading shared libraries: \S{1,80}"
        ),
        "a Java that can run this Kafka",
        "Correct JAVA_HOME, heap and options in the node's environment and start command; Kafka 3.9 runs on Java 8 to 21. "
        "Then start the node.",
    ),
    Told(
        "native-library",
        re.compile(
            r"UnsatisfiedLinkError: .{1,200}|NoClassDefFoundError: Could not initialize class (?:org\.xerial\.snappy|"
            r"com\.github\.luben\.zstd|net\.jpountz)[\w.$]{0,80}"
        ),
        "native libraries that can be unpacked and loaded",
        "Codecs unpack one into java.io.tmpdir (/tmp) and load it from there. Where that is full, not writable or mounted "
        "noexec (`findmnt -T /tmp`), put -Djava.io.tmpdir=DIR, of a directory that allows it, into KAFKA_OPTS of its start "
        "command. Else the library is not for this machine, or asks for another one that is not installed. Then start it.",
    ),
    Told(
        "java-broken",
        re.compile(
            r"could not open [`']\S{1,160}jvm\.cfg'?|failed \S{1,160}libjvm\.so, because [^|]{1,200}|"
            r"version [`']GLIBC\w{0,3}_[\d.]{1,12}' not found|/java: cannot execute binary file: Exec format error|"
            r"Error loading java\.security file|Could not find the Java SE Runtime Environment"
        ),
        "a Java that is whole, and made for this machine",
        "The Java there lacks a part, or is another machine's: a package that is being upgraded, or was left so (`rpm -V`, "
        "`dpkg -V`), a copy that is not whole, one of another processor (`file`) or of a newer system (GLIBC: `ldd "
        "--version`), a mount without exec. Put one there that fits, or correct JAVA_HOME. Restart no other node with that "
        "Java before. Then start it.",
    ),
    Told(
        "exporter-file",
        re.compile(r"in 'reader', line \d+, column \d+"),
        "an agent that can read its file",
        EXPORTER_FIX,
    ),
    Told(
        "exporter-failed",
        re.compile(r"Failed to start Prometheus JMX Exporter"),
        "an agent that can read its file",
        EXPORTER_FIX,
        is_vague=True,
    ),
    Told(
        "remote-jmx-file",
        re.compile(
            r"(?:Password|Access|SSL configuration) file (?:read access must be restricted|not (?:readable|found))"
            r"(?:: ?\S{1,160})?"
        ),
        "files of its remote JMX that its user, and of passwords nobody else, can read",
        "By its options -Dcom.sun.management.jmxremote.… a JVM ends where it cannot read the files that they name, or "
        "others than their owner can read the passwords: put that file back, chown it to the user who starts the node, chmod "
        "600. Look at every node's before it restarts. Then start it.",
    ),
    Told(
        "java-failed",
        re.compile(
            r"Error occurred during initialization of VM|Could not create the Java Virtual Machine|"
            r"processing of -javaagent failed|agent library failed to init"
        ),
        JAVA_THAT_STARTS,
        "Look at the lines around it: options, heap, agents and libraries in the node's start command. Then start the node.",
        is_vague=True,
    ),
)

MACHINE_OUT_OF_FILES = Told(
    "machine-out-of-files",
    re.compile(r"Too many open files in system"),
    "a machine with file handles left",
    "The whole machine has none left (fs.file-max; /proc/sys/fs/file-nr says how many are in use), whatever the limit of this "
    "process: raise fs.file-max (sysctl), and find who holds so many (`lsof`). Restart no other node there before. Then start "
    "it.",
)

DISK_FULL = Told(
    "disk-full",
    re.compile(r"No space left on device|Disk quota exceeded"),
    "room on every log directory",
    "Make room: move or delete what is not Kafka's, or grow the volume or its quota. Where `df` shows room, the inodes may "
    "be used up (`df -i`). Then start it.",
)
NO_SPACE = "No space left on device"
ROOM_NOW = "its file system has room now, in bytes and in inodes"
NO_ROOM_BELOW = (
    "Unless somebody has made room since, what lies below that file system has none: a thin pool (`lvs`: Data%), the file "
    "behind a loop device (`losetup -l`), the datastore of a virtual machine; the kernel says which device (`dmesg`: critical "
    "space allocation error). Make room there, or grow that: a larger file system on it makes it worse. Then start it."
)
OF_A_PATH = r"FileSystemException: \S{1,160}: |FileNotFoundException: \S{1,160} \("
THROWN_OF_FILES = f"(?:IOException: |{OF_A_PATH})"
"""What Java calls an error of a file; of a connection it has other exceptions, or other words."""
DISKS = (
    DISK_FULL,
    Told(
        "file-system-damaged",
        re.compile(rf"Structure needs cleaning|{THROWN_OF_FILES}Bad message\b\)?"),
        "a file system that is whole",
        "The file system there is damaged, and says so (EUCLEAN; EBADMSG: a checksum is wrong): the kernel's log (`dmesg`) "
        "names the device. Stop what uses it, unmount it, and have it checked (`e2fsck -f DEVICE`, `xfs_repair DEVICE`); see "
        "that the disk below is well (`smartctl -a`), mount it again, and start the node. Format nothing, and delete nothing: "
        "what is whole there need not come from other replicas, and what it lacks the broker fetches by itself.",
    ),
    Told(
        "disk-failed",
        re.compile(
            r"Read-only file system|Input/output error|Stale file handle|Transport endpoint is not connected|"
            rf"{THROWN_OF_FILES}(?:Remote I/O error|Link has been severed|No data available)\b\)?|"
            rf"{THROWN_OF_FILES}No such device(?: or address)?\b\)?|(?:{OF_A_PATH})(?:Connection timed out|Host is down)\b\)?"
        ),
        "a disk that can be written and read",
        "Look at the kernel's log and the mount: mend or replace the disk. Then start it.",
    ),
    Told(
        "log-dirs-failed",
        re.compile(
            r"Shutdown broker because (?:all|none of the specified) log dirs (?:in|from) .{1,160}? (?:have failed|can be "
            r"created)"
        ),
        "a log directory that can be written and read",
        "Look at the room on that volume, at its mount, at the kernel's log, and further up in the node's own: an IOException "
        "says what failed. Mend it, then start the node.",
        is_vague=True,
    ),
    Told(
        "file-too-large",
        re.compile(rf"{THROWN_OF_FILES}File too large\b\)?"),
        "no limit on how large a file may be",
        "It may not write files as large as a segment: look at `ulimit -f` (LimitFSIZE= of its unit, fsize in limits.conf; "
        "unlimited as it comes), else at what that file system can hold. Then start it.",
    ),
    Told(
        "no-locks",
        re.compile(rf"{THROWN_OF_FILES}No locks available\b\)?"),
        "a file system whose files can be locked",
        "The log directory lies on a file system of the network that gives no locks: look at rpc.statd and lockd on its host "
        "and on the server (NFS 3; `rpcinfo -p SERVER`: nlockmgr), a firewall between both, and its mount options (nolock, "
        "NFS 4). Kafka's data is better on a disk of its own. Then start it.",
    ),
    MACHINE_OUT_OF_FILES,
    TOO_MANY_OPEN_FILES,
    Told(
        "lock-held",
        re.compile(r"Failed to acquire lock on file \.lock in ([^\s.]+)"),
        "no other process has the log directory",
        "Another process, perhaps the node's own old one, uses the directory. Find it with `fuser`, stop it, then start the "
        "node.",
    ),
)

UNKNOWN_HOST = Told(
    "unknown-host",
    re.compile(
        r"UnknownHostException: [\w.-]{1,120}|Unable to resolve address:? ?[\w.:-]{0,120}|"
        r"Socket server failed to bind to \S{1,120}: Unresolved address|Unresolved address|UnresolvedAddressException|"
        r"No resolvable bootstrap urls"
    ),
    "every host name in the node's properties can be resolved on its host",
    "`getent hosts NAME` on that host: mend DNS or /etc/hosts, or correct the property that has the name. Then start it.",
)

NETWORK = (
    Told(
        "port-not-allowed",
        re.compile(r"Socket server failed to bind to \S{1,120}:(?:\d{1,3}|10(?:[01]\d|2[0-3])): Permission denied"),
        "ports that Kafka's user may listen at",
        "A port below 1024 needs the right to bind it (AmbientCapabilities=CAP_NET_BIND_SERVICE): give it, or another port, "
        "as it was before. Then start the node.",
    ),
    Told(
        "address-not-here",
        re.compile(r"(?:Socket server failed to bind to \S{1,120}: )?Cannot assign requested address"),
        "`listeners` names addresses that the node's host has",
        "Compare `listeners` (of a server of ZooKeeper clientPortAddress, and its server.N line, by dataDir/myid) with "
        "`ip addr` on its host: the address has gone (an interface that is down, a virtual address that has moved) or the name "
        "means another host (/etc/hosts, DNS). Mend that, or correct the setting; what Kafka's clients are told belongs into "
        "advertised.listeners.",
    ),
    UNKNOWN_HOST,
    Told(
        "port-in-use",
        re.compile(
            r"Socket server failed to bind to \S{1,120}:\d+: Address already in use|Address already in use|"
            r"Port already in use: \d{1,5}"
        ),
        "the node's ports are free",
        "See who has it (`ss -tanp` there, in any state). Stop that only where it is no node of the cluster, and no server of "
        "its ensemble; else give one of the two another port. Then start it.",
    ),
    Told(
        "bind-refused",
        re.compile(r"Socket server failed to bind to \S{1,120}:\d+: [^(|]{1,100}"),
        "a machine that lets the node listen at its addresses",
        "An address family that is unavailable or not supported: IPv6 is off on its host (sysctl "
        "net.ipv6.conf.all.disable_ipv6, ipv6.disable=1), while `listeners` has an address of it; or the unit that it runs "
        "in forbids it (RestrictAddressFamilies=). What is not permitted, or denied at a port above 1023, a security module "
        "refuses (dmesg: avc: denied name_bind; `semanage port`), or the unit (SocketBindDeny=). In another language it may "
        "say that the port is taken: `ss -tanp`. Mend that, then start the node.",
    ),
)

LOCKED = "Required key not available"
UNLOCK = (
    "Its directory is encrypted, and its key is not in the kernel: unlock it (`fscrypt unlock DIRECTORY`, or what brings the "
    "key at boot: units of systemd, a session of pam_fscrypt that has ended)"
)
MISSING_FILE = "missing-file"
FILES = (
    Told(
        "no-permission",
        re.compile(r"AccessDeniedException: \S{1,160}|\S{1,160} ?\(Permission denied\)|Permission denied"),
        ITS_FILES,
        "Give the files back to the user that Kafka runs as (chown -R, chmod u+rwX), then start it. Where they are his, and "
        "their folders let him in, a security module refuses it: dmesg (avc: denied, apparmor=DENIED), ls -Z.",
    ),
    Told(
        "locked-files",
        re.compile(r"\S{1,160}(?:: | \()Required key not available|Required key not available"),
        ITS_FILES,
        f"{UNLOCK}, then start the node. Nothing of it is missing, and nothing has to be put back.",
    ),
    Told(
        "file-unusable",
        re.compile(
            r"FileSystemException: \S{1,160}: [\w ]{1,60}|"
            r"FileNotFoundException: \S{1,160} \((?!No such file or directory\))[A-Z][\w /-]{1,60}\)"
        ),
        ITS_FILES,
        "Look at that file (`ls -ld`, `lsattr`, its mount): something stands there that Kafka has not put there, or has marked "
        "it (chattr +i, +a), and nothing is missing. Mend it, then start the node.",
    ),
    Told(
        MISSING_FILE,
        re.compile(
            r"(?:FileNotFoundException|NoSuchFileException): \S{1,160}|\S{1,160} \(No such file or directory\)|"
            r"\S{1,160}: No such file or directory"
        ),
        "every file that its properties and its start command name",
        "Put the file back, or correct the property or option that names it. Then start it.",
    ),
)

DATA_FILE_GONE = Told(
    "data-file-gone",
    re.compile(r"(?:FileNotFoundException|NoSuchFileException): (/\S{1,160})"),
    "files of partitions that nobody but Kafka deletes",
    "A file of a partition was deleted past Kafka. Put nothing in its place. Find who deletes there, and keep that away from "
    "every node first: tmpreaper, systemd-tmpfiles (log directories below /tmp or /var/tmp), logrotate or cron with `*.log`, a "
    "scanner's quarantine. Then start it: it goes on with what is left. What that file had is in the partition's other "
    "replicas: look first that they are in sync, and have this replica made anew from them (kafka-reassign-partitions.sh, away "
    "and back).",
)
"""In place of `missing-file`, of a file in one of the node's log directories."""
OF_PARTITION = re.compile(r"(?!__cluster_metadata)[^/]+-\d+(?:\.[\w-]+)?/")
"""What a path goes on with below a log directory, where it is that of a partition's file."""

MACHINE_DEATHS = (*JAVA, *DISKS, *NETWORK)
"""Looked for before what Kafka says in its own words. `FILES` come after that: many things begin with a file."""
