"""Causes that lie with one server of the ensemble: what it answers, what its log says, and what lies in its directories."""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial

from domain.diagnosis.causes.case import Case, Cause
from domain.diagnosis.causes.death_signs import killed_for_memory
from domain.diagnosis.causes.down import LOOK_AT_VOLUMES
from domain.diagnosis.causes.hints import Serving
from domain.diagnosis.logs.lines import Found
from domain.diagnosis.logs.members import (
    MOVE_NOTHING_YET,
    OTHER_TREE,
    TWICE,
    complaint_of_server,
    death_of_server,
    errors_of_server,
    other_tree_in,
)
from domain.diagnosis.machines.node_output import held_by
from domain.diagnosis.machines.vital_signs import Sign, VitalSigns, read_only
from domain.observed.ensemble import are_alike, counts_of
from domain.waits import WaitReason

BARE = (
    "Do not start it as it is: members without data that are a majority make an empty ensemble, and the "
    "cluster's metadata is lost. Check whether its dataDir is mounted, and is the same as before. If its "
    "data is gone, start the members that have theirs first. When those have a quorum, start this one: it "
    "fetches all data from their leader."
)
MAKE_ROOM = (
    "Make room on that volume, in bytes or in inodes (`df -h`, `df -i`), and find what fills it. Delete only "
    "old files of its own, by zkCleanup.sh -n 3 (autopurge.purgeInterval does so for good). Then start it if "
    "it does not run. A member writes each transaction before it agrees to it, and ends if it cannot."
)
CURES = {
    Serving.SILENT: "Check whether its process is stopped (kill -CONT) or its disk hangs. If not, restart it.",
    Serving.REFUSED: "Start it; its log says why it ended.",
    Serving.UNREACHED: "Look at the way there from the host of keeperless-activities, and whether its machine is there.",
    Serving.STUCK: "Check the disks of all members' data: dmesg, iostat -x 1, whether one is frozen (fsfreeze -u) or on a "
    "network that is gone. The ensemble continues by itself when a majority can write. If no disk hangs, "
    "check the leader's threads (`srvr` shows Mode: leader; `jcmd PID Thread.print`). If one of them waits "
    "for a lock that is never released, restart that one server, and another member leads.",
    Serving.BUSY: "Look at its disk (iostat -x 1; fsync-ing the write ahead log, in its log), and who asks so much (cons).",
    Serving.NO: "Look at its log, and whether the members reach each other's quorum and election ports.",
}
"""Where nothing more is known."""
BEFORE_ALL_ELSE = (
    "Do this before any other fix of znodes: a client whose session is at such a member takes as missing "
    "what only that member lacks. "
)
EMPTIED_BY_HAND = (
    "stop that one server, move the version-2 directories of its dataDir and dataLogDir aside (keep them, and myid), and "
    "start it"
)
TO_BE_MENDED = (
    "First check what only it has (zkCli.sh -server MEMBER ls -R /, there and at another one): that will be "
    f"lost. Then, while all others serve (srvr), one member after the other: {EMPTIED_BY_HAND}: it takes a "
    "snapshot from the leader."
)
TO_BE_COMPARED = (
    f"{MOVE_NOTHING_YET}zkCli.sh -server MEMBER ls -R / at each, stat of what only some have; and who was started alone, or "
    "with another zoo.cfg (their logs). "
)
ONCE_COMPARED = (
    "If the leader's is right: for each that differs from it, one after the other, "
    f"while all others serve (srvr): {EMPTIED_BY_HAND}. If a majority is right, and the leader is not: do the same with the "
    "leader first, and start it only once another one leads that is right. If less than a majority is right: stop all "
    "members, keep a copy of every version-2, give each that of one that is right, and start them."
)


def alone(case: Case, address: str) -> Cause:
    """Split brain: brokers whose session it has are registered with it only."""
    return case.cause(
        "GF11",
        f"zookeeper {address}",
        WaitReason.PART_UNKNOWN,
        WaitReason.BROKERS_NOT_REGISTERED,
        observed=f"it {case.hints.servers[address]}",
        expected="every member of the ensemble follows its leader, or leads it",
        fix="Stop it now: brokers and clients whose session it has are cut off from the others. Its zoo.cfg has lost "
        "its server.N lines, or it was started with another file: correct that. Move its version-2 directory "
        "aside (it has what no other member has), and start it: it copies the tree from the leader.",
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


def differing(case: Case) -> Iterator[Cause]:
    """Members that are equally far, with different trees. To be mended is who is outvoted, if the leader is with the others."""
    trees = case.hints.trees
    if are_alike(trees):
        yield from _differing_by_their_logs(case)
        return
    ((most, times),) = Counter(tree.znodes for tree in trees.values()).most_common(1)
    is_majority = 2 * times > len(case.hints.servers)
    odd = [address for address, tree in trees.items() if tree.znodes != most or not is_majority]
    if is_majority and any(tree.is_leader and tree.znodes == most for tree in trees.values()):
        yield from (_differs(case, address, TO_BE_MENDED) for address in odd)
    else:
        yield _differs(case, ", ".join(odd), f"{TO_BE_COMPARED}{ONCE_COMPARED}")


def _differs(case: Case, which: str, fix: str) -> Cause:
    return case.cause(
        "GF11",
        f"zookeeper {which}",
        observed=f"the members have different trees: {counts_of(case.hints.trees)}{_words_of(_other_trees(case))}",
        expected="one tree: with the same zxid every member has the same znodes (srvr: Zxid, Node count)",
        fix=f"{BEFORE_ALL_ELSE}{fix}{_then(case)}",
    )


def _differing_by_their_logs(case: Case) -> Iterator[Cause]:
    """Of trees with as many znodes, or of members that do not tell how many."""
    said = _other_trees(case)
    if said:
        yield case.cause(
            "GF11",
            f"zookeeper {', '.join(said)}",
            observed=f"it has another tree than the leader{_words_of(said)}",
            expected=OTHER_TREE.expected,
            fix=f"{BEFORE_ALL_ELSE}{OTHER_TREE.fix} {ONCE_COMPARED} Its log says so until it is restarted.{_then(case)}",
        )


def _other_trees(case: Case) -> dict[str, Found]:
    """By address, of members that serve."""
    logs = {a: lines for a, lines in case.hints.server_logs.items() if case.hints.servers.get(a) is Serving.YES}
    return {address: found for address, lines in logs.items() if (found := other_tree_in(lines)) is not None}


def _words_of(said: Mapping[str, Found]) -> str:
    return "".join(f". The log of {address} says: {found.quote}" for address, found in said.items())


def _then(case: Case) -> str:
    lost = case.lost_change
    if lost is None:
        return ""
    why = f"ZooKeeper has refused what it wrote (dual-write-not-current).{lost.before_restart}"
    return f" Then restart the active controller, {lost.controller}: {why}"


def is_emptied(case: Case, address: str) -> bool:
    """It serves out of its memory. A server that is well has a snapshot from its first start on."""
    files = case.hints.server_files.get(address)
    is_bare = files is not None and files.is_there and not files.has_snapshot
    return case.hints.servers[address] is Serving.YES and is_bare


def emptied(case: Case, address: str) -> Cause:
    return case.cause(
        "GF11",
        f"zookeeper {address}",
        observed="it serves, and in its dataDir/version-2 is no snapshot: its files were deleted while it ran, or its "
        "data is elsewhere than the cluster's specification says",
        expected="what it serves is on its disk",
        fix="Stop no member yet: if others have lost their files too, the data is in their memory only. Stop what "
        "deletes there (tmpreaper, systemd-tmpfiles, cron). Then, while all others serve, restore dataDir and "
        "myid if they are gone, and restart this one: it fetches all data from the leader, and writes it. Take "
        "the next one only when this one follows (srvr).",
    )


def member_cause(case: Case, address: str, *, is_lost: bool) -> Cause:
    """`is_lost`: nobody gets a session with the ensemble."""
    serving = case.hints.servers[address]
    risk = "The ensemble has no quorum" if is_lost else "The ensemble still has its quorum"
    if is_lost and set(case.hints.servers.values()) <= {Serving.UNREACHED, Serving.UNKNOWN}:
        risk = "Whether the ensemble has its quorum cannot be seen from the host of keeperless-activities"
    if is_lost and set(case.hints.servers.values()) <= {Serving.STUCK, Serving.BUSY, Serving.YES}:
        risk = "The ensemble has its quorum, and commits nothing"
    if is_lost and all(map(partial(_listens_elsewhere, case), case.hints.servers)):
        risk = "Whether the ensemble has its quorum cannot be seen: its members run, and listen elsewhere"
    is_elsewhere = _listens_elsewhere(case, address)
    words, known_cure = _of_log(case, address, is_running=is_elsewhere or serving is not Serving.REFUSED)
    lies, cure = _of_files(case, address, is_lost=is_lost)
    ended = _ended(case, address) if not known_cure else None
    busiest = ", ".join(case.hints.busiest) if serving in {Serving.BUSY, Serving.STUCK} else ""
    asking = f"The clients with the most requests are {busiest}" if busiest else ""
    told = [f"it {serving}", f"Its log says: {words}" if words else "", ended.observed if ended else "", asking, lies, risk]
    usual = ended.fix if ended else "" if is_elsewhere else CURES[serving]
    return case.cause(
        "GF11",
        f"zookeeper {address}",
        *([WaitReason.PART_UNKNOWN] if is_lost else []),
        observed=". ".join(filter(None, told)) + ".",
        expected="every member of the ensemble serves, until finalize",
        fix=f"{cure or known_cure or usual} Without ZooKeeper's quorum a rollback is not possible.".lstrip(),
    )


def _ended(case: Case, address: str) -> Sign | None:
    """Where it does not run: that its machine was booted, or that the kernel has killed it. Its log says nothing of either."""
    changes = case.hints.changes.get(f"zookeeper {address}")
    if case.hints.servers[address] is not Serving.REFUSED or _listens_elsewhere(case, address):
        return None
    if changes is not None and changes.booted_at is not None:
        return Sign(f"Its machine was booted at {changes.booted_at:%d %b %H:%M:%S} UTC", f"{LOOK_AT_VOLUMES}Then start it.")
    return killed_for_memory(changes)


def _listens_elsewhere(case: Case, address: str) -> bool:
    """Nobody listens there, and its process runs."""
    return case.hints.servers[address] is Serving.REFUSED and f"zookeeper {address}" in case.hints.signs


def _of_log(case: Case, address: str, *, is_running: bool) -> tuple[str, str]:
    """What its own log says, and what to do about it where that is known. Of who stands still it is what came before."""
    lines, serving = case.hints.server_logs.get(address, ()), case.hints.servers[address]
    if serving is Serving.UNREACHED:
        return "", ""
    if is_running:
        complaint = complaint_of_server(lines)
        return complaint.words, complaint.fix if serving in {Serving.NO, Serving.REFUSED} else ""
    death = death_of_server(lines)
    return (death.quote, death.told.fix) if death is not None else (errors_of_server(lines), "")


def _of_files(case: Case, address: str, *, is_lost: bool) -> tuple[str, str]:
    """What lies in its dataDir that keeps it out, or makes it dangerous to start it; and what to do."""
    files = case.hints.server_files
    own = files.get(address)
    if own is None:
        return "", ""
    alike = [other for other, its in files.items() if other != address and own.myid is not None and its.myid == own.myid]
    if alike:
        return f"Its dataDir/myid says {own.myid}, and so does that of {' and '.join(alike)}", TWICE.fix
    if case.hints.servers[address] is Serving.REFUSED and is_lost and not own.has_snapshot:
        return "In its dataDir/version-2 is no snapshot", BARE
    if own.full:
        held = held_by(own.deleted)
        return f"No room is left for {' and '.join(own.full)}{held.observed}", f"{held.fix}{MAKE_ROOM}"
    if own.read_only:
        sign = read_only(own.read_only)
        return sign.observed, f"{sign.fix} Then start it if it does not run."
    return "", ""
