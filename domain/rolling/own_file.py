"""Whether a properties file is the node's own: configuration management with a wrong inventory writes another one's."""

from collections.abc import Mapping

from domain.cluster import ClusterSpec, NodeSpec


def role_and_ids(properties: Mapping[str, str]) -> str:
    """Which node the file makes, in the file's own words."""
    found = [f"{key}={properties[key].strip()}" for key in ("process.roles", "node.id", "broker.id") if key in properties]
    return ", ".join(found) or "neither process.roles nor an id"


def whose_else(spec: ClusterSpec, node: NodeSpec, properties: Mapping[str, str]) -> str | None:
    """What in it is another node's, in words; `None` where it is this node's, as far as it says.

    An id may be left out, be made up by Kafka, or come from a config provider.
    """
    theirs = {path: other.id for other in spec.nodes for path in other.log_dirs if path not in node.log_dirs}
    named = properties.get("log.dirs") or properties.get("log.dir") or ""
    foreign = next((path.strip() for path in named.split(",") if path.strip() in theirs), None)
    if foreign is not None:
        return f"the log directory {foreign} of {spec.node_name(theirs[foreign])}"
    found = next((properties[key].strip() for key in ("node.id", "broker.id") if properties.get(key, "").strip()), "")
    if not found.isdecimal() or int(found) == node.id:
        return None
    roles = properties.get("process.roles", "").strip()
    return f"the id {found}{f' with process.roles={roles}' if roles else ''}, where its own is {node.id}"
