"""What docker-compose.yml and the scripts that it mounts say, held to the code. Whether it runs: `make system-test`."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from activities.worker import MANNER
from playground.ensemble import ZooKeeperServer, found_servers, write_configuration
from playground.example import example_cluster
from playground.nodes import STOP_SECONDS, startable
from playground.temporal import SEARCH_ATTRIBUTES

REPOSITORY = Path(__file__).parent.parent.parent
COMPOSE = (REPOSITORY / "docker-compose.yml").read_text(encoding="utf-8")
VARIABLES = dict(re.findall(r"^(\w+)=(.*)$", (REPOSITORY / ".env").read_text(encoding="utf-8"), re.MULTILINE))
SECONDS = {"s": 1, "m": 60}


def test_every_variable_has_a_value() -> None:
    assert set(re.findall(r"\$\{(\w+)", COMPOSE)) <= set(VARIABLES)


def test_the_images_have_the_version_of_the_release() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert VARIABLES["KEEPERLESS_VERSION"] == project["version"]


def test_the_search_attributes_are_those_that_workflows_set() -> None:
    script = (REPOSITORY / "deploy" / "temporal" / "namespace.sh").read_text(encoding="utf-8")
    assert f"for name in {' '.join(SEARCH_ATTRIBUTES)}; do" in script


def test_docker_waits_longer_than_a_worker_takes_to_end() -> None:
    limits = [int(number) * SECONDS[unit] for number, unit in re.findall(r"stop_grace_period: (\d+)([sm])", COMPOSE)]
    assert min(limits) > MANNER.grace.total_seconds() + 10
    bounded = [limit for limit in limits if limit > MANNER.bounded_grace.total_seconds() + STOP_SECONDS + 10]
    assert len(bounded) == 2, "activities, and nodes"


def test_start_scripts_are_executable_so_that_images_do_not_source_them() -> None:
    assert (REPOSITORY / "deploy" / "postgresql" / "databases.sh").stat().st_mode & 0o111


def test_the_script_writes_every_secret_once_and_keeps_it(tmp_path: Path) -> None:
    script = tmp_path / "secrets.sh"
    script.write_bytes((REPOSITORY / "deploy" / "secrets.sh").read_bytes())
    directory = tmp_path / "secrets"

    def written() -> dict[str, str]:
        subprocess.run(["sh", str(script)], check=True, env={"PATH": os.environ["PATH"]})
        return {path.name: path.read_text(encoding="ascii") for path in directory.iterdir()}

    first = written()
    assert set(first) == set(re.findall(r"file: deploy/secrets/(\w+)", COMPOSE))
    assert directory.stat().st_mode & 0o077 == 0
    assert len(set(first.values())) == len(first)
    assert first["keeperless_password"] in first["keeperless_ledger_url"]
    assert written() == first


def test_zookeeper_servers_are_found_again_as_they_were_planned(tmp_path: Path) -> None:
    servers = tuple(ZooKeeperServer(n, 100 + n, 200 + n, 300 + n, tmp_path / f"zookeeper-{n}", "nodes") for n in (1, 2, 3))
    for server in servers:
        write_configuration(server, servers)
    assert found_servers(tmp_path) == servers


def test_controllers_start_again_only_when_they_are_formatted(tmp_path: Path) -> None:
    spec = example_cluster()
    controllers = tuple(c.model_copy(update={"log_dirs": (str(tmp_path / str(c.id)),)}) for c in spec.controllers)
    spec = spec.with_quorum_changed(controllers=controllers)
    brokers = [broker.id for broker in spec.brokers]
    assert list(startable(spec)) == brokers
    formatted, fenced, _ = (Path(c.log_dirs[0]) for c in controllers)
    for directory, name in ((formatted, "meta.properties"), (fenced, "meta.properties.fenced-by-keeperless")):
        directory.mkdir()
        (directory / name).touch()
    assert list(startable(spec)) == [*brokers, controllers[0].id]


@pytest.mark.parametrize("mounted", [True, False])
def test_a_setting_comes_from_a_mounted_secret(mounted: bool, tmp_path: Path) -> None:
    """In a process of its own: the directory is looked for when the settings' class is made."""
    (secrets := tmp_path / "secrets").mkdir()
    (secrets / "keeperless_ledger_url").write_text("sqlite:////from/a/secret.db\n", encoding="ascii")
    place = secrets if mounted else tmp_path / "nowhere"
    program = (
        "from pathlib import Path; from console import secrets_directory as s; "
        f"s.MOUNTED = Path({str(place)!r}); "
        "from api.settings import ApiSettings as A; from activities.settings import ActivitySettings as B; "
        "from ledger.program import LedgerSettings as C; print(*{each().ledger_url for each in (A, B, C)})"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    wanted = "sqlite:////from/a/secret.db" if mounted else f"sqlite:///{tmp_path}/.local/state/keeperless/ledger.db"
    assert done.stdout.strip() == wanted
