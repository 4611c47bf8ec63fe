"""Snapshot files, from their bytes to columns, against a writer that shares nothing with the reader."""

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.errors import Permanent
from playground.zookeeper_files import FileZnode, Trimmings, in_file_order, many_topics, snapshot_bytes
from spark.codec.zookeeper_digest import Digest, digest_of
from spark.codec.zookeeper_snapshot import STAT, Nodes, boundary_from, ensure_intact, frame_of, nodes_from, opened

ODD = {
    "/a": b"",
    "/a/b": None,
    "/a/b/東京": "wörld".encode(),
    "/a/state": b"/" * 300,
    "/a/looks": b"\0\0\0\x02/x\0\0\0\0" + bytes(60 + 8) + b"\0\0\0\x01/\0\0\0\0",
    "/" + "long" * 200: b"x" * 5000,
    "/zookeeper/quota/a/zookeeper_limits": b"count=1",
}
"""Paths and data that look like other nodes, or are longer than others."""

names = st.text(st.sampled_from("ab/é東\0/"), max_size=4)
trees = st.dictionaries(
    names.map(lambda name: "/" + "/".join(part for part in name.split("/") if part)).filter(lambda path: len(path) > 1),
    st.none() | st.binary(max_size=40) | st.just(b"\0\0\0\x01/\0\0\0\0" * 12),
    max_size=30,
)


def every_node(content: bytes, size: int = 4096) -> list[Nodes]:
    frame = frame_of(content, "file")
    parts, at = [], frame.begin
    while at < frame.end:
        parts.append(nodes_from(content, "file", at, frame.end, size))
        at = parts[-1].stop
    assert at == frame.end
    return parts


def listed(parts: list[Nodes]) -> list[tuple[str, bytes, int, int]]:
    columns = [(n.paths(), n.contents(), n.modified_zxids().tolist(), n.begin.tolist()) for n in parts]
    return [(p.decode(), d, z, b) for part in columns for p, d, z, b in zip(*part, strict=True)]


def written(znodes: list[FileZnode]) -> list[tuple[str, bytes, int]]:
    return [(znode.path, znode.data or b"", znode.mzxid) for znode in znodes]


@settings(deadline=None)
@given(trees, st.sampled_from([256, 1000, 4096]))
def test_what_is_written_is_read(tree: dict[str, bytes | None], size: int) -> None:
    znodes = list(in_file_order(tree))
    content = snapshot_bytes(znodes)
    parts = every_node(content, size)
    assert [found[:3] for found in listed(parts)] == written(znodes)
    digest = sum((digest_of(part) for part in parts), Digest())
    assert digest.value == sum(znode.digest() for znode in znodes)
    assert digest.count == len(znodes)


def test_odd_nodes_and_where_they_lie() -> None:
    znodes = list(in_file_order(ODD))
    content = snapshot_bytes(znodes)
    for path, data, _, begin in listed(every_node(content)):
        stored = struct.pack(">i", len(path.encode())) + path.encode()
        assert content[begin : begin + len(stored)] == stored
        assert data in content[begin:]
    frame = frame_of(content, "file")
    assert frame.digest is not None
    assert (frame.digest.zxid, frame.digest.version, frame.last_zxid) == (77, 2, 77)
    ensure_intact(content, "file", frame)


def test_a_window_that_ends_anywhere_loses_nothing() -> None:
    znodes = list(in_file_order(ODD))
    content = snapshot_bytes(znodes)
    for size in range(90, 6000, 37):
        assert [found[:3] for found in listed(every_node(content, size))] == written(znodes)


@pytest.mark.parametrize("has_digest", [True, False])
@pytest.mark.parametrize("has_last", [True, False])
@pytest.mark.parametrize("sessions", [{}, {7: 1, 8: 2}])
def test_files_of_older_and_newer_servers(has_digest: bool, has_last: bool, sessions: dict[int, int]) -> None:
    content = snapshot_bytes(
        in_file_order({"/a": b"1"}), Trimmings(sessions=sessions, has_digest=has_digest, has_last_zxid=has_last)
    )
    frame = frame_of(content, "file")
    assert (frame.digest is not None, frame.last_zxid is not None) == (has_digest, has_last)
    ensure_intact(content, "file", frame)
    assert [found[0] for found in listed(every_node(content))][-1] == "/zookeeper/quota"


def test_a_server_with_ascii_for_its_charset_digests_question_marks() -> None:
    znodes = list(in_file_order({"/kafka-acl/Topic/é東": b"1"}))
    asked = [replace(znode, path=znode.path.replace("é東", "??")) for znode in znodes]
    digest = sum((digest_of(part) for part in every_node(snapshot_bytes(znodes))), Digest())
    assert digest.as_ascii == sum(znode.digest() for znode in asked) != digest.value
    assert digest.equals(digest.value)
    assert digest.equals(digest.as_ascii - 2**64)
    assert not digest.equals(digest.value + 1)


def test_every_flipped_byte_is_found() -> None:
    content = bytearray(snapshot_bytes(in_file_order({"/a": b"1"})))
    for at in range(len(content)):
        content[at] ^= 0x41
        with pytest.raises(Permanent):
            ensure_intact(bytes(content), "file", frame_of(bytes(content), "file"))
        content[at] ^= 0x41


def test_every_cut_is_found() -> None:
    """But those that leave a whole file of an older server."""
    content = snapshot_bytes(in_file_order({"/a": b"1"}))
    whole = {len(content) - 21, len(content) - 21 - 33}
    for end in set(range(len(content))) - whole:
        with pytest.raises(Permanent):
            ensure_intact(content[:end], "file", frame_of(content[:end], "file"))


def test_damaged_nodes_are_told_with_their_place() -> None:
    content = snapshot_bytes(in_file_order({"/a": b"1"}))
    frame = frame_of(content, "file")
    broken = content[: frame.begin] + b"\0\0\0\x05" + content[frame.begin + 4 :]
    with pytest.raises(Permanent, match=f"file is damaged at byte {frame.begin}"):
        nodes_from(broken, "file", frame.begin, frame.end)
    with pytest.raises(Permanent, match="damaged"):
        every_part_to(content, frame.end - 3)


def every_part_to(content: bytes, end: int) -> None:
    at = frame_of(content, "file").begin
    while at < end:
        at = nodes_from(content, "file", at, end, 4096).stop


@pytest.mark.parametrize(
    ("begins", "why"),
    [(b"\x1f\x8b\x08", "gzip"), (b"\x82SNAPPY\0", "snappy"), (b"ZKLG", "no snapshot"), (b"ZKSN\0\0\0\x03", "3")],
)
def test_what_is_no_snapshot_is_refused(begins: bytes, why: str) -> None:
    with pytest.raises(Permanent, match=why):
        frame_of(begins + bytes(100), "file")


def test_no_file_and_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for name in ("absent", "empty"):
        with pytest.raises(Permanent, match=name):
            opened(tmp_path / name)


def test_a_boundary_is_found_from_every_byte() -> None:
    content = snapshot_bytes(many_topics(3, 40))
    frame = frame_of(content, "file")
    begins = np.array([found[3] for found in listed(every_node(content))])
    for position in range(frame.begin + 1, frame.end, 7):
        found = boundary_from(content, position, frame.end)
        later = begins[begins >= position]
        assert found == (int(later[0]) if len(later) else frame.end)


def test_the_stat_has_the_size_that_servers_write() -> None:
    assert struct.calcsize(">qqqqiiiqq") == STAT
