"""The demo's cluster goes to KRaft in containers, and each of them is killed on the way. Run by `make system-test`."""

import subprocess
from typing import Any

import pytest

from tests.system.conftest import REPOSITORY, Service, Writer

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]

KILLS = (
    (1, "workflows"),
    (2, "api"),
    (3, "postgresql"),
    (4, "nodes"),
    (6, "temporal"),
    (7, "temporal-ui"),
    (8, "nodes"),
)
"""How many steps are done, and which container is killed then."""


@pytest.fixture(scope="module")
def migration(service: Service, cluster: dict[str, Any], wanted: dict[str, Any], writer: Writer) -> str:
    """Planned and begun as docs/calls.md has it."""
    asked = {"cluster": "demo", "kind": "zk-to-kraft", "wanted": wanted, "rehearse": True}
    plan = service.post("/plans", asked)["id"]
    service.await_answer(f"/plans/{plan}", lambda answer: answer["state"] != "running", "the plan")
    return str(service.post("/migrations", {"cluster": "demo", "kind": "zk-to-kraft", "plan_id": plan})["id"])


def approved_to_the_end(service: Service, migration: str) -> dict[str, Any]:
    """Approve the evidence that is shown, and again where it has changed: every node was restarted behind its back."""
    approved: set[str] = set()

    def is_at_the_end(found: Any) -> bool:
        for gate in found["gates"]:
            if gate["evidence_hash"] not in approved:
                service.approve(migration, gate)
                approved.add(gate["evidence_hash"])
        return bool(found["state"] == "succeeded")

    ended = service.await_answer(f"/migrations/{migration}", is_at_the_end, "the end")
    print("approved:", *approved)
    return dict(ended)


def test_no_container_has_more_rights_than_it_needs(service: Service) -> None:
    for name, container in service.containers().items():
        host, user = container.attrs["HostConfig"], container.attrs["Config"]["User"]
        assert host["ReadonlyRootfs"], name
        assert (host["CapDrop"], host["CapAdd"]) == (["ALL"], None), name
        assert "no-new-privileges:true" in host["SecurityOpt"], name
        assert user not in {"", "0", "root"}, name
        published = [binding["HostIp"] for each in (host["PortBindings"] or {}).values() for binding in each]
        assert set(published) <= {"127.0.0.1"}, name


def test_the_profile_demo_replaces_the_workers() -> None:
    def services(*options: str) -> set[str]:
        command = ["docker", "compose", *options, "config", "--services"]
        return set(subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout.split())

    plain, demo = services(), services("--profile", "demo")
    assert plain - demo == {"activities", "checks"}
    assert demo - plain == {"nodes"}


def test_a_migration_survives_the_kill_of_each_container(service: Service, migration: str, writer: Writer) -> None:
    path = f"/migrations/{migration}"
    for done, name in KILLS:
        answer = service.await_answer(path, lambda found, done=done: found["progress"]["done"] >= done, f"step {done}")
        print(f"{answer['progress']['done']} steps done, phase {answer['phase']}: killing {name}")
        service.kill(name)
    service.await_answer(path, lambda found: bool(found["gates"]), "the gate")
    service.down()
    service.up_with_a_newer_image()
    ended = approved_to_the_end(service, migration)
    report = writer.verify()
    print(
        "summary:",
        ended["summary"],
        "\nmessages:",
        {**report, "duplicated": len(report["duplicated"]), "sent_again": len(report["sent_again"])},
    )
    assert {node: count for node, count in ended["summary"]["restarts"].items() if node.startswith("broker")} == {
        f"broker-{number}": 2 for number in (1, 2, 3)
    }, "a kill makes no node restart once more"
    assert report["lost"] == []
    assert report["acknowledged"] > 1000
