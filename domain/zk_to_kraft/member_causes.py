"""Causes that lie with one server of the ensemble: what it answers, what its log says, and what lies in its directories."""

from collections.abc import Iterator

from domain.decisions import WaitReason
from domain.vital_signs import Sign, VitalSigns
from domain.zk_to_kraft.causes import Cause, Looked, Serving, cause
from domain.zk_to_kraft.zookeeper_deaths import TWICE, complaint_of_server, death_of_server, errors_of_server

BARE = (
    "Do not start it as it is: members without data that are a majority make an empty ensemble, and the cluster's metadata is "
    "gone. Look whether its dataDir is mounted, and is the one of before. Where its data is gone, start the members that have "
    "theirs first; once those have a quorum, start it: it fetches all from their leader."
)
CURES = {
    Serving.SILENT: "Look whether its process stands still (kill -CONT) or its disk does; else restart it.",
    Serving.REFUSED: "Start it; its log says why it ended.",
    Serving.UNREACHED: "Look at the way there from the host of keeperless-activities, and whether its machine is there.",
    Serving.STUCK: "Look at the disks of all members' data: dmesg, iostat -x 1, whether one is frozen (fsfreeze -u) or "
    "on a network that is gone; it goes on by itself once a majority can write. Where no disk hangs, look at the threads of "
    "the one that leads (`srvr` says Mode: leader; `jcmd PID Thread.print`): where one of them waits for a lock that nobody "
    "gives back, restart that one server, and another member leads.",
    Serving.BUSY: "Look at its disk (iostat -x 1; fsync-ing the write ahead log, in its log), and who asks so much (cons).",
    Serving.NO: "Look at its log, and whether the members reach each other's quorum and election ports.",
}
"""Where nothing more is known."""


def alone(looked: Looked, address: str) -> Cause:
    """Split brain: brokers whose session it has are registered with it only."""
    return cause(
        looked,
        "GF11",
        f"zookeeper {address}",
        WaitReason.PART_UNKNOWN,
        WaitReason.BROKERS_NOT_REGISTERED,
        observed=f"it {looked.hints.servers[address]}",
        expected="every member of the ensemble follows its leader, or leads it",
        fix="Stop it now: brokers and clients whose session it has are cut off from the others. Its zoo.cfg has lost its "
        "server.N lines, or it was started with another file: put that right, set its version-2 directory aside (it has what "
        "nobody else knows of), and start it: it copies the tree from the leader.",
    )


def moved(signs: VitalSigns) -> Iterator[Sign]:
    """It runs, and not where everybody asks it."""
    if signs.elsewhere is not None:
        pid, addresses = signs.elsewhere
        yield Sign(
            f"its process {pid} runs, and listens at {', '.join(addresses) or 'no port'}: not where it is asked",
            "Do not start another one. Where its zoo.cfg has another clientPort, clientPortAddress, secureClientPort or client "
            "part of its server.N line than before, put that back, and restart it; or give everybody who connects the new "
            "address. Else it is starting, or ending: look at its log.",
        )


def is_emptied(looked: Looked, address: str) -> bool:
    """It serves out of its memory. A server that is well has a snapshot from its first start on."""
    files = looked.hints.server_files.get(address)
    is_bare = files is not None and files.is_there and not files.has_snapshot
    return looked.hints.servers[address] is Serving.YES and is_bare


def emptied(looked: Looked, address: str) -> Cause:
    return cause(
        looked,
        "GF11",
        f"zookeeper {address}",
        observed="it serves, and in its dataDir/version-2 is no snapshot: somebody has deleted its files under it, or it has "
        "its data elsewhere than the cluster's specification says",
        expected="what it serves is on its disk",
        fix="Stop no member yet: where others have lost their files too, the data is in their memory only. Keep away what "
        "deletes there (tmpreaper, systemd-tmpfiles, cron). Then, while all others serve, put back dataDir and myid where they "
        "are gone, and restart this one: it fetches all from the leader, and writes it. The next one only once it follows "
        "(srvr).",
    )


def member_cause(looked: Looked, address: str, *, is_lost: bool) -> Cause:
    """`is_lost`: nobody gets a session with the ensemble."""
    serving = looked.hints.servers[address]
    risk = "The ensemble has no quorum" if is_lost else "The ensemble still has its quorum"
    if is_lost and set(looked.hints.servers.values()) <= {Serving.UNREACHED, Serving.UNKNOWN}:
        risk = "Whether the ensemble has its quorum cannot be seen from the host of keeperless-activities"
    if is_lost and set(looked.hints.servers.values()) <= {Serving.STUCK, Serving.BUSY, Serving.YES}:
        risk = "The ensemble has its quorum, and commits nothing"
    is_elsewhere = serving is Serving.REFUSED and f"zookeeper {address}" in looked.hints.signs
    words, known_cure = _of_log(looked, address, is_running=is_elsewhere or serving is not Serving.REFUSED)
    lies, cure = _of_files(looked, address, is_lost=is_lost)
    busiest = ", ".join(looked.hints.busiest) if serving in {Serving.BUSY, Serving.STUCK} else ""
    asking = f"Of all clients ask most: {busiest}" if busiest else ""
    told = [f"it {serving}", f"Its log says: {words}" if words else "", asking, lies, risk]
    return cause(
        looked,
        "GF11",
        f"zookeeper {address}",
        *([WaitReason.PART_UNKNOWN] if is_lost else []),
        observed=". ".join(filter(None, told)) + ".",
        expected="every member of the ensemble serves, until finalize",
        fix=f"{cure or known_cure or ('' if is_elsewhere else CURES[serving])} Without ZooKeeper's quorum there is no way "
        "back.".lstrip(),
    )


def _of_log(looked: Looked, address: str, *, is_running: bool) -> tuple[str, str]:
    """What its own log says, and what to do about it where that is known. Of who stands still it is what came before."""
    lines, serving = looked.hints.server_logs.get(address, ()), looked.hints.servers[address]
    if serving is Serving.UNREACHED:
        return "", ""
    if is_running:
        complaint = complaint_of_server(lines)
        return complaint.words, complaint.fix if serving in {Serving.NO, Serving.REFUSED} else ""
    death = death_of_server(lines)
    return (death.quote, death.told.fix) if death is not None else (errors_of_server(lines), "")


def _of_files(looked: Looked, address: str, *, is_lost: bool) -> tuple[str, str]:
    """What lies in its dataDir that keeps it out, or makes it dangerous to start it; and what to do."""
    files = looked.hints.server_files
    own = files.get(address)
    if own is None:
        return "", ""
    alike = [other for other, its in files.items() if other != address and own.myid is not None and its.myid == own.myid]
    if alike:
        return f"Its dataDir/myid says {own.myid}, and so does that of {' and '.join(alike)}", TWICE.fix
    if looked.hints.servers[address] is Serving.REFUSED and is_lost and not own.has_snapshot:
        return "In its dataDir/version-2 is no snapshot", BARE
    return "", ""
