"""Causes that lie with one node: dead, silent, not ready, its file, its flag, its errors, its registration."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256

from domain.bad_signs import signed
from domain.cluster import Role
from domain.decisions import WaitReason
from domain.observation import NodeView, PropertiesFile, StorageState
from domain.zk_to_kraft.causes import (
    DOWN_MODES,
    MAX_NAMED,
    UNKNOWN_MODES,
    Cause,
    Looked,
    Mode,
    Serving,
    cause,
    complaints,
    leaders_word,
    said_since_started,
    some,
)
from domain.zk_to_kraft.common_ends import ended_together
from domain.zk_to_kraft.death_signs import signs_at_death
from domain.zk_to_kraft.deaths import (
    CURT,
    CUT_OFF,
    KILLED,
    SILENT,
    STOPPED,
    Ending,
    death_in,
    ending_of,
    ending_of_started,
)
from domain.zk_to_kraft.guards import may_finalize_by_itself
from domain.zk_to_kraft.log_lines import THEN_START, Found, before_this_process, current, found_in, lately
from domain.zk_to_kraft.machine_deaths import DISK_FULL, NO_ROOM_BELOW, NO_SPACE, ROOM_NOW
from domain.zk_to_kraft.migration_lines import CONTROLLER_WITHOUT_FLAG
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode, left_out
from domain.zk_to_kraft.phases import Phase, phase_of
from domain.zk_to_kraft.refusals import refusals_in
from domain.zk_to_kraft.registration_lines import (
    ANSWER_TOO_LARGE,
    CLUSTER_REFUSED,
    LOGIN_FAILED,
    PEER_CUT,
    PEER_UNREACHABLE,
    SESSION_LOST,
    SESSION_TOO_SHORT,
    TLS_FAILED,
    since_registered,
)
from domain.zk_to_kraft.running_lines import METADATA_FAULT
from domain.zk_to_kraft.said import said_in, with_thrown
from domain.zk_to_kraft.situation import (
    BrokerSituation,
    ControllerSituation,
    QuorumState,
    Registration,
    missing_in_zookeeper,
    quorum_leader,
)
from domain.zk_to_kraft.unconnected import TURNED_AWAY, fix_of_the_living, unconnected_in
from domain.zk_to_kraft.unready_causes import (
    EXPLAINED_BY,
    before_more_heap,
    ending,
    lingering,
    not_ready,
    not_shown,
    silent,
    unmeasured,
)
from domain.zk_to_kraft.zookeeper_deaths import turned_away_by

EMPTY = sha256(b"").hexdigest()
UNTOUCHED = "the file as it was when the migration began"
ORIGINAL = "Its original lies beside it in .keeperless, if it has been changed by this migration."
WRITE_AGAIN = (
    "It is not overwritten. Put back what this migration wrote, or ask for a rollback; `changes` of the node's last step-done "
    "event says what that was, against its original, which lies beside it in .keeperless."
)

NO_VOLUME = (
    "The broker runs, and its data is not there: look whether the volume is mounted (`findmnt`), and mount it, then restart "
    "the broker. Put no meta.properties there meanwhile: it would start without its data."
)

UNCOVER = (
    "Unmount that (`umount {path}`, where nothing has it open) while {name} runs, and take it out of /etc/fstab or of whatever "
    "mounts it: all its data is beneath. Format nothing there, and restart {name} only after that."
)

ENDING = frozenset({Phase.FINALIZING, Phase.KRAFT, Phase.FINALIZED_EARLY})
"""Phases in which a controller without the flag is what is wanted, or can be mended no more."""


def node_causes(looked: Looked) -> Iterator[Cause]:
    """Node by node. One that a step of ours works on has none while it is excused, but that it stands still, or does not end.
    Its file is the step's own affair.
    """
    endings = _endings(looked)
    together = dict(ended_together(looked, endings))
    yield from together.values()
    for node in looked.situation.nodes:
        view = looked.observation.node(node.id)
        if (held := _held(looked, view)) is not None:
            yield from held
            continue
        if node.mode in DOWN_MODES:
            if not any(node.id in ids for ids in together):
                yield _down(looked, view, endings.get(node.id) or _ending(looked, view))
        elif node.mode in UNKNOWN_MODES:
            yield silent(looked, view)
        elif missing := not_shown(looked, view):
            yield unmeasured(looked, view, missing)
        elif node.mode in {BrokerMode.IN_TRANSITION, ControllerMode.IN_TRANSITION}:
            yield not_ready(looked, view)
        elif isinstance(node, ControllerSituation):
            yield from _not_caught_up(looked, node)
            yield from _session(looked, node)
            yield from _storage(looked, view) if node.mode is not ControllerMode.ABSENT else ()
        elif isinstance(node, BrokerSituation):
            yield from _left_behind(looked, node)
            yield from _not_registered(looked, node)
            yield from _not_in_zookeeper(looked, node)
            yield from _session(looked, node)
            yield from _storage(looked, view)
        yield from _file(looked, node)
        yield from _errors(looked, view)


def _held(looked: Looked, view: NodeView) -> tuple[Cause, ...] | None:
    """`None` of a node that is judged as any other: not in our hands, or for longer than it should be. The gauges of one that
    ends go one by one."""
    name = looked.name(view.id)
    if name not in looked.kept:
        return None
    if lingers := tuple(lingering(looked, view)):
        return lingers
    if view.is_unowned:
        return (silent(looked, view),)
    if name not in looked.excused:
        is_fading = looked.may_be_ending(view) and bool(left_out(view) or not_shown(looked, view))
        return () if is_fading else None
    if view.process is not None and view.process.is_paused:
        return (silent(looked, view),)
    return (ending(looked, view),) if looked.is_ending(view) else ()


def _endings(looked: Looked) -> dict[int, Ending]:
    """Of nodes that are down and in nobody's hands."""
    down = (node.id for node in looked.situation.nodes if node.mode in {BrokerMode.DOWN, ControllerMode.DOWN})
    return {i: _ending(looked, looked.observation.node(i)) for i in down if looked.name(i) not in looked.kept}


def _begun(looked: Looked, view: NodeView) -> Cause:
    """What stands in its output last may be of the process that has just come, and says nothing of an end. Where the one before
    it failed, this one may do the same: somebody may start it again and again."""
    name, lines = looked.name(view.id), looked.hints.logs.get(view.id) or view.last_output
    failed = death_in(lines) or death_in(before_this_process(lines))
    before = f". The one before it has ended so: {failed.quote}" if failed is not None else ""
    again = f" Where it ends again: {failed.told.fix}" if failed is not None else ""
    return cause(
        looked,
        WaitReason.NODE_NOT_READY,
        name,
        *EXPLAINED_BY[looked.spec.role(view.id)],
        WaitReason.NODE_DOWN,
        observed=f"it did not run when it was looked at, and was started while its log was read{before}",
        expected=f"{name} serves",
        fix=f"Give it a minute, and ask again.{again}",
    )


def _down(looked: Looked, view: NodeView, ending: Ending) -> Cause:
    if view.id in looked.hints.begun:
        return _begun(looked, view)
    name = looked.name(view.id)
    ending = _by_a_step(ending) if _is_stopped_by_us(view, ending) else _as_far_as_written(looked, view, ending)
    process = f"its process does not run (the last was {view.process.last_identity})" if view.process else "it does not run"
    death = death_in(looked.hints.logs.get(view.id) or view.last_output)
    words, fix = _turned_away(looked) if death is not None and death.told.name in OF_THE_ENSEMBLE else ("", "")
    observed = f"{process}. {ending.observed}{words}{_of_its_own_file(looked, view, ending.observed)}"
    expected = f"{name} runs: {ending.expected}" if ending.expected else f"{name} runs"
    explained = EXPLAINED_BY[looked.spec.role(view.id)]
    fix = f"{fix}{THEN_START}" if fix else f"{before_more_heap(looked, ending.kind)}{ending.fix}{ending.further}"
    found = cause(looked, WaitReason.NODE_DOWN, name, *explained, observed=observed, expected=expected, fix=fix)
    seen_there = looked.hints.places.get(name), looked.hints.changes.get(name)
    signs = signs_at_death(ending.kind, *seen_there, is_ours=_is_started_by_us(view))
    return Cause(signed(found.blocker, list(signs)), found.explains)


TIMED_OUT = re.compile(r"(?<![\d.])(\d{1,9}) ?(?:ms|millis(?:econds)?)\b")


def _of_its_own_file(looked: Looked, view: NodeView, said: str) -> str:
    """Which of its settings a time is that its last words name, as a further sentence: it may be too short."""
    times = set(TIMED_OUT.findall(said))
    found = [f"{key}={value}" for key, value in looked.properties(view.id).items() if key.endswith(".ms") and value in times]
    return f". Its file has {some(found)}" if found else ""


OF_THE_ENSEMBLE = frozenset({"zookeeper-unreachable", TURNED_AWAY.name})
"""Deaths that a server of ZooKeeper may know more of."""


def _turned_away(looked: Looked) -> tuple[str, str]:
    """What a member that serves has against somebody, as a further sentence, and what to do; empty where they say nothing."""
    for address, lines in looked.hints.server_logs.items():
        if looked.hints.servers.get(address) is Serving.YES and (found := turned_away_by(lines)) is not None:
            return f". The log of zookeeper {address}, which serves, says: {found.quote}", found.told.fix
    return "", ""


def _is_stopped_by_us(view: NodeView, ending: Ending) -> bool:
    """By a step that has not come to start it again."""
    mark, last = view.mark, view.process.last_identity if view.process is not None else None
    is_begun = mark is not None and not mark.is_proven and last is not None and mark.before_identity == last
    return is_begun and ending.kind == STOPPED.kind


MEND_THE_STEP = (
    "Mend what the step failed at, which the migration's hold or its last event tells: it is started as the migration goes on, "
    "or by a rollback."
)


def _by_a_step(ending: Ending) -> Ending:
    return replace(
        ending,
        observed=f"{ending.observed}. The step of this migration that restarts it has not started it again",
        fix=MEND_THE_STEP,
    )


def _is_started_by_us(view: NodeView) -> bool:
    """Of the last process: by a step, and by nobody since."""
    mark, last = view.mark, view.process.last_identity if view.process is not None else None
    return mark is not None and last is not None and last != mark.before_identity and mark.proven_identity in {None, last}


def _ending(looked: Looked, view: NodeView) -> Ending:
    """Of a process that a step of ours has started only what was printed since then: what is above is of the one before."""
    mark, process = view.mark, view.process
    is_started = (
        mark is not None and not mark.is_proven and process is not None and process.last_identity != mark.before_identity
    )
    new = said_since_started(looked, view) if is_started else None
    log_dirs = [found.path for found in view.disk.log_dirs] if view.disk is not None else []
    if new is not None:
        return ending_of_started(new, log_dirs)
    return ending_of(looked.hints.logs.get(view.id) or view.last_output, log_dirs)


def _as_far_as_written(looked: Looked, view: NodeView, ending: Ending) -> Ending:
    """Of an output that could not be written its end says nothing. Whether there is room for its data now is known as well."""
    output, path = looked.hints.outputs.get(looked.name(view.id)), looked.spec.node(view.id).driver.service.output_file
    is_full = output is not None and path in output.full
    has_room = output is not None and bool(output.lines) and not output.full
    if has_room and ending.kind == DISK_FULL.name and NO_SPACE in ending.observed:
        return replace(ending, observed=f"{ending.observed}; {ROOM_NOW}", fix=NO_ROOM_BELOW)
    return CUT_OFF if is_full and ending.kind in {KILLED.kind, CURT.kind, SILENT.kind} else ending


def _not_caught_up(looked: Looked, node: ControllerSituation) -> Iterator[Cause]:
    leader = quorum_leader(looked.observation, looked.spec)
    if node.is_caught_up or leader is None or node.mode not in {ControllerMode.MIGRATING, ControllerMode.FINAL}:
        return
    metrics, name = looked.observation.node(node.id).metrics, looked.name(node.id)
    if node.id in (looked.observation.unregistered or ()):
        yield cause(
            looked,
            WaitReason.CONTROLLERS_NOT_READY,
            name,
            observed=f"it runs, and the log of {looked.name(leader.id)}, which leads, has no registration of it"
            + complaints(looked, node.id),
            expected="every controller has registered: the copy does not begin before",
            fix=f"It registers within seconds of the quorum's first election. If it lasts, restart {name}: a registration that "
            "was not answered in time is never sent again by that process (KAFKA-20247).",
        )
        return
    end = metrics.raft_log_end if metrics is not None else None
    follows = metrics.raft_leader if metrics is not None else None
    lines = looked.hints.logs.get(node.id, ())
    cut_off = _cut_off(lines)
    said = refusals_in(lines, (CLUSTER_REFUSED, TLS_FAILED, LOGIN_FAILED)) or ((cut_off,) if cut_off is not None else ())
    yield cause(
        looked,
        WaitReason.CONTROLLERS_NOT_READY,
        name,
        WaitReason.QUORUM_TOO_THIN,
        observed=f"its log ends at {end}, it follows {follows}; {looked.name(leader.id)} leads, at "
        f"{leader.metrics.raft_log_end}"
        + ("".join(f". Its log says: {found.quote}" for found in said[:1]) or complaints(looked, node.id)),
        expected="every controller follows the leader, and has its log",
        fix=fix_of_the_living(said[0])
        if said
        else "Give it a moment. If it lasts, check that it reaches the leader's listener, and that controller.quorum.voters is "
        "the same on all controllers.",
    )


def _left_behind(looked: Looked, node: BrokerSituation) -> Iterator[Cause]:
    """Somebody has restarted it with its file from before the migration: it serves what it had then, and hears of nothing."""
    if node.id not in looked.left_behind:
        return
    name, path = looked.name(node.id), looked.spec.node(node.id).properties_file
    yield cause(
        looked,
        WaitReason.BROKERS_NOT_REGISTERED,
        name,
        WaitReason.PARTITIONS_NOT_IN_SYNC,
        WaitReason.PART_UNKNOWN,
        observed="it runs in ZooKeeper mode, while KRaft has the cluster's metadata: it hears of no change, its replicas lag",
        expected="every broker in migration mode, or in KRaft mode, since the copy",
        fix=f"Put back into {path} what this migration wrote (`changes` of the node's step-done events), and restart {name}. "
        "Or ask for a rollback.",
    )


def _not_registered(looked: Looked, node: BrokerSituation) -> Iterator[Cause]:
    """A broker can serve for ever and never register: only its log says why (proven-facts, section 4)."""
    if looked.situation.registration is not Registration.DIFFERS or node.mode not in REGISTERING or _are_all_counted(looked):
        return
    controllers = {str(c.id) for c in looked.spec.controllers}
    refusals = refusals_in(lately(since_registered(looked.hints.logs.get(node.id, ()))))
    for found in [f for f in refusals if f.told not in TO_A_PEER or controllers.intersection(f.named)][:1]:
        yield cause(
            looked,
            WaitReason.BROKERS_NOT_REGISTERED,
            looked.name(node.id),
            WaitReason.COPY_NOT_COMPLETE,
            observed=f"it serves, and is not registered with the controllers. Its log says: {found.quote}"
            + leaders_word(looked, node.id),
            expected=found.told.expected,
            fix=found.told.fix,
        )


TO_A_PEER = frozenset({PEER_CUT, PEER_UNREACHABLE})
REGISTERING = frozenset({BrokerMode.HYBRID, BrokerMode.KRAFT})


def _are_all_counted(looked: Looked) -> bool:
    """The quorum counts as many as serve: what differs is one that has died and is counted still, or was counted otherwise."""
    leader = quorum_leader(looked.observation, looked.spec)
    counted = leader.metrics.active_broker_count if leader is not None else None
    return counted is not None and counted >= sum(b.mode in REGISTERING for b in looked.situation.brokers)


LEAVE_IT = (
    "Do not restart {name} for this: its session has ended, and it registers by itself with the next one. Where that does not "
    "last, look at the way from its host to ZooKeeper, and at pauses of its JVM and of the members'."
)


def _not_in_zookeeper(looked: Looked, node: BrokerSituation) -> Iterator[Cause]:
    """It serves with its session alive, and somebody has deleted its registration: no controller counts on it any more, and it
    does not register again by itself. Where it is the controller itself, its metadata goes on naming it."""
    if node.id not in missing_in_zookeeper(looked.observation.zookeeper, looked.situation.brokers):
        return
    name = looked.name(node.id)
    said = found_in(lately(looked.hints.logs.get(node.id, ())), (SESSION_TOO_SHORT, SESSION_LOST))
    words = f". Its log says: {said[0].quote}" if said else ""
    restart = f"Restart {name}: it registers when it starts. Before that make sure that all partitions can spare it."
    yield cause(
        looked,
        WaitReason.BROKERS_NOT_REGISTERED,
        name,
        WaitReason.PARTITIONS_NOT_IN_SYNC,
        WaitReason.PART_UNKNOWN,
        observed=f"it runs, and /brokers/ids/{node.id} does not exist in ZooKeeper{words}",
        expected=said[0].told.expected if said else "every broker in ZooKeeper or hybrid mode is registered there",
        fix=said[0].told.fix + LEAVE_IT.format(name=name) if said else restart,
    )


def _storage(looked: Looked, view: NodeView) -> Iterator[Cause]:
    """A directory that is not this node's any more: it serves on, and does not survive its next restart (PF03)."""
    dirs = view.disk.log_dirs if view.disk is not None else ()
    for found in (one for one in dirs if one.state is not StorageState.OURS):
        name, told = looked.name(view.id), f"cluster.id {found.cluster_id}, id {found.node_id}"
        is_gone = found.state in {StorageState.EMPTY, StorageState.ABSENT}
        if is_gone and (found.is_fenced or (looked.spec.role(view.id) is Role.CONTROLLER and len(dirs) > 1)):
            continue
        gone = NO_VOLUME if looked.spec.role(view.id) is Role.BROKER else _reformatted(looked, view)
        observed = f"{found.state}: its meta.properties says {told}" if found.cluster_id else f"{found.state}"
        signs = looked.hints.signs.get(name)
        if (above := dict(signs.covered).get(found.path) if signs is not None else None) is not None:
            observed += f". {name} runs on its files, which lie beneath what was mounted over them since: {above}"
            is_gone, gone = True, UNCOVER.format(path=found.path, name=name)
        yield cause(
            looked,
            "PF03",
            f"{name} {found.path}",
            observed=observed,
            expected=f"formatted for cluster {looked.spec.cluster_id} and {name}",
            fix=gone
            if is_gone
            else f"Restore meta.properties in {found.path} before {name} restarts: it would not start with another.",
        )


def _reformatted(looked: Looked, view: NodeView) -> str:
    """Of a controller that runs on what is not there any more: the others have all that it had (seen with 3.9)."""
    name, node = looked.name(view.id), looked.spec.node(view.id)
    return (
        f"{name} runs on files that are deleted. Look whether the volume is mounted. If its data is gone, and every other "
        f"controller is caught up: kill -9 its process, `kafka-storage.sh format --cluster-id {looked.spec.cluster_id} "
        f"--config {node.properties_file}`, and start it: it fetches the log from the leader. One controller at a time."
    )


IN_ZOOKEEPER: frozenset[Mode] = frozenset({BrokerMode.ZOOKEEPER, BrokerMode.HYBRID, ControllerMode.MIGRATING})
OF_CONTROLLERS_SESSION = (WaitReason.COPY_NOT_COMPLETE, WaitReason.DUAL_WRITE_NOT_CURRENT)


def _session(looked: Looked, node: BrokerSituation | ControllerSituation) -> Iterator[Cause]:
    """GF11: a node that has lost ZooKeeper while others have it, as far as its metrics tell. Controllers have a session from
    their start to the end of the migration."""
    metrics = looked.observation.node(node.id).metrics
    session = metrics.zookeeper_session if metrics is not None else None
    is_cut = session not in {None, "CONNECTED"} and node.mode in IN_ZOOKEEPER
    if is_cut and looked.observation.zookeeper is not None:
        name, lines = looked.name(node.id), looked.hints.logs.get(node.id, ())
        known = next(iter(found_in(lines, (ANSWER_TOO_LARGE,))), None) or _cut_off(lines)
        said = f". Its log says: {known.quote}" if known is not None else complaints(looked, node.id)
        words, cure = _turned_away(looked)
        if known is not None and not (cure and known.told is TURNED_AWAY):
            cure = fix_of_the_living(known)
        yield cause(
            looked,
            "GF11",
            name,
            *(OF_CONTROLLERS_SESSION if isinstance(node, ControllerSituation) else (WaitReason.PARTITIONS_NOT_IN_SYNC,)),
            observed=f"its session with ZooKeeper is {session}, while ZooKeeper answers us{said}{words}",
            expected="CONNECTED",
            fix=cure or f"Look at the way from {name} to ZooKeeper: network, zookeeper.connect, credentials.",
        )


def _cut_off(lines: Sequence[str]) -> Found | None:
    """What keeps one that runs from whom it asks."""
    return unconnected_in(list(said_in(current(lines))))


def _file(looked: Looked, node: BrokerSituation | ControllerSituation) -> Iterator[Cause]:
    name = looked.name(node.id)
    if name in looked.in_hand:
        return
    path = looked.spec.node(node.id).properties_file
    disk = looked.observation.node(node.id).disk
    if _has_lost_flag(looked, node):
        runs = "runs without it" if node.mode is ControllerMode.FINAL else "would start without it"
        yield cause(
            looked,
            WaitReason.CONTROLLER_LOST_ITS_FLAG,
            name,
            observed=f"zookeeper.metadata.migration.enable is not in force: it {runs}",
            expected="every controller has the migration flag until finalize was approved",
            fix=f"Put zookeeper.metadata.migration.enable=true back into {path} and restart {name} now: if it becomes active, "
            "the migration is final.",
        )
    elif node.stage is None and disk is not None and node.mode is not ControllerMode.ABSENT:
        observed, expected, fix = _foreign(path, disk.file)
        yield cause(looked, WaitReason.FILE_CHANGED, name, observed=observed, expected=expected, fix=fix)


def _foreign(path: str, file: PropertiesFile | None) -> tuple[str, str, str]:
    """Of a file that fits no stage: what is seen of it, what would be right, and what to do."""
    mark = file.mark if file is not None else None
    if file is None:
        missing = f"{path} does not exist, or is a link to nothing"
        return missing, "the file is there, as it was", f"Restore the file, or what it links to. {ORIGINAL}"
    expected = UNTOUCHED if mark is None else "the file as this migration left it"
    is_empty, short = file.sha256 == EMPTY, f"sha256 {file.sha256[:12]}…"
    if mark is None:
        seen = "is empty" if is_empty else f"fits neither ZooKeeper mode nor a stage of the migration: {short}"
        observed = f"{path} {seen}. This migration has not written it: somebody else has changed it"
        again = "Restore it" if is_empty else "It is not overwritten. Undo that edit, or restore the file"
        return observed, expected, f"{again} from your configuration management or a backup. {ORIGINAL}"
    seen = "is empty: somebody else has emptied it" if is_empty else f"was changed by somebody else: {short}"
    return f"{path} {seen}, this migration left {mark.written_sha256[:12]}…", expected, WRITE_AGAIN


def _has_lost_flag(looked: Looked, node: BrokerSituation | ControllerSituation) -> bool:
    if not isinstance(node, ControllerSituation) or phase_of(looked.situation) in ENDING:
        return False
    is_final = looked.situation.quorum is QuorumState.POST_MIGRATION
    return not is_final and node.mode is not ControllerMode.UNKNOWN and may_finalize_by_itself(node, looked.situation.claim)


def _errors(looked: Looked, view: NodeView) -> Iterator[Cause]:
    """GF10: an error in applying metadata stays for ever: the node goes on with something else than the log says."""
    count = view.metrics.metadata_error_count if view.metrics is not None else None
    if count:
        name = looked.name(view.id)
        said = found_in(looked.hints.logs.get(view.id, ()), (METADATA_FAULT,))
        last = "".join(f". The last, by its log: {with_thrown(found)}" for found in said)
        yield cause(
            looked,
            "GF10",
            name,
            observed=f"{count} errors while it applied metadata, since its start{last}",
            expected="MetadataErrorCount 0",
            fix=f"Its log has each with its stack trace. Restart {name} once they are understood: what it has in memory "
            "differs "
            "from the quorum's log.",
        )


def flagless(looked: Looked) -> Iterator[Cause]:
    """What the active controller says of a controller that never had the flag, which shows nothing of it itself."""
    for lines in looked.hints.logs.values():
        for found in found_in(lines, (CONTROLLER_WITHOUT_FLAG,)):
            known = {c.id for c in looked.spec.controllers}
            about = [looked.name(int(i)) if int(i) in known else f"controller {i}" for i in found.named]
            yield cause(
                looked,
                WaitReason.CONTROLLER_LOST_ITS_FLAG,
                some(about[:MAX_NAMED]),
                WaitReason.CONTROLLERS_NOT_READY,
                WaitReason.COPY_NOT_COMPLETE,
                observed=f"the active controller says: {found.quote}",
                expected=found.told.expected,
                fix=found.told.fix,
            )
