"""The manual way forward to KRaft, in the order in which `forward` takes it. What was begun is finished first."""

from collections.abc import Iterator
from shlex import quote

from domain.by_hand import kafka_tools as tools
from domain.by_hand import shell
from domain.checks.check import SUPPORTED_RELEASE
from domain.cluster import ControllerSpec
from domain.configuration.properties import edit, parse
from domain.questions import RunbookAction
from domain.redaction import is_name, is_shown
from domain.zk_to_kraft.guards import STAGE_OF_MODE, in_mode, is_edited, may_finalize_by_itself, zookeeper_controller_last
from domain.zk_to_kraft.modes import BrokerMode, ControllerMode
from domain.zk_to_kraft.node_config import controller_file
from domain.zk_to_kraft.phases import Phase, are_brokers_begun, phase_of
from domain.zk_to_kraft.runbook.actions import (
    Scene,
    file_commands,
    give_flag_back,
    log_dirs,
    on_cluster,
    on_node,
    pause_actions,
    resume_actions,
    roll_broker,
    start_node,
)
from domain.zk_to_kraft.situation import BrokerSituation, Claim, QuorumState
from domain.zk_to_kraft.steps import NodeStage


def forward_actions(scene: Scene) -> tuple[RunbookAction, ...]:
    """From this very state to KRaft. Empty where it is reached."""
    s = scene.situation
    if phase_of(s) is Phase.KRAFT:
        return resume_actions(scene) if s.is_release_due else ()
    if s.quorum is QuorumState.POST_MIGRATION:
        rest = (*_roll_to_kraft(scene), *_finalize(scene, is_final_already=True))
        return (*pause_actions(scene), *rest, *resume_actions(scene))
    why_not = _why_not_forward(scene)
    if why_not:
        return (on_cluster(scene, why_not, ()),)
    is_finalizing = phase_of(s) is Phase.FINALIZING
    lost = [] if is_finalizing else [c.id for c in s.controllers if may_finalize_by_itself(c, s.claim)]
    return (
        *(give_flag_back(scene, node_id) for node_id in lost),
        *pause_actions(scene),
        *(_forget_earlier_copy(scene) if s.is_copy_left_over else ()),
        *_controllers(scene),
        *_half_done(scene),
        *_roll_to_hybrid(scene),
        *(() if _is_copied(scene) else (_await_copy(scene),)),
        *_roll_to_kraft(scene),
        _last_look(scene),
        *_finalize(scene, is_final_already=False),
        *resume_actions(scene),
    )


def _why_not_forward(scene: Scene) -> str:
    s = scene.situation
    if s.is_copy_stale or s.is_copy_failed:
        return (
            "DO NOT CONTINUE: the copy fails, or is an earlier attempt's, and metadata is at risk. Roll back now, and begin "
            "again."
        )
    gone = in_mode(s, ControllerMode.FENCED) + (in_mode(s, ControllerMode.ABSENT) if are_brokers_begun(s) else [])
    if gone and s.claim is not Claim.KRAFT:
        return "DO NOT CONTINUE: a rollback was begun here and is half-done. Complete it, and begin again."
    edited = [scene.spec.node_name(b.id) for b in s.brokers if is_edited(b)]
    if edited:
        return (
            f"DO NOT CONTINUE YET: the file of {', '.join(edited)} was edited and its broker was not restarted. Restore the "
            "file, or restart the broker if the edit is meant and the controllers are ready for it. Then ask for the "
            "runbook again."
        )
    return ""


def _is_copied(scene: Scene) -> bool:
    return scene.situation.quorum is QuorumState.MIGRATION and scene.situation.claim is Claim.KRAFT


def _forget_earlier_copy(scene: Scene) -> Iterator[RunbookAction]:
    spec = scene.spec
    for controller in spec.controllers:
        name = spec.node_name(controller.id)
        title = f"Stop {name}: /migration refers to a copy that this quorum has not made"
        yield on_node(scene, controller, title, (shell.stop(controller),), shell.is_gone(controller), "exit code 0: it is gone")
    absent = tools.is_absent(spec, "migration")
    delete = f"{{ {absent}; }} || {tools.zookeeper(spec, 'delete /migration')}"
    yield on_cluster(scene, "Delete /migration", (delete,), absent, "exit code 0: there is no /migration")
    for controller in spec.controllers:
        yield start_node(scene, controller, "it creates /migration again")


def _controllers(scene: Scene) -> Iterator[RunbookAction]:
    seen = {c.id: c for c in scene.situation.controllers}
    for controller in scene.spec.controllers:
        mode = seen[controller.id].mode
        if seen[controller.id].stage is NodeStage.KRAFT:
            continue  # Finalised by its next start: that comes last, with a warning.
        if mode in {ControllerMode.ABSENT, ControllerMode.INTERRUPTED}:
            yield _provision(scene, controller)
        elif mode in {ControllerMode.FENCED, ControllerMode.DOWN}:
            yield start_node(scene, controller, "the quorum needs it")
    yield on_cluster(
        scene,
        "Check that the controllers form a quorum. Every one must run with the migration flag",
        (),
        shell.until(f"{tools.quiet(tools.quorum(scene.spec))} | grep -q '^LeaderId: *[0-9]'"),
        "exit code 0: there is a leader",
    )


def _provision(scene: Scene, controller: ControllerSpec) -> RunbookAction:
    """Its file, its storage, its process. What is not shown in its file is copied from the file that it comes from."""
    spec = scene.spec
    storage = " ".join(quote(path) for path in log_dirs(scene, controller))
    words = ("--ignore-formatted", f"--cluster-id={spec.cluster_id}", "--config", quote(controller.properties_file))
    tool = shell.java(controller, "kafka.tools.StorageTool", "format", *words, "--release-version", _release(scene))
    is_there = scene.files.get(controller.id) is not None and scene.files[controller.id].current is not None
    return on_node(
        scene,
        controller,
        f"Create {spec.node_name(controller.id)}: write its file, format its storage, start it",
        (
            *(() if is_there else _controller_file(scene, controller)),
            f"mkdir -p {storage} && env {shell.environment(controller)} {tool}",
            shell.start(controller),
        ),
        f"sleep 3; {shell.is_up(controller)}",
        "exit code 0: its process runs. If not, the end of its output says why",
    )


def _controller_file(scene: Scene, controller: ControllerSpec) -> tuple[str, ...]:
    spec = scene.spec
    broker, file = spec.brokers[0], scene.files.get(spec.brokers[0].id)
    source = None if file is None else file.original or file.current
    base = scene.files[controller.id].base if controller.id in scene.files else None
    if source is None:
        return (f"echo 'the file of {spec.node_name(broker.id)} could not be read: ask for the runbook again'; exit 1",)
    found, of_base = parse(controller_file(spec, controller, base, source)), parse(base or "")
    shown = {key: value for key, value in found.items() if is_shown(key, value)}
    write = shell.write_file(controller.properties_file, edit("", shown))
    theirs = [key for key, value in found.items() if key not in shown.keys() | of_base.keys() and is_name(key, value)]
    has_own = not of_base.keys() <= shown.keys()
    copies = [shell.append_others(controller.base_properties or "", shown, controller.properties_file)] if has_own else []
    is_elsewhere = broker.host != controller.host
    taken = f"{controller.properties_file}.of-broker" if is_elsewhere else broker.properties_file
    fetch = [f"umask 077; scp {quote(f'{broker.host}:{broker.properties_file}')} {quote(taken)}"]
    forget = [f"rm {quote(taken)}"]
    copy = [shell.append_keys(taken, theirs, controller.properties_file)]
    copies += [*fetch, *copy, *forget] if theirs and is_elsewhere else copy if theirs else []
    return (write, *copies)


def _release(scene: Scene) -> str:
    file = scene.files.get(scene.spec.brokers[0].id)
    text = None if file is None else file.original or file.current
    return parse(text or "").get("inter.broker.protocol.version", SUPPORTED_RELEASE)


def _half_done(scene: Scene) -> Iterator[RunbookAction]:
    """A file that is ahead of its process, or a broker that does not run: from its file as it is."""
    for broker in scene.situation.brokers:
        is_stopped = broker.mode in {BrokerMode.INTERRUPTED, BrokerMode.DOWN}
        is_ahead = broker.mode in STAGE_OF_MODE and broker.stage is not STAGE_OF_MODE[broker.mode]
        is_too_early = broker.stage is NodeStage.KRAFT and not _is_copied(scene)
        if broker.stage is not None and (is_stopped or is_ahead) and not is_too_early:
            yield roll_broker(scene, broker.id, broker.stage)


def _roll_to_hybrid(scene: Scene) -> Iterator[RunbookAction]:
    waiting = [b for b in scene.situation.brokers if b.stage is NodeStage.ZOOKEEPER]
    yield from (roll_broker(scene, b.id, NodeStage.MIGRATION) for b in zookeeper_controller_last(waiting))


def _await_copy(scene: Scene) -> RunbookAction:
    spec = scene.spec
    return on_cluster(
        scene,
        "Wait for the copy: it begins by itself when every broker is hybrid and registered. If it does not, the log of the "
        "active controller reports every minute what it waits for",
        (),
        f"{shell.until(tools.is_krafts(spec), 300)} && {_is_current(scene)}",
        "it ends by itself, with exit code 0: KRaft owns /controller, and ZooKeeper is kept up to date",
    )


def _is_current(scene: Scene) -> str:
    return shell.until(tools.is_copy_current(scene.spec, scene.policy.max_offset_distance), 120)


def _roll_to_kraft(scene: Scene) -> Iterator[RunbookAction]:
    outside: list[BrokerSituation] = [b for b in scene.situation.brokers if b.stage is not NodeStage.KRAFT]
    if scene.situation.quorum is QuorumState.POST_MIGRATION:
        outside = [b for b in scene.situation.brokers if b.stage is not NodeStage.KRAFT or b.mode is not BrokerMode.KRAFT]
    yield from (roll_broker(scene, b.id, NodeStage.KRAFT) for b in outside)


def _last_look(scene: Scene) -> RunbookAction:
    in_sync = shell.until(tools.is_in_sync(scene.spec))
    return on_cluster(
        scene,
        "Check again, and let it run like this as long as you like: until here a rollback is possible",
        (tools.quorum(scene.spec, "--replication"),),
        f"{in_sync} && {_is_current(scene)}",
        "exit code 0: every replica is in sync, and ZooKeeper is kept up to date",
    )


def _finalize(scene: Scene, *, is_final_already: bool) -> Iterator[RunbookAction]:
    """Standbys first, the active one last."""
    spec = scene.spec
    warning = "" if is_final_already else "FINAL, NO ROLLBACK AFTER THIS: "
    left = [c for c in scene.situation.controllers if not (c.mode is ControllerMode.FINAL and c.stage is NodeStage.KRAFT)]
    for controller in sorted(left, key=lambda c: (c.is_leader, c.id)):
        node = spec.node(controller.id)
        yield on_node(
            scene,
            node,
            f"{warning}restart {spec.node_name(node.id)} without ZooKeeper and without the migration flag",
            (*file_commands(scene, node, NodeStage.KRAFT), shell.stop(node), shell.start(node)),
            f"sleep 3; {shell.is_up(node)} && {shell.until(_is_caught_up(scene, node.id), 120)}",
            "exit code 0: it runs, and follows or leads the quorum",
        )
    last = spec.controllers[-1]
    state = f"{{ {tools.records(last, log_dirs(scene, last))}; }} | grep ZK_MIGRATION_STATE_RECORD | tail -n 1"
    yield on_node(
        scene,
        last,
        "Check that the migration has ended",
        (tools.quorum(spec), tools.quorum(spec, "--replication")),
        f"{shell.until(tools.is_in_sync(spec))} && {state} | grep '\"zkMigrationState\":3'",
        "exit code 0: every replica is in sync, and the quorum's log says 3 (POST_MIGRATION). ZooKeeper is no longer used",
    )


def _is_caught_up(scene: Scene, node_id: int) -> str:
    """Its lag, as the leader tells it, is that of a moment."""
    table = tools.quiet(tools.quorum(scene.spec, "--replication"))
    return f"{table} | awk '$1 == {node_id} && $0 ~ /Leader|Follower/ && $4 < 20 {{ found = 1 }} END {{ exit !found }}'"
