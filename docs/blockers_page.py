"""The page on why nothing happens: every code of an entry, and every line of a log that is known."""

from domain.decisions import WAIT_MEANS, WaitReason
from domain.diagnosis.blocker_codes import CODES
from domain.diagnosis.logs.authorizer_lines import OF_ZOOKEEPERS
from domain.diagnosis.logs.deaths import CURT, CUT_OFF, DEATHS, KILLED, SILENT, STOPPED, Ending
from domain.diagnosis.logs.lines import Told
from domain.diagnosis.logs.machine_deaths import DATA_FILE_GONE
from domain.diagnosis.logs.registration_lines import SESSION_TOO_SHORT
from domain.diagnosis.logs.replication_lines import SEGMENT_TOO_SMALL
from domain.diagnosis.logs.running_lines import RUNNING
from domain.diagnosis.logs.tree_digests import OTHER_TREE
from domain.diagnosis.logs.unconnected import UNCONNECTED
from domain.diagnosis.logs.zookeeper_deaths import CONFIGURATION, LIVING_KINDS, SERVER_DEATHS, TICKS_TOO_SHORT, TURNS_AWAY
from domain.zk_to_kraft.blockers import EXPECTED

BLOCKERS_HEAD = """\
# Why is nothing happening?

Made from the registries of waits, guards and log lines by `make docs`. Do not edit.

```sh
curl -s http://127.0.0.1:8080/migrations/$ID/blockers
```

One entry for each cause, from a look at the cluster that is made when you ask: `code`, `object` (what it is about),
`observed`, `expected`, `fix` (what to do), `since`, and `docs`, a place on one of these pages. All causes at once: what a
dead broker makes lag is no entry beside it. An empty list says that nothing is in the way. The answer comes within fifteen
seconds, also where a process of ours is missing: then that is an entry, `observed_at` is `null`, and the rest is what the
ledger knows. `unlooked` names what could not be looked up, so that a cause may be missing. A migration that was refused lists
the preflight's findings; one that has ended, nothing.

A node that a step of the migration restarts is no blocker within its usual time: 30 seconds, or the migration's longest restart
so far. A failed start is reported immediately. A fault that its log or its machine proves is reported after eight seconds. If a
worker has taken an activity and reports nothing for ten seconds, that is an entry.

Each worker process writes a health row to the ledger every five seconds: program, host, process, release, a fingerprint of the
settings that copies must share, and its last error without values. If no worker takes the tasks of a queue, the entry names
the worker of that program that beat last, when, whether it stopped cleanly, and its last error. A worker that beats and does
not poll the queue is named as such. Live copies of one program with other releases or fingerprints are an entry beside that of
a trouble. A worker whose row is missing writes to another ledger, or does not reach this one: its log says so.

What stands in no metric and no znode is read from Kafka's own output, on its node: that of the active controller, of nodes that
are dead or not ready, of brokers that do not register, and of brokers between which replicas lag. Of a process that runs that
is what it has open: its standard output, also where that is not the driver's output file any more, because somebody has started
it by hand or the file was rotated; and its logs, such as controller.log, of which only the lines with its id count where other
nodes write there too; of kafka-authorizer.log what only nodes ask for and are denied. Of a dead one it is the output file, with
the newest file that was rotated away from it, if that is not compressed. What the system's errors are called in the language of
the host is read as English. Without `python3` on the node only the output file is read. Of lines that are known what is known
is quoted, and the exception below one; where none is, the last error or warning, without values in it, for it may be the
reason. It is told where a node's output goes elsewhere, and where its volume is full. Lines may be in Kafka's layout, in
another that begins with a date and a level, or JSON.

Of a process in trouble its machine is asked too, for a second (`python3` has to be there): threads that wait in the
kernel without an end, as for a disk that hangs, or for a scanner of files; peers that acknowledge nothing, or nothing
that is large; limits of control groups that let it do little to its disk, or have it sleep for memory; a quota of CPU
time, a program that stops it and lets it go on (cpulimit), a heap that is full, or that somebody has it collect, memory
that is used up, open files near their limit, data that can only be read, a disk that is busy all the time and slow, who
else asks a metrics endpoint that does not answer, a clock that is wrong; connections of which it reads nothing, or that
it does not take, a debugger that is connected to its JVM, and packets that its network throws away, by the kernel's
counters: for want of a route, by an IPsec policy without a state, with a wrong signature. What is found stands in the
entry of that node. Of one that is down it is said what it has inherited from the unit of systemd in which a step started
it, whether the kernel has killed for memory since its note, and where memory or threads were lacking, what of them is
used up. Nodes of one machine that were told to end within two seconds are one entry. Of one that was told to end of late,
by nobody of ours, and was started again, that is said with how often, and by whom it was started, as where a health check
does not fit. A JVM that does not get on with its start or its end is asked where the threads stand that do that, and a
broker that answers nobody what those are at that are there for requests (old clients whose records it converts, a plug-in
that waits), as `jcmd PID Thread.print` asks: by a file in its /tmp and SIGQUIT, which is sent once to a process, and only
to a HotSpot that takes it. The file, `.attach_pid` with its number, stays where it does not listen in time: without it
the JVM would print its threads into its log. OpenJ9, and who has `-XX:+DisableAttachMechanism`, is not asked.

Of a process in trouble, and of what it has begun, it is also said what its threads wait for all that second, by the call of the
kernel that each is in: who does not answer at which address, or does not take what is sent; a service of the machine behind a
socket, with its process; who has a lock; a pipe that nobody reads, a file that does not come back. That names what no log
does: a directory service behind `sudo`, a registry of secrets, a log that goes to a shipper. It is evidence beside an entry,
for some threads wait for ever where all is well. Root may see it, and the process's own user where `kernel.yama.ptrace_scope`
is 0.

A file of a node on which another program has a lease (fcntl(2): Samba's oplocks, delegations of an NFS server), and does not
give it back within a second, is told with that program, and holds up nobody: whoever else opens it, the node too, waits for up
to `fs.lease-break-time`. Files that hang for another reason are unknown after five seconds, and the rest is looked at.

Where Kafka is silent or replicas lag, up to eight connections at once are begun to each address of a broker, from ports of
their own: where some get through and others do not, what is between shares connections out, and a part of it passes nothing.

Where connections wait to be taken at a port, it is told how many it has taken there, and who has most of them: a listener
at its limit (`max.connections`) takes nobody, and says nothing of it. What SQLite's ledger is in is looked at too: where
somebody has deleted its files under our programs nothing more is written, and what brings all back is told.

Where a step has had a node for over eight seconds and nothing that is run on its machine comes back, though its files can be
read, that is told with what to try there by hand.

Members of the ensemble that serve are asked how far they are, and how many znodes they have (`srvr`). Where some are equally
far and have not as many, twice within two seconds, that is told with their numbers: one that was started alone, and changed,
joins the others again and keeps its own tree (ZOOKEEPER-3911, ZOOKEEPER-2832). Trees that differ only in their data, or have
as many znodes by chance, are told where the members' logs can be read (`output_file`): who differs from its leader says so
there, at once or within a quarter of an hour after an election (`Digests are not matching`). Whose tree is right no log says.

Where Kafka as a whole gives no answer in time, each broker that runs is asked by itself, for next to nothing, at its listener
for clients: one that takes connections and answers no request keeps all the rest from an answer. Which one that is is told,
with those that do answer, and its machine is asked. Where all answer, it is the whole that takes long: an entry only where
there is no other.

Where an address gives no answer it is told what it does: its name is not resolved, which is an entry of keeperless-activities'
machine; no TLS comes about, and why; it refuses our login; another program answers, or another node's gauges; its page takes
too long. Of our own parts it is told as well where keeperless-activities asks for tasks on machines of several names, where it
lacks files or ports for connections, where all that it does at once is in work, and where the clock of the API's machine is
ahead of Temporal's.

And it is said what has changed there. When a migration first finds a node well, and after each restart of its own, a note
is kept of how that machine is set: mounts, kernel settings, firewall, IPsec policies, routes and queues, limits, rights and
environment of the process and its control groups, libraries that are loaded in it and directories of its jars, owner,
rights, size and time of what Kafka is started from, and of every file that its command line, environment or settings name
(passwords, key stores, rules of agents), enabled services that run, other programs that go on, crontabs and units, lines of
`/etc/hosts`. The same of keeperless-activities, and of servers of ZooKeeper that the specification has as `members`, with
the settings of the file that each was started with, and its `myid`; and of ZooKeeper the dynamic configs, quotas, ACLs,
orders, new topics of very many partitions, and how many partitions the others have. Of a node or server in trouble what
differs from its note is told, the likeliest first, with what its kernel has said since; of anything else in entries beside
that of the trouble. Of a node that is down it is said which variables of its environment a start by its driver would not
give it. It need not be the cause; it is what one would ask first. No secret is kept: of the environment and of servers' files
only the names, but for what holds none, and of credentials and encoded passwords in ZooKeeper eight digits of a digest, which
tell that they were set anew. What could not be looked at counts as unchanged: firewall, routes and queues need root, and
`nft` or `iptables-save`, `ip` and `tc`. The notes of a migration are deleted when it ends.

`since` is when the cause was first written down: by the wait that it made, or by an alert. Of any other it is the moment of
this look.
"""


def blockers() -> str:
    """Every code of an entry, and every line of a log that is known."""
    waits = [f"### {reason}\n\n{WAIT_MEANS[reason]} Ends with: {EXPECTED[reason][1]}.\n" for reason in WaitReason]
    others = [f"### {code}\n\n{words}\n" for code, words in CODES.items()]
    parts = [
        BLOCKERS_HEAD,
        "## Waits\n",
        "The same words as `waiting.reason` of the migration.\n",
        *waits,
        "## Ourselves\n",
        *others,
        "## Guards and checks\n",
        "`GF..` is explained among the [guards](guards.md), `PF..` among the [checks](checks.md).\n",
        "## Lines of a running node's log\n",
        _lines((*RUNNING, SEGMENT_TOO_SMALL, SESSION_TOO_SHORT)),
        "## Last words of a node that has died\n",
        _lines((*DEATHS, OF_ZOOKEEPERS, DATA_FILE_GONE)),
        "## What a process warns of that gets no connection\n",
        "Of a node, and of a ZooKeeper server that has no quorum: by the exception below the warning. What is told there of "
        "keys and certificates, of names and of open files is that of the last words above.\n",
        _lines(UNCONNECTED),
        "## Words of a ZooKeeper server that does not serve\n",
        "Where `zookeeper.members` of the cluster's specification names its `output_file`. The first ones of a server that "
        "runs, and has no quorum; where none of them fits, its last complaint is quoted, with the exception below it.\n",
        _lines((*LIVING_KINDS, TICKS_TOO_SHORT, *SERVER_DEATHS, CONFIGURATION)),
        "Of a member that serves, where a node gets no session:\n",
        _lines(TURNS_AWAY),
        "Of a member that serves another tree than its leader does:\n",
        _lines((OTHER_TREE,)),
        "## A node that has died of none of these\n",
        _endings((STOPPED, KILLED, CURT, SILENT, CUT_OFF)),
    ]
    return "\n".join(parts)


def _lines(kinds: tuple[Told, ...]) -> str:
    rows = [f"| {kind.name} | {kind.expected} | {kind.fix} |" for kind in kinds]
    return "\n".join(["| what it tells | what would be right | what to do |", "|---|---|---|", *rows]) + "\n"


def _endings(endings: tuple[Ending, ...]) -> str:
    rows = [f"| {ending.observed} | {ending.expected or 'it runs'} | {ending.fix} |" for ending in endings]
    return "\n".join(["| what is told | what would be right | what to do |", "|---|---|---|", *rows]) + "\n"
