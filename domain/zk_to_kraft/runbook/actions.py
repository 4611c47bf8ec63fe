"""The actions that both ways of a runbook are made of: what is done to one node, and how one sees that it worked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from shlex import quote

from domain.by_hand import kafka_tools as tools
from domain.by_hand import shell
from domain.cluster import ClusterSpec, ConfigurationManagement, NodeSpec, Role
from domain.configuration.properties import parse
from domain.observed.observation import Observation
from domain.questions import RunbookAction
from domain.redaction import is_shown
from domain.rolling.change import Files, Making
from domain.rolling.configuration_management import ConfigurationState, by_hand, state_of
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.preview import wanted_back
from domain.zk_to_kraft.situation import Situation
from domain.zk_to_kraft.steps import NodeStage
from domain.zk_to_kraft.wanted_file import is_in_first_stage


@dataclass(frozen=True)
class Scene:
    """What a runbook is written from. `epoch`: the largest controller epoch in partition states, where they were read."""

    observation: Observation
    situation: Situation
    spec: ClusterSpec
    policy: ZkToKraftPolicy
    files: Files
    epoch: int | None = None


def on_cluster(scene: Scene, title: str, commands: Sequence[str], check: str = "", expect: str = "") -> RunbookAction:
    """From the first broker's host, whose installation has the tools: or from any that has the same."""
    return _action(title, None, scene.spec.brokers[0].host, commands, check, expect)


def on_node(scene: Scene, node: NodeSpec, title: str, commands: Sequence[str], check: str, expect: str) -> RunbookAction:
    return _action(title, scene.spec.node_name(node.id), node.host, commands, check, expect)


def _action(title: str, node: str | None, host: str | None, commands: Sequence[str], check: str, expect: str) -> RunbookAction:
    told = f"# Expect: {expect}\n{check}" if check else ""
    return RunbookAction(title=title, node=node, host=host, commands=tuple(commands), check=told)


def roll_broker(scene: Scene, node_id: int, stage: NodeStage) -> RunbookAction:
    """Edit the file, stop, start. The check waits for the broker's registration and for every replica."""
    spec, node = scene.spec, scene.spec.node(node_id)
    name = spec.node_name(node_id)
    seen = tools.is_listed(spec, node_id) if stage is NodeStage.KRAFT else tools.is_registered(spec, node_id)
    return on_node(
        scene,
        node,
        f"Restart {name} {_IN_MODE[stage]}",
        (*file_commands(scene, node, stage), shell.stop(node), shell.start(node)),
        f"{shell.until(seen)} && {shell.until(tools.is_in_sync(spec), 300)}",
        f"it ends by itself, with exit code 0: {name} is registered, and every replica is in sync",
    )


_IN_MODE = {
    NodeStage.ZOOKEEPER: "in ZooKeeper mode, with its original file",
    NodeStage.MIGRATION: "in hybrid mode: with ZooKeeper, the controllers and the migration flag",
    NodeStage.KRAFT: "in KRaft mode: without ZooKeeper",
}


def file_commands(scene: Scene, node: NodeSpec, stage: NodeStage) -> tuple[str, ...]:
    """What makes a node's file what it must be at a stage; nothing where it is that already.

    An earlier action may have brought the file to stage `migration`: so the edit is right for that file as well.
    """
    file = scene.files.get(node.id)
    wanted = wanted_back(node.id, scene.spec, scene.files, stage)
    if file is None or file.current is None or wanted is None or wanted.text == file.current:
        return ()
    is_broker = scene.spec.role(node.id) is Role.BROKER
    if wanted.making is Making.ARCHIVE and file.original is not None:
        return (shell.restore(node, file.archive), *_edit(node, (file.original,), wanted.text))
    first = (shell.archive(node, file.archive),) if is_broker and is_in_first_stage(file.current, Role.BROKER) else ()
    hybrid = wanted_back(node.id, scene.spec, scene.files, NodeStage.MIGRATION) if is_broker else None
    bases = (file.current,) if hybrid is None else (file.current, hybrid.text)
    return (*first, *_edit(node, bases, wanted.text))


def _edit(node: NodeSpec, bases: Sequence[str], wanted: str) -> tuple[str, ...]:
    """One edit that leads from every one of the bases to what is wanted."""
    befores, after = [parse(base) for base in bases], parse(wanted)
    removed = dict.fromkeys(key for before in befores for key in before if key not in after)
    assigned = {key: value for key, value in after.items() if any(before.get(key) != value for before in befores)}
    asked = [key for key, value in assigned.items() if not is_shown(key, value)]
    return (shell.edit_file(node.properties_file, removed, assigned, asked),) if removed or assigned else ()


def log_dirs(scene: Scene, node: NodeSpec) -> tuple[str, ...]:
    """Where a node keeps data: what its file says, and what its specification says."""
    file = scene.files.get(node.id)
    said = parse(file.current) if file is not None and file.current is not None else {}
    shown = {key: value for key, value in said.items() if is_shown(key, value)}
    named = ",".join((shown.get("log.dirs") or shown.get("log.dir") or "", shown.get("metadata.log.dir", "")))
    own = [path.strip().rstrip("/") for path in named.split(",")]
    return tuple(dict.fromkeys(path for path in (*own, *node.log_dirs) if path))


def start_node(scene: Scene, node: NodeSpec, why: str) -> RunbookAction:
    """Start a node as it is, its fence lifted where there is one."""
    lift = [_lift_fence(path) for path in log_dirs(scene, node)]
    is_fenced = scene.spec.role(node.id) is Role.CONTROLLER
    return on_node(
        scene,
        node,
        f"Start {scene.spec.node_name(node.id)}: {why}",
        (*(lift if is_fenced else ()), shell.start(node)),
        f"sleep 3; {shell.is_up(node)}",
        "exit code 0: its process runs. If not, the end of its output says why",
    )


def _lift_fence(path: str) -> str:
    """An empty fence stands where there was no `meta.properties` to put aside."""
    fenced, meta = quote(f"{path}/{shell.FENCED}"), quote(f"{path}/meta.properties")
    return f"if [ -s {fenced} ] && [ ! -e {meta} ]; then mv {fenced} {meta}; else rm -f {fenced}; fi"


def give_flag_back(scene: Scene, node_id: int) -> RunbookAction:
    """The most urgent of all: a controller that becomes active without the flag ends the migration for good."""
    node = scene.spec.node(node_id)
    return on_node(
        scene,
        node,
        f"IMMEDIATELY: restore the migration flag of {scene.spec.node_name(node_id)}, and restart it",
        (*file_commands(scene, node, NodeStage.MIGRATION), shell.stop(node), shell.start(node)),
        f"{shell.until(tools.quiet(tools.quorum(scene.spec)) + ' | grep -q LeaderId')}; {shell.is_up(node)}",
        "exit code 0: the controller runs, and the quorum has a leader",
    )


def pause_actions(scene: Scene) -> tuple[RunbookAction, ...]:
    """Before any file changes: whoever would write it back is kept from it."""
    return tuple(
        on_node(
            scene,
            node,
            f"Pause configuration management of {scene.spec.node_name(node.id)}: otherwise it restores its own version of "
            "the file",
            (by_hand(hook.pause),),
            by_hand(hook.is_paused),
            "exit code 0: it is paused, and is not running at this moment",
        )
        for node, hook in _hooks(scene)
    )


def resume_actions(scene: Scene) -> tuple[RunbookAction, ...]:
    """The last ones: what was paused for this migration runs again. What somebody else had paused before stays so."""
    return tuple(
        on_node(
            scene,
            node,
            f"Give configuration management of {scene.spec.node_name(node.id)} the file as it is now, and resume it",
            (f"{by_hand(hook.resume)} && rm -f {quote(_pause_mark(node))}",),
            f"{by_hand(hook.is_paused)}; [ $? -eq 1 ]",
            "exit code 0: it is no longer paused",
        )
        for node, hook in _hooks(scene)
    )


def _hooks(scene: Scene) -> Iterator[tuple[NodeSpec, ConfigurationManagement]]:
    for node in scene.spec.nodes:
        hook = node.driver.configuration_management
        is_anothers = state_of(scene.observation.node(node.id), node) is ConfigurationState.PAUSED
        if hook is not None and not is_anothers:
            yield node, hook


def _pause_mark(node: NodeSpec) -> str:
    folder, _, name = node.properties_file.rpartition("/")
    return f"{folder}/.keeperless/{name}.paused"


def unknown_actions(scene: Scene) -> tuple[RunbookAction, ...]:
    """What did not answer, and how to find out by hand. Until that is known the rest may be incomplete."""
    return tuple(_find_out(scene, part.what) for part in scene.observation.unanswered)


def _find_out(scene: Scene, what: str) -> RunbookAction:
    spec = scene.spec
    node = next((n for n in spec.nodes if what.endswith(f" {spec.node_name(n.id)}")), None)
    title = f"UNKNOWN: {what} did not answer. Find out why, restore access to it, and ask for this runbook again"
    if node is None:
        return on_cluster(scene, title, (tools.zookeeper(spec, "get /controller"), tools.quorum(spec)))
    service = node.driver.service
    commands = (
        f'ps -p "$(cat {quote(service.pid_file)})" -o pid,stat,lstart,comm',
        f"tail -n 50 {quote(service.output_file)}",
        f"ls -l {quote(node.properties_file)} {' '.join(quote(f'{path}/meta.properties') for path in node.log_dirs)}",
        shell.key_names(node.properties_file),
    )
    return _action(title, spec.node_name(node.id), node.host, commands, "", "")
