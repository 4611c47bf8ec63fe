"""Migrations without their past: the workflow is gone, or there never was one. What is seen is enough to go on, or back."""

import asyncio

import pytest
from temporalio.client import Client

from domain.configuration.properties import ENCODING, parse
from domain.contracts import workflow_id
from domain.errors import Transient
from playground.processes import is_alive, wait_until
from playground.rig import FileSeen, Rig
from playground.waypoints import ONE_KRAFT, rolled

pytestmark = [pytest.mark.cluster, pytest.mark.chaos, pytest.mark.timeout(900)]


def lose_the_workflow_in_the_middle_of_a_roll(rig: Rig) -> None:
    """A person terminates it in Temporal's UI, just when a broker is between its two processes."""
    migration_id = rig.migrate()
    pids = {broker.id: rig.pid(broker.id) for broker in rig.cluster.spec.brokers}
    rig.await_event(migration_id, lambda _: bool(rolled(rig.seen, "broker", "migration")), "a broker's roll")
    (name,) = rolled(rig.seen, "broker", "migration")
    wait_until(lambda: not is_alive(pids[int(name.rpartition("-")[2])]), f"{name} goes down", 60, every_seconds=0.02)
    asyncio.run(terminate(rig.temporal.address, workflow_id(rig.cluster.spec.cluster_id)))
    print(f"--- terminated while {name} was between its two processes")


async def terminate(address: str, name: str) -> None:
    client = await Client.connect(address)
    await client.get_workflow_handle(name).terminate("a test wants to see what is left")


def adopt(rig: Rig, *, hold: bool = False) -> str:
    """Start another migration on what is there, as soon as the first one is known to be over."""
    started: list[str] = []

    def is_accepted() -> bool:
        try:
            started.append(rig.migrate(hold=hold))
        except Transient as error:
            print(f"--- not yet: {error}")
            return False
        return True

    wait_until(is_accepted, "another migration is accepted", 90, every_seconds=2)
    return started[0]


def test_a_migration_whose_workflow_is_gone_is_led_forward(rig: Rig) -> None:
    before = rig.snapshot().content
    rig.register()
    lose_the_workflow_in_the_middle_of_a_roll(rig)
    ended = rig.complete(adopt(rig))
    assert (ended["state"], ended["phase"]) == ("succeeded", "KRAFT")
    assert rig.snapshot().content == before
    assert rig.verify().lost == frozenset()


def test_a_migration_whose_workflow_is_gone_is_led_back(rig: Rig) -> None:
    before = rig.snapshot()
    rig.register()
    lose_the_workflow_in_the_middle_of_a_roll(rig)
    migration_id = adopt(rig, hold=True)
    rig.await_migration(migration_id, lambda m: m["state"] == "held", "the hold that it was started with")
    rig.rollback(migration_id)
    assert rig.await_end(migration_id)["state"] == "reverted"
    assert rig.differences(before) == []
    assert rig.verify().lost == frozenset()


def test_a_migration_begun_by_hand_goes_back_with_the_inverse_edit_that_somebody_accepts(rig: Rig) -> None:
    before = rig.snapshot()
    rig.register()
    rig.by_hand.add_controllers()
    for broker in (1, 2):
        rig.by_hand.to_hybrid(broker)
    migration_id = rig.migrate(hold=True)
    rig.await_migration(migration_id, lambda m: m["state"] == "held", "the hold that it was started with")
    preview = rig.preview(migration_id)
    losses = {loss["name"] for loss in preview["losses"]}
    assert losses == {"original-of-broker-1", "original-of-broker-2"} | {
        f"storage-of-controller-{n}" for n in (3001, 3002, 3003)
    }
    how = {file["node"]: file["how"] for file in preview["files"]}
    assert (how["broker-1"], how["broker-2"]) == ("inverse-edit", "inverse-edit")

    rig.rollback(migration_id, accept_loss=sorted(losses))
    assert rig.await_end(migration_id)["state"] == "reverted"
    assert {path: meaning(file) for path, file in rig.files().items()} == {p: meaning(f) for p, f in before.files.items()}
    assert rig.remains_of_kraft() == []
    assert rig.by_hand.is_controller_of_zookeeper()
    ended = rig.complete(rig.migrate())
    assert (ended["state"], ended["phase"]) == ("succeeded", "KRAFT")
    assert rig.snapshot().content == before.content
    assert rig.verify().lost == frozenset()


def test_a_migration_begun_by_hand_is_led_forward(rig: Rig) -> None:
    before = rig.snapshot().content
    rig.register()
    rig.by_hand.add_controllers()
    rig.by_hand.to_hybrid(1)
    migration_id = rig.migrate()
    rig.await_event(migration_id, lambda _: ONE_KRAFT.is_reached(rig.seen), "the first broker in KRaft mode")
    assert rig.complete(migration_id)["state"] == "succeeded"
    assert rig.snapshot().content == before
    assert rig.verify().lost == frozenset()


def meaning(file: FileSeen) -> tuple[dict[str, str], int, int, int]:
    """What Java reads of it, and whose it is: an inverse edit does not promise more."""
    return parse(file.content.decode(ENCODING)), file.mode, file.uid, file.gid
