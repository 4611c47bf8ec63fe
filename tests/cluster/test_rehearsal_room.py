"""The room of a rehearsal, by itself: who is in it reaches nobody, and a room that is none is not used."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from activities.zk_to_kraft.rehearsal.isolation import network_of_this_process
from activities.zk_to_kraft.rehearsal.messages import TOLD, Failed, NotIsolated, Order
from activities.zk_to_kraft.rehearsal.room import SOURCES, UnsharedRooms
from domain.rehearsal import RehearsalLimits

pytestmark = pytest.mark.cluster

ALONE = """
import socket, sys
from activities.zk_to_kraft.rehearsal.isolation import enter_alone
enter_alone(sys.argv[1])
own = socket.create_server(("127.0.0.1", 0))
socket.create_connection(own.getsockname(), 2)
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[2])), 2)
except ConnectionRefusedError:
    print("nobody there")
"""


def unshared(*arguments: str, namespaces: tuple[str, ...]) -> str:
    mapped = () if os.geteuid() == 0 else ("--map-root-user",)
    command = ("unshare", *namespaces, "--fork", *mapped, "--", sys.executable, *arguments)
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    return subprocess.run(command, input="", capture_output=True, text=True, env=environment, timeout=60, check=False).stdout


async def test_loopback_inside_is_another_than_loopback_outside() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    arguments = ("-c", ALONE, network_of_this_process(), str(port))
    told = await asyncio.to_thread(unshared, *arguments, namespaces=("--net", "--pid"))
    server.close()
    assert told == "nobody there\n"


@pytest.mark.parametrize(
    ("namespaces", "why"),
    [(("--pid",), "is in the network of the process that started it"), (("--net",), "is not the first one")],
)
def test_a_room_that_is_not_isolated_refuses_to_be_one(namespaces: tuple[str, ...], why: str, tmp_path: Path) -> None:
    arguments = ("-m", "activities.zk_to_kraft.rehearsal.program", str(tmp_path), network_of_this_process())
    told = TOLD.validate_json(unshared(*arguments, namespaces=namespaces))
    assert isinstance(told, NotIsolated)
    assert why in told.why


async def test_a_room_in_which_nothing_works_says_so_and_is_left(tmp_path: Path) -> None:
    place = tmp_path / "place" / "own"
    await asyncio.to_thread(place.mkdir, parents=True)
    await asyncio.to_thread((place / "secret").write_text, "of somebody")
    order = Order(
        seconds=60,
        java="/bin/false", libs="/no", connect="127.0.0.1:2181", listener="IN", release="3.9", newest_zxid=0, brokers={},
        limits=RehearsalLimits(),
    )  # fmt: skip
    async with UnsharedRooms().open(place) as room:
        await room.order(order)
        await room.told()
        told = await room.told()
    assert isinstance(told, Failed)
    assert "could not be formatted" in told.why
    assert not await asyncio.to_thread(lambda: list(tmp_path.iterdir()))
