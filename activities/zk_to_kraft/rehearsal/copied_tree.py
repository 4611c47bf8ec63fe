"""The tree of the throw-away ZooKeeper: made ready for a copy, and told row by row for the comparison.

The old sessions are gone for it at once: what they own is deleted here instead of waiting until they expire.
"""

import base64
import json
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

from activities.comparison.capturing import crawl
from activities.observing.zookeeper_view import BROKER_IDS, CONTROLLER, MIGRATION
from activities.ports.zookeeper import CreateZnode, DeleteZnode, SetZnode, ZnodeChange, ZooKeeperTree, paths_below, present
from domain.errors import Permanent

MARKER = "/keeperless-rehearsal"
NO_CONFIGS = b'{"version":1,"config":{}}'
CONFIGS = "/config/"
STAND_IN = b'{"version":5,"endpoints":["PLAINTEXT://127.0.0.1:9"],"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"}}'


async def marked(tree: ZooKeeperTree) -> bytes:
    """The content of a new marker in this tree."""
    marker = secrets.token_hex(16).encode()
    await _commit(tree, [CreateZnode(MARKER, marker, like="/brokers")])
    return marker


async def ensure_marker(tree: ZooKeeperTree, marker: bytes) -> None:
    """Through the very address that the controller is going to use: what has no marker is no copy."""
    found = await tree.get(MARKER)
    if found is None or found.data != marker:
        raise Permanent("the controller's file leads to a ZooKeeper that is not the copy: nothing was started")


async def end_sessions(tree: ZooKeeperTree) -> None:
    """Delete what brokers' sessions own, and what a migration before has left. Sessions may expire meanwhile by themselves."""
    while True:
        there = await present(tree, [*await paths_below(tree, BROKER_IDS), CONTROLLER, MIGRATION])
        if not there or await tree.commit([DeleteZnode(path, znode.version) for path, znode in there.items()]):
            return


async def leave_out(tree: ZooKeeperTree, path: str) -> None:
    """Take a znode out of the copy. A topic goes with all that is below it; a user's configs go, and his clients stay."""
    znode = await tree.get(path)
    if znode is None or path.startswith(BROKER_IDS):
        return
    children = await tree.children(path)
    if children and path.startswith(CONFIGS):
        await _commit(tree, [SetZnode(path, NO_CONFIGS, znode.version)])
        return
    for below in await _deepest_first(tree, path):
        found = await tree.get(below)
        if found is not None:
            await _commit(tree, [DeleteZnode(below, found.version)])


async def _deepest_first(tree: ZooKeeperTree, path: str) -> list[str]:
    found = [await _deepest_first(tree, f"{path}/{name}") for name in await tree.children(path) or ()]
    return [*(each for below in found for each in below), path]


async def register(tree: ZooKeeperTree, brokers: Mapping[int, bytes]) -> None:
    """Their znodes, persistent: no session of anybody's is in the way."""
    if brokers and await tree.get(BROKER_IDS) is not None:
        await _commit(tree, [CreateZnode(f"{BROKER_IDS}/{id_}", data, like=BROKER_IDS) for id_, data in brokers.items()])


def stand_ins_for(left_out: Iterable[str]) -> dict[int, bytes]:
    """Brokers that assignments name and nobody is: left out of the trouble by standing in for them."""
    names = (path.removeprefix(f"{BROKER_IDS}/") for path in left_out if path.startswith(f"{BROKER_IDS}/"))
    return {int(name): STAND_IN for name in names if name.isdecimal()}


async def write_rows(tree: ZooKeeperTree, target: Path) -> None:
    """All that a comparison reads, as lines of `[path, base 64, mzxid]`. Holds secrets, as the copy does."""
    with target.open("w", encoding="utf-8") as file:
        async for chunk in crawl(tree):
            rows = [[each.path, base64.b64encode(each.data).decode(), each.mzxid] for each in chunk]
            file.write(json.dumps(rows) + "\n")


async def _commit(tree: ZooKeeperTree, changes: list[ZnodeChange]) -> None:
    if changes and not await tree.commit(changes):
        raise Permanent(f"the copied tree could not be changed: {', '.join(change.path for change in changes)[:300]}")
