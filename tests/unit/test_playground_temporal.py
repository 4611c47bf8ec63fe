"""Which `temporal` is used, in which order."""

import sysconfig
from pathlib import Path

import pytest

from domain.errors import Permanent
from playground.temporal import TemporalPorts, TemporalServer, temporal_program


def a_program(folder: Path) -> Path:
    folder.mkdir()
    program = folder / "temporal"
    program.touch(mode=0o755)
    return program


def test_the_explicit_path_comes_first(tmp_path: Path) -> None:
    chosen, on_path = a_program(tmp_path / "chosen"), a_program(tmp_path / "path")
    assert temporal_program({"TEMPORAL_CLI_PATH": str(chosen), "PATH": str(on_path.parent)}) == chosen


def test_an_explicit_path_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    on_path = a_program(tmp_path / "path")
    with pytest.raises(Permanent, match="correct it or unset it"):
        temporal_program({"TEMPORAL_CLI_PATH": str(tmp_path / "nothing"), "PATH": str(on_path.parent)})


def test_then_path(tmp_path: Path) -> None:
    on_path = a_program(tmp_path / "path")
    assert temporal_program({"PATH": str(on_path.parent)}) == on_path


def test_then_the_package_in_this_environment(tmp_path: Path) -> None:
    assert temporal_program({"PATH": str(tmp_path)}) == Path(sysconfig.get_path("scripts")) / "temporal"


def test_every_port_and_attribute_is_given(tmp_path: Path) -> None:
    command = TemporalServer(tmp_path, TemporalPorts(1, 2, 3, 4), Path("/temporal")).launch.command
    options = dict(zip(command[3::2], command[4::2], strict=True))
    assert [options[name] for name in ("--port", "--ui-port", "--http-port", "--metrics-port")] == ["1", "2", "3", "4"]
    attributes = [value for name, value in zip(command[3::2], command[4::2], strict=True) if name == "--search-attribute"]
    assert attributes == [f"{name}=Keyword" for name in ("Cluster", "MigrationKind", "Phase", "MigrationId", "Waiting")]
