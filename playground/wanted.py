"""A cluster as its migration sees it, in the two parts that the API takes: what is registered, and what is wanted."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from domain.cluster import ClusterSpec
from domain.zk_to_kraft.wanted import ZkToKraftWanted

SPEC_FILE = "cluster.json"
WANTED_FILE = "wanted.json"


def before(spec: ClusterSpec) -> ClusterSpec:
    """As it is registered before its migration."""
    return spec.model_copy(update={"quorum": None})


def wanted_of(spec: ClusterSpec) -> ZkToKraftWanted:
    """What a migration of it wants."""
    return ZkToKraftWanted(
        controllers=spec.controllers,
        controller_listener=spec.controller_listener,
        controller_security_protocol=spec.controller_security_protocol,
    )


def wanted_json(spec: ClusterSpec) -> dict[str, Any]:
    """For the body of `POST /plans` or `POST /migrations`."""
    return wanted_of(spec).model_dump(mode="json")


def write_parts(spec: ClusterSpec, directory: Path) -> None:
    """As JSON, in two files."""
    write(before(spec), directory / SPEC_FILE)
    write(wanted_of(spec), directory / WANTED_FILE)


def read_parts(directory: Path) -> ClusterSpec:
    spec = ClusterSpec.model_validate_json((directory / SPEC_FILE).read_text(encoding="utf-8"))
    wanted = ZkToKraftWanted.model_validate_json((directory / WANTED_FILE).read_text(encoding="utf-8"))
    return spec.with_quorum(wanted.quorum)


def write(part: BaseModel, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(part.model_dump_json(indent=2, exclude={"quorum"}) + "\n", encoding="utf-8")
