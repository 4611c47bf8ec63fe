"""Configuration management of nodes, as it is seen: what a migration has paused, what runs again, and what people are told."""

from collections.abc import Sequence
from enum import StrEnum
from shlex import join

from domain.cluster import ClusterSpec, NodeSpec
from domain.observed.observation import NodeView, Observation, PauseMark


class ConfigurationState(StrEnum):
    """Of one node's configuration management."""

    RUNS = "runs"
    """It may write files."""
    PAUSED = "paused"
    """Not by a migration: it stays so at the end."""
    PAUSED_BY_US = "paused-by-us"
    """By a migration, which resumes it at its end."""
    UNKNOWN = "unknown"


def by_hand(command: Sequence[str]) -> str:
    """A hook's command, as a person would type it."""
    return join(command)


def pause_of(node: NodeView) -> PauseMark | None:
    return node.disk.pause if node.disk is not None else None


def state_of(node: NodeView, spec: NodeSpec) -> ConfigurationState | None:
    """`None` where there is none to look at, and no migration has paused any."""
    mark = pause_of(node)
    if spec.driver.configuration_management is None:
        return ConfigurationState.UNKNOWN if mark is not None else None
    if node.is_configuration_paused is None:
        return ConfigurationState.UNKNOWN
    if not node.is_configuration_paused:
        return ConfigurationState.RUNS
    return ConfigurationState.PAUSED_BY_US if mark is not None and mark.is_ours else ConfigurationState.PAUSED


def marked_nodes(observation: Observation, spec: ClusterSpec) -> tuple[int, ...]:
    """Nodes of which a migration has remembered that they are paused, by it or before it."""
    return tuple(node.id for node in spec.nodes if pause_of(observation.node(node.id)) is not None)


def running_again(observation: Observation, spec: ClusterSpec) -> tuple[int, ...]:
    """Nodes that were proven to be paused, and are not seen to be so any more."""
    return tuple(
        node.id
        for node in spec.nodes
        if node.driver.configuration_management is not None
        and (mark := pause_of(observation.node(node.id))) is not None
        and mark.is_proven
        and observation.node(node.id).is_configuration_paused is not True
    )


def how_to_pause(observation: Observation, spec: ClusterSpec, node_ids: Sequence[int]) -> str:
    """By node: the command, and why it is not known whether it is paused."""
    return "; ".join(_how_to_pause(observation, spec, node_id) for node_id in node_ids)


def _how_to_pause(observation: Observation, spec: ClusterSpec, node_id: int) -> str:
    hook, name = spec.node(node_id).driver.configuration_management, spec.node_name(node_id)
    command = f" `{by_hand(hook.pause)}`" if hook is not None else ""
    why = next((f", {part.why}" for part in observation.unanswered if part.what == part_name(name)), "")
    return f"{name}:{command}{why}"


def part_name(node_name: str) -> str:
    """What it is called where it does not answer."""
    return f"configuration management of {node_name}"


NOTHING_PAUSED = (
    "Nothing is paused: the specification names no configuration_management. If something writes this file back (Puppet, Chef, "
    "a timer that runs Ansible), the migration waits with file-changed; then pause it yourself until the end."
)


NOTHING_WRITTEN = "Nothing is written here any more, so nothing is paused."


def planned(node: NodeSpec, *, is_written: bool) -> str:
    """What a plan says of it. `is_written`: this node's file will change."""
    if not is_written:
        return NOTHING_WRITTEN
    hook = node.driver.configuration_management
    if hook is None:
        return NOTHING_PAUSED
    return (
        f"Paused with `{by_hand(hook.pause)}` before this file first changes, proved with `{by_hand(hook.is_paused)}`, and "
        f"resumed at the end with `{by_hand(hook.resume)}`, unless it was paused before. From then on it writes what it has: "
        "give it the file of the last stage before you approve finalize."
    )
