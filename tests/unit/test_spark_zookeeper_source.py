"""Snapshot files as a source: the same rows as from the znodes one by one, however the file is cut; and what is refused."""

import pickle
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from domain.drift.digests import Digester
from domain.drift.records import KINDS
from domain.errors import Permanent
from playground.zookeeper_files import FileZnode, Trimmings, in_file_order, many_topics, snapshot_bytes, state_json, topic_json
from spark.codec import zookeeper_snapshot as codec
from spark.job import CheckJob, ZooKeeperSnapshot
from spark.sources.build import Recipe, build_source
from spark.sources.source import Rows, Source
from spark.sources.zookeeper_rows import rows_of
from spark.sources.zookeeper_snapshot import ZooKeeperSnapshotSource

DIGESTER = Digester(b"0123456789abcdef")
ALL = frozenset(KINDS)
ACL = b'{"version":1,"acls":[{"principal":"User:x","permissionType":"Allow","operation":"Read","host":"*"}]}'
ID = "AAAAAAAAAAAAAAAAAAAA{}Q"


@dataclass(frozen=True)
class Read:
    path: str
    data: bytes
    mzxid: int


def tree() -> dict[str, bytes | None]:
    """All sorts of znodes, with a topic whose name is `state`, and others that begin alike."""
    found: dict[str, bytes | None] = {
        "/admin/delete_topics/gone": b"",
        "/brokers/ids/1": b'{"endpoints":["PLAINTEXT://h:1"]}',
        "/brokers/topics/state/state": b"no partition",
        "/brokers/topics/deep/partitions/0/state/state": b"no partition",
        "/brokers/topics/deep/else/partitions/0/state": b"no partition",
        "/cluster/id": b'{"version":"1","id":"xyz"}',
        "/config/topics/orphan": b'{"version":1,"config":{"a":"b"}}',
        "/config/topics/gone": b'{"version":1,"config":{"a":"b"}}',
        "/config/topics/state": b'{"version":1,"config":{"retention.ms":"7"}}',
        "/config/users/a%20b/clients/<default>": b'{"version":1,"config":{"request_percentage":"5"}}',
        "/kafka-acl/Topic/a/b": ACL,
        "/latest_producer_id_block": b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}',
        "/other/brokers/topics/t": b"not ours",
    }
    for number, name in enumerate(("state", "gone", "t", "t-1", "deep", "no-states")):
        partitions = {n: [n % 3, 7, 5] for n in range(number * 5 + 1)}
        found[f"/brokers/topics/{name}"] = topic_json(ID.format(number), partitions)
        found[f"/brokers/topics/{name}/partitions"] = None
        for partition in partitions if name != "no-states" else ():
            found[f"/brokers/topics/{name}/partitions/{partition}/state"] = state_json(7, [7, 5], partition)
    return found


def below(chroot: str, data: dict[str, bytes | None]) -> dict[str, bytes | None]:
    return {chroot + path: content for path, content in data.items()}


def source(
    path: Path, znodes: Iterable[FileZnode], chroot: str = "", trimmings: Trimmings | None = None
) -> ZooKeeperSnapshotSource:
    file = path / "snapshot.4d"
    file.write_bytes(snapshot_bytes(znodes, trimmings))
    return ZooKeeperSnapshotSource(ZooKeeperSnapshot(path=file, chroot=chroot), DIGESTER)


def listed(rows: Iterable[Rows], *without: str) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    found = [(read.kind, row) for read in rows for row in read.batch.to_pylist()]
    return sorted(
        (kind, tuple((name, str(value)) for name, value in row.items() if name not in without)) for kind, row in found
    )


def all_rows(of: Source, parts: int = 1) -> list[Any]:
    return [rows for split in of.splits(parts) for rows in of.read(split, ALL)]


def one_by_one(znodes: Iterable[FileZnode]) -> list[Any]:
    read = [Read(znode.path, znode.data or b"", znode.mzxid) for znode in znodes]
    deleted_first = sorted(read, key=lambda znode: not znode.path.startswith("/admin/"))
    return listed(rows_of(deleted_first, ALL, DIGESTER), "segment", "batch")


@pytest.mark.parametrize("window", [2000, 4 * 2**20])
@pytest.mark.parametrize("parts", [1, 2, 7, 40])
def test_rows_are_those_of_the_znodes_however_the_file_is_cut(
    tmp_path: Path, parts: int, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codec.nodes_from, "__defaults__", (window,))
    znodes = list(in_file_order(tree()))
    read = source(tmp_path, znodes)
    found = all_rows(read, parts)
    assert listed(found, "segment", "batch") == one_by_one(znodes)
    splits = read.splits(parts)
    assert splits[0].begin > 0
    assert [split.begin for split in splits[1:]] == [split.end for split in splits[:-1]]
    assert read.not_read() == ()


def test_many_batches_are_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark.sources.zookeeper_rows.BATCH", 30)
    monkeypatch.setattr(codec.nodes_from, "__defaults__", (3000,))
    znodes = [*many_topics(40, 7)]
    read = source(tmp_path, znodes)
    found = all_rows(read, 3)
    assert len([rows for rows in found if rows.kind == "partition"]) > 5
    assert listed(found, "segment", "batch") == one_by_one(znodes)


def test_partitions_without_states_before_dual_write_and_in_it(tmp_path: Path) -> None:
    """As the job says, on whichever machine its source is made."""
    spec = source(tmp_path, in_file_order(tree())).spec
    key = tmp_path / "key"
    key.write_bytes(DIGESTER.key)
    job = CheckJob(id="x", left=spec, right=spec, out=tmp_path / "out", digest_key=f"file:{key}")
    for is_copy in (True, False):
        recipe = Recipe.of(job.model_copy(update={"is_before_dual_write": is_copy}), spec)
        found = [row for rows in all_rows(recipe.build()) if rows.kind == "partition" for row in rows.batch.to_pylist()]
        without = [row for row in found if row["leader"] in (None, row["replicas"][0]) and row["isr"] != [5, 7]]
        assert len(without) == 26
        assert {row["leader"] is None for row in without} == {not is_copy}


def test_where_rows_were_read(tmp_path: Path) -> None:
    znodes = list(in_file_order(tree()))
    read = source(tmp_path, znodes)
    content = read.spec.path.read_bytes()
    by_mzxid = {znode.mzxid: znode for znode in znodes}
    for rows in all_rows(read, 3):
        for row in rows.batch.to_pylist():
            assert row["segment"] == "snapshot.4d"
            assert content[row["batch"] :].startswith(by_mzxid[row["at"]].stored())


def test_below_a_chroot(tmp_path: Path) -> None:
    both = {**tree(), **below("/kafka/east", {"/brokers/topics/mine": topic_json(ID.format(9), {0: [1]})})}
    read = source(tmp_path, in_file_order(both), "/kafka/east")
    assert [rows.batch.to_pylist()[0].get("topic") for rows in all_rows(read) if rows.kind == "topic"] == ["mine"]
    whole = list(in_file_order(below("/kafka", tree())))
    found = listed(all_rows(source(tmp_path, whole, "/kafka"), 4), "segment", "batch")
    unrooted = [replace(znode, path=znode.path.removeprefix("/kafka")) for znode in whole]
    assert found == one_by_one(unrooted)
    with pytest.raises(Permanent, match="chroot"):
        source(tmp_path, whole, "/kafkaesque").not_read()


def test_only_the_kinds_that_are_asked_for(tmp_path: Path) -> None:
    read = source(tmp_path, in_file_order(tree()))
    (split,) = read.splits(1)
    assert {rows.kind for rows in read.read(split, frozenset({"topic", "acl"}))} == {"topic", "acl"}
    assert list(read.read(split, frozenset())) == []


def test_a_task_reads_its_split_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It makes the source anew from the description, and has of the rest of the file what its split brings."""
    read = source(tmp_path, in_file_order(tree()))
    splits = pickle.loads(pickle.dumps(read.splits(5)))  # noqa: S301 - our own
    expected = listed(rows for split in splits for rows in read.read(split, ALL))
    monkeypatch.setattr("spark.sources.zookeeper_snapshot.surveyed", None)
    found = [rows for split in splits for rows in build_source(read.spec, DIGESTER, b"secret").read(split, ALL)]
    assert listed(found) == expected
    assert "secret" not in repr(build_source(read.spec, DIGESTER, b"secret"))


# ---- digests ----


def test_another_digest_is_refused_with_both(tmp_path: Path) -> None:
    znodes = list(in_file_order(tree()))
    right = sum(znode.digest() for znode in znodes)
    read = source(tmp_path, znodes, trimmings=Trimmings(digest=right + 1))
    for ask in (read.not_read, lambda: read.splits(2)):
        with pytest.raises(Permanent, match=f"{right:#x}.*{right + 1:#x}"):
            ask()


def test_a_changed_stat_changes_the_digest(tmp_path: Path) -> None:
    znodes = list(in_file_order(tree()))
    right = sum(znode.digest() for znode in znodes)
    for name in ("czxid", "mzxid", "pzxid", "ctime", "mtime", "version", "cversion", "aversion", "owner"):
        changed = [replace(znode, **{name: 55555}) if znode.path == "/cluster/id" else znode for znode in znodes]
        with pytest.raises(Permanent, match="digest"):
            source(tmp_path, changed, trimmings=Trimmings(digest=right)).not_read()


@pytest.mark.parametrize("trimmings", [Trimmings(has_digest=False), Trimmings(digest_zxid=0, digest=0)])
def test_without_a_digest_it_is_told(tmp_path: Path, trimmings: Trimmings) -> None:
    read = source(tmp_path, in_file_order(tree()), trimmings=trimmings)
    (told,) = read.not_read()
    assert "digest" in told
    assert all_rows(read)


# ---- what cannot be read ----


def test_the_state_of_a_partition_that_there_cannot_be_is_of_no_other(tmp_path: Path) -> None:
    odd = {f"/brokers/topics/a/partitions/{2**32}/state": state_json(9, [9])}
    topics = {f"/brokers/topics/{name}": topic_json(ID.format(n), {0: [1]}) for n, name in enumerate("abc")}
    states = {f"/brokers/topics/{name}/partitions/0/state": state_json(1, [1]) for name in "abc"}
    found = all_rows(source(tmp_path, in_file_order({**topics, **odd, **states})))
    assert [row["leader"] for rows in found if rows.kind == "partition" for row in rows.batch.to_pylist()] == [1, 1, 1]


def test_topics_without_an_id_are_named_before_reading_and_left_out(tmp_path: Path) -> None:
    old = {f"/brokers/topics/old-{n}": b'{"version":2,"partitions":{"0":[1]}}' for n in range(30)}
    read = source(tmp_path, in_file_order({**tree(), **old}))
    told = read.not_read()
    assert told[0].startswith("/brokers/topics/old-0 has no topic_id")
    assert told[-1] == "… and 10 more like these"
    topics = {row["topic"] for rows in all_rows(read) if rows.kind == "topic" for row in rows.batch.to_pylist()}
    assert topics == {"state", "t", "t-1", "deep", "no-states"}


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/brokers/topics/t", b'{"topic_id":"short","partitions":{}}'),
        ("/brokers/topics/t/partitions/0/state", b"broken"),
        ("/config/brokers/1", b"broken"),
        ("/brokers/topics/t/partitions/0/state", b"null"),
        ("/config/topics/t", b'{"version":1,"config":{"x":"\\ud800"}}'),
        ("/latest_producer_id_block", b'{"block_start":"0","block_end":"9223372036854775807"}'),
        ("/brokers/ids/1", b'{"endpoints":5}'),
        ("/brokers/topics/t", b'{"version":3,"topic_id":"%s","partitions":{"3000000000":[1]}}' % ID.format(1).encode()),
    ],
)
def test_a_znode_that_cannot_be_read_stops_the_reading_with_its_place(tmp_path: Path, path: str, data: bytes) -> None:
    znodes = list(in_file_order(below("/k", {**tree(), path: data})))
    read = source(tmp_path, znodes, "/k")
    place = read.spec.path.read_bytes().index(next(znode for znode in znodes if znode.path == f"/k{path}").stored())
    with pytest.raises(Permanent, match=f"byte {place}: /k{path} "):
        all_rows(read)


def test_a_cut_in_the_wrong_place_is_refused(tmp_path: Path) -> None:
    read = source(tmp_path, in_file_order(tree()))
    (split,) = read.splits(1)
    for wrong in (replace(split, end=split.end - 1), replace(split, begin=split.begin + 1)):
        with pytest.raises(Permanent, match="damaged"):
            list(read.read(wrong, ALL))


def test_a_damaged_file_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    read = source(tmp_path, in_file_order(tree()))
    content = bytearray(read.spec.path.read_bytes())
    content[len(content) // 2] ^= 1
    read.spec.path.write_bytes(content)
    with pytest.raises(Permanent, match="checksum"):
        read.splits(2)
