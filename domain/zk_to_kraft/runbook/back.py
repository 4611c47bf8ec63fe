"""The manual way back to ZooKeeper, in the order in which `way_back` takes it."""

from collections.abc import Iterator
from shlex import quote

from domain.by_hand import kafka_tools as tools
from domain.by_hand import shell
from domain.cluster import ControllerSpec
from domain.questions import RunbookAction
from domain.zk_to_kraft.guards import controllers_to_start
from domain.zk_to_kraft.losses import topics_losing_ids
from domain.zk_to_kraft.modes import ControllerMode
from domain.zk_to_kraft.preview import (
    brokers_to_hybrid,
    brokers_to_zookeeper,
    flags_to_give_back,
    is_window_over,
)
from domain.zk_to_kraft.probed import probed
from domain.zk_to_kraft.runbook.actions import (
    Scene,
    give_flag_back,
    log_dirs,
    on_cluster,
    on_node,
    pause_actions,
    resume_actions,
    roll_broker,
    start_node,
)
from domain.zk_to_kraft.runbook.versions import lagging_states
from domain.zk_to_kraft.situation import Claim
from domain.zk_to_kraft.steps import NodeStage
from domain.zk_to_kraft.znode_repairs import repair_of


def back_actions(scene: Scene) -> tuple[RunbookAction, ...]:
    """From this very state to plain ZooKeeper."""
    s, spec = scene.situation, scene.spec
    rolled_to_hybrid, mended = brokers_to_hybrid(s), _mend(scene)
    return (
        *(give_flag_back(scene, c.id) for c in flags_to_give_back(s)),
        *_put_ids_back(scene),
        *pause_actions(scene),
        *(start_node(scene, spec.node(c.id), "brokers in KRaft mode need the quorum") for c in controllers_to_start(s)),
        *(mended if rolled_to_hybrid else ()),
        *(roll_broker(scene, b.id, NodeStage.MIGRATION) for b in rolled_to_hybrid),
        *(() if is_window_over(s) else _window(scene)),
        *(() if rolled_to_hybrid else mended),
        *(roll_broker(scene, b.id, NodeStage.ZOOKEEPER) for b in brokers_to_zookeeper(s)),
        _see_leaders(scene),
        *_wipe(scene),
        *resume_actions(scene),
    )


def _mend(scene: Scene) -> tuple[RunbookAction, ...]:
    """A broker with ZooKeeper reads, as it starts, much of what the copy could not read: it stops there as well."""
    return tuple(
        on_cluster(
            scene,
            f"Fix {suspect.what} in ZooKeeper before you restart any broker: {suspect.why}. A broker that starts may fail on "
            f"it, as the copy did. {repair_of(suspect.what)}",
            (tools.look_at(scene.spec, suspect.what),) if tools.is_plain(suspect.what) else (),
        )
        for suspect in probed(scene.observation).poisoned_znodes or ()
    )


def _put_ids_back(scene: Scene) -> tuple[RunbookAction, ...]:
    """Before any election in ZooKeeper: whoever is elected makes up an id for each topic that has none."""
    return tuple(
        on_cluster(
            scene,
            f"Restore the topic_id of topic {name} in /brokers/topics/{name} before any broker becomes controller: it would "
            "make up another one, and brokers refuse that. The id is in partition.metadata of the topic's directories",
            (tools.look_at(scene.spec, f"/brokers/topics/{name}"),),
            f"{tools.look_at(scene.spec, f'/brokers/topics/{name}')} | grep -q topic_id",
            "exit code 0: the znode has a topic_id",
        )
        for name in topics_losing_ids(scene.observation, scene.situation)
    )


def _window(scene: Scene) -> Iterator[RunbookAction]:
    """Between the first kill and the last znode the cluster has no controller: read these actions before you begin.

    Fenced before killed: whoever revives a controller must fail. Versions and epoch before claim: brokers pass over what a
    ZooKeeper controller says of a partition whose state has a smaller version than the partition epoch that they know, and one
    with a smaller epoch than the partitions' states refuses their elections (KAFKA-20488). `/migration` before `/controller`:
    its absence is what keeps a revived quorum from taking over.
    """
    is_claimed = scene.situation.claim is not Claim.ZOOKEEPER
    controllers = [c for c in scene.spec.controllers if _mode(scene, c.id) is not ControllerMode.ABSENT]
    if _has_copied(scene) and any(_mode(scene, c.id) is ControllerMode.MIGRATING for c in controllers):
        yield _drain(scene)
    yield from (_fence(scene, c) for c in controllers)
    yield from (_kill(scene, c) for c in controllers)
    if _has_copied(scene):
        yield from (_compare(scene, c) for c in controllers)
        yield from (_raise_versions(scene, c) for c in controllers)
    if is_claimed:
        yield _raise_epoch(scene)
    if scene.situation.has_migration_znode or controllers:
        yield _delete_migration(scene)
    if is_claimed:
        yield _delete_claim(scene)
    yield _see_zookeeper(scene)


def _has_copied(scene: Scene) -> bool:
    """Before the copy is complete nobody has acknowledged what only the quorum knows."""
    migration = scene.observation.zookeeper.migration if scene.observation.zookeeper is not None else None
    has_offset = migration is not None and migration.offset is not None and migration.offset > 0
    return has_offset and scene.situation.claim is Claim.KRAFT


def _mode(scene: Scene, controller_id: int) -> ControllerMode:
    return next(c.mode for c in scene.situation.controllers if c.id == controller_id)


def _drain(scene: Scene) -> RunbookAction:
    current = tools.is_copy_current(scene.spec, scene.policy.max_offset_distance)
    return on_cluster(
        scene,
        "Stop all changes to topics, configurations and ACLs now, and check that ZooKeeper has what the quorum has. From "
        "the first kill below until a broker is controller again no leader is elected: read up to that action before you "
        "begin",
        (),
        shell.until(current, int(scene.policy.drain_deadline.total_seconds())),
        "exit code 0: the offset in /migration is at the end of the quorum's log. If not, continue: a later action finds "
        "what is missing",
    )


def _fence(scene: Scene, controller: ControllerSpec) -> RunbookAction:
    moves = [
        f"[ ! -e {meta} ] || mv {meta} {quote(f'{path}/{shell.FENCED}')}"
        for path in log_dirs(scene, controller)
        for meta in (quote(f"{path}/meta.properties"),)
    ]
    return on_node(
        scene,
        controller,
        f"Make sure that {scene.spec.node_name(controller.id)} cannot start again; a running process continues",
        moves,
        " && ".join(f"[ ! -e {quote(f'{path}/meta.properties')} ]" for path in log_dirs(scene, controller)),
        "exit code 0: meta.properties is gone, and KRaft does not start without it",
    )


def _kill(scene: Scene, controller: ControllerSpec) -> RunbookAction:
    name = scene.spec.node_name(controller.id)
    gone = "exit code 0: the process is gone"
    return on_node(scene, controller, f"Kill {name}", (shell.stop(controller, "KILL"),), shell.is_gone(controller), gone)


def _compare(scene: Scene, controller: ControllerSpec) -> RunbookAction:
    name = scene.spec.node_name(controller.id)
    lift = "; ".join(
        f"mv {quote(f'{path}/{shell.FENCED}')} {quote(f'{path}/meta.properties')}" for path in log_dirs(scene, controller)
    )
    return on_node(
        scene,
        controller,
        f"Check that the log of {name} has nothing that ZooKeeper lacks",
        (),
        tools.has_nothing_beyond(scene.spec, controller, log_dirs(scene, controller)),
        "nothing is printed, exit code 0. What is printed would be lost: then lift the fences of all controllers "
        f"(here: {lift}), start them, wait ten seconds, and begin again with fence and kill",
    )


def _raise_versions(scene: Scene, controller: ControllerSpec) -> RunbookAction:
    changes = f"changes=$({lagging_states(scene.spec, controller, log_dirs(scene, controller))})"
    name = scene.spec.node_name(controller.id)
    return on_node(
        scene,
        controller,
        f"Raise the versions of partitions' states that lag behind the log of {name}: otherwise brokers do not obey a "
        "ZooKeeper controller there, and those partitions have no leader",
        (f'{changes} && {{ [ -z "$changes" ] || {tools.in_one_session(scene.spec, "changes")}; }}',),
        f'{changes} && [ -z "$changes" ]',
        "exit code 0: no state lags behind",
    )


def _raise_epoch(scene: Scene) -> RunbookAction:
    spec = scene.spec
    change = tools.zookeeper(spec, "set /controller_epoch $epoch")
    own = tools.quiet(tools.zookeeper(spec, "get /controller_epoch"))
    leave = "echo 'a broker is controller already, and its epoch is its own'"
    return on_cluster(
        scene,
        f"Raise /controller_epoch to the largest epoch that ZooKeeper knows{_known_epoch(scene)}",
        (f"epoch=$({tools.largest_epoch(spec)}) && if {tools.is_zookeepers(spec)}; then {leave}; else {change}; fi",),
        f'epoch=$({tools.largest_epoch(spec)}) && [ "$({own} | tail -n 1)" = "$epoch" ]',
        "exit code 0: no epoch is larger than that of /controller_epoch",
    )


def _known_epoch(scene: Scene) -> str:
    zookeeper = scene.observation.zookeeper
    if zookeeper is None or zookeeper.controller is None:
        return ""
    epochs = (zookeeper.controller_epoch, zookeeper.controller.kraft_epoch, scene.epoch)
    known = [epoch for epoch in epochs if epoch is not None]
    rest = "" if scene.epoch is not None else ", partitions' states not counted"
    return f" (at the time of this runbook: {max(known)}{rest})" if known else ""


def _delete_migration(scene: Scene) -> RunbookAction:
    absent = tools.is_absent(scene.spec, "migration")
    delete = tools.zookeeper(scene.spec, "delete /migration")
    title = "Delete /migration: otherwise the next migration deletes metadata because of it"
    return on_cluster(scene, title, (f"{{ {absent}; }} || {delete}",), absent, "exit code 0: there is no /migration")


def _delete_claim(scene: Scene) -> RunbookAction:
    spec = scene.spec
    delete = tools.zookeeper(spec, "delete /controller")
    return on_cluster(
        scene,
        "Delete KRaft's claim, so that a broker becomes controller",
        (f"if {tools.is_krafts(spec)}; then {delete}; fi",),
        f"! {{ {tools.is_krafts(spec)}; }}",
        "exit code 0: /controller is not persistent any more",
    )


def _see_zookeeper(scene: Scene) -> RunbookAction:
    seconds = int(scene.policy.election_deadline.total_seconds())
    return on_cluster(
        scene,
        "Check that a broker is controller. If none is after half a minute, restart any one broker",
        (),
        shell.until(tools.is_zookeepers(scene.spec), seconds),
        "exit code 0: /controller is ephemeral. (If it is persistent again, a controller has come back: kill it, and delete "
        "both)",
    )


def _see_leaders(scene: Scene) -> RunbookAction:
    """Where an epoch is too small no replica is missing, and partitions lack a leader all the same (KAFKA-20488)."""
    return on_cluster(
        scene,
        "Check that every partition has a leader. If not: in ZooKeeper set /controller_epoch to the largest "
        "controller_epoch of all partitions' states (/brokers/topics/…/partitions/…/state), delete /controller, and check "
        "again",
        (),
        shell.until(tools.is_available(scene.spec)),
        "exit code 0: no partition is without a leader",
    )


def _wipe(scene: Scene) -> Iterator[RunbookAction]:
    """Last of all: another migration would stumble over what is left."""
    spec = scene.spec
    for controller in spec.controllers:
        if _mode(scene, controller.id) is ControllerMode.ABSENT:
            continue
        file, name = quote(controller.properties_file), spec.node_name(controller.id)
        contents = [f"rm -rf -- {quote(path)}/* {quote(path)}/.[!.]*" for path in log_dirs(scene, controller)]
        gone = " && ".join(f'[ -z "$(ls -A {quote(path)})" ]' for path in log_dirs(scene, controller))
        aside = f"[ ! -e {file} ] || mv {file} {quote(f'{controller.properties_file}.removed')}"
        title = f"Remove the storage of {name}, and put its file aside (it may hold secrets)"
        yield on_node(
            scene, controller, title, (*contents, aside), f"{gone} && [ ! -e {file} ]", "exit code 0: all of it is gone"
        )
    for broker in spec.brokers:
        copies = [quote(f"{path}/__cluster_metadata-0") for path in log_dirs(scene, broker)]
        title = f"Remove the copy of the quorum's log from {spec.node_name(broker.id)}"
        gone = " && ".join(f"[ ! -e {copy} ]" for copy in copies)
        yield on_node(scene, broker, title, (f"rm -rf -- {' '.join(copies)}",), gone, "exit code 0: there is none")
