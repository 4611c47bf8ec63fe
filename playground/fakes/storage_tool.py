"""`kafka.tools.StorageTool format` on a simulated machine (3.9.2: its arguments, files and exit codes)."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence

import javaproperties

from activities.ports.nodes import Completed
from playground.fakes.machine import FakeMachine, text_file


def format_storage(machine: FakeMachine, arguments: Sequence[str]) -> Completed:
    """Writes `meta.properties` and `bootstrap.checkpoint` into every log directory of the given properties file."""
    options = _parser().parse_args(arguments[arguments.index("format") + 1 :])
    file = machine.read(options.config)
    if file is None:
        return Completed(1, "", f"{options.config} (No such file or directory)\n")
    properties = javaproperties.loads(file.content.decode("latin-1"))
    directories = (properties.get("log.dirs") or "").split(",")
    formatted = [d for d in directories if machine.read(f"{d}/meta.properties") is not None]
    if formatted and not options.ignore_formatted:
        return Completed(1, "", f"Log directory {formatted[0]} is already formatted.\n")
    for directory in directories:
        if directory not in formatted:
            meta = {"version": "1", "cluster.id": options.cluster_id, "directory.id": f"directory-of-{directory}"}
            write_meta(machine, directory, meta, int(properties["node.id"] or ""))
            machine.write(f"{directory}/bootstrap.checkpoint", text_file(""))
    return Completed(0, f"Formatting {', '.join(directories)} with release {options.release_version}.\n", "")


def write_meta(machine: FakeMachine, directory: str, meta: Mapping[str, str | None], node_id: int) -> None:
    """Version 1 names the node `node.id`; version 0, of brokers in ZooKeeper mode, `broker.id`."""
    key = "broker.id" if meta["version"] == "0" else "node.id"
    lines = [f"{name}={value}" for name, value in {**meta, key: node_id}.items()]
    machine.write(f"{directory}/meta.properties", text_file("\n".join(lines) + "\n", 0o644))


def _parser() -> ArgumentParser:
    parser = ArgumentParser()
    parser.add_argument("--cluster-id", "-t", required=True)
    parser.add_argument("--config", "-c", required=True)
    parser.add_argument("--ignore-formatted", "-g", action="store_true")
    parser.add_argument("--release-version", "-r", default="3.9")
    return parser
