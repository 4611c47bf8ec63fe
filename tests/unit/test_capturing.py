"""A live tree, captured: all that rows are made of and nothing else, in their order, in bounded pieces."""

from collections.abc import Mapping

import pytest

from activities.comparison import capturing
from activities.comparison.capturing import crawl
from activities.ports.zookeeper import CapturedZnode, Znode
from domain.drift.digests import Digester
from domain.drift.records import KINDS
from domain.drift.znode_paths import paths_of
from domain.errors import Transient
from playground.fakes.faults import Faults
from playground.fakes.tree import FakeTree
from playground.zookeeper_files import state_json, topic_json
from spark.sources.zookeeper_rows import rows_of

DIGESTER = Digester(b"0123456789abcdef")
ID = "AAAAAAAAAAAAAAAAAAAA{}Q"

WANTED = {
    "/admin/delete_topics/gone": b"",
    "/brokers/ids/1": b'{"endpoints":["PLAINTEXT://h:1"]}',
    "/brokers/topics/a": topic_json(ID.format(0), {0: [1], 1: [2]}),
    "/brokers/topics/a/partitions/0/state": state_json(1, [1]),
    "/brokers/topics/a/partitions/1/state": state_json(2, [2]),
    "/brokers/topics/broken": b"broken",
    "/brokers/topics/gone": topic_json(ID.format(1), {0: [1]}),
    "/brokers/topics/gone/partitions/0/state": state_json(1, [1]),
    "/cluster/id": b'{"version":"1","id":"xyz"}',
    "/config/brokers/<default>": b'{"version":1,"config":{"a":"b"}}',
    "/config/clients/c": b'{"version":1,"config":{"request_percentage":"1"}}',
    "/config/ips/10.0.0.1": b'{"version":1,"config":{"connection_creation_rate":"1"}}',
    "/config/topics/a": b'{"version":1,"config":{"a":"b"}}',
    "/config/users/u": b'{"version":1,"config":{"request_percentage":"1"}}',
    "/config/users/u/clients/c": b'{"version":1,"config":{"request_percentage":"1"}}',
    "/config/users/v": b"",
    "/delegation_token/tokens/t": b"",
    "/kafka-acl/Topic/a": b"",
    "/kafka-acl/Topic/a/b": b'{"version":1,"acls":[]}',
    "/kafka-acl-extended/prefixed/Group/g": b'{"version":1,"acls":[]}',
    "/latest_producer_id_block": b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}',
}
ELSEWHERE = {
    "/brokers/topics/a/partitions/7/state": state_json(1, [1]),
    "/brokers/topics/a/else": b"",
    "/config/changes/1": b"",
    "/consumers/g/offsets/t/0": b"5",
    "/controller": b"{}",
}
FOLDERS = {"/config/users/u/clients", "/kafka-acl/Topic", "/kafka-acl-extended/prefixed/Group"}
"""Read on the way: they say nothing."""


def tree(data: Mapping[str, bytes], faults: Faults | None = None) -> FakeTree:
    znodes = {path: Znode(content, 0, 0, None, number) for number, (path, content) in enumerate(data.items())}
    return FakeTree(znodes, faults)


async def crawled(of: FakeTree) -> list[tuple[CapturedZnode, ...]]:
    return [chunk async for chunk in crawl(of)]


async def test_all_that_is_wanted_and_nothing_else() -> None:
    both = WANTED | ELSEWHERE
    found = [znode for chunk in await crawled(tree(both)) for znode in chunk]
    assert {znode.path for znode in found} - FOLDERS == WANTED.keys()
    assert len(found) == len({znode.path for znode in found})
    for znode in found:
        if znode.path in both:
            assert (znode.data, znode.mzxid) == (both[znode.path], list(both).index(znode.path))


@pytest.mark.parametrize("chunk", [1, 2, 3, 2000])
async def test_pieces_are_bounded_and_rows_the_same(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capturing, "CHUNK", chunk)
    monkeypatch.setattr(capturing._parts, "__defaults__", (chunk,))
    found = await crawled(tree(WANTED))
    assert max(len(part) for part in found) <= chunk + 4
    rows = list(rows_of((znode for part in found for znode in part), frozenset(KINDS), DIGESTER))
    counts = {read.kind: read.batch.num_rows for read in rows if read.batch.num_rows}
    told = {"topic": 1, "partition": 2, "topic-config": 1, "broker-config": 1, "quota": 4, "registration": 1}
    assert counts == told | {"claim": 1, "producer-ids": 1}


async def test_an_empty_tree() -> None:
    assert [part for part in await crawled(tree({})) if part] == []


async def test_every_row_comes_from_the_znodes_that_are_told_of_it() -> None:
    found = [znode for part in await crawled(tree(WANTED)) for znode in part]
    rows = list(rows_of(found, frozenset(KINDS), DIGESTER))
    topics = {row["topic_id"]: row["topic"] for read in rows if read.kind == "topic" for row in read.batch.to_pylist()}
    for read in rows:
        for row in read.batch.to_pylist():
            key = [row[field.name] for field in KINDS[read.kind].keys]
            paths = paths_of(read.kind, key, topics)
            told = [znode for znode in found if any(_is_told(znode.path, path) for path in paths)]
            known = [r for new in rows_of(told, frozenset({read.kind}), DIGESTER) for r in new.batch.to_pylist()]
            assert row in known, (read.kind, key)


def _is_told(path: str, told: str) -> bool:
    """A path that ends with `/` means all that lie right below it."""
    return path.rpartition("/")[0] == told[:-1] if told.endswith("/") else path == told


async def test_a_silent_ensemble_is_transient() -> None:
    faults = Faults()
    fake = tree(WANTED, faults)
    faults.silent_zookeeper = True
    with pytest.raises(Transient):
        await crawled(fake)
