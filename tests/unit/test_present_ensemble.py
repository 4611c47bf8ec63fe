"""How new copied files have to be, by what single servers of an ensemble say of themselves."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from activities.observing.present_ensemble import Newest, newest_told, present_ensemble
from activities.ports.zookeeper import Znode
from domain.errors import Transient
from domain.records import ClusterRecord
from playground.example import example_cluster

CONNECT = "a:2181,b:2181,c:2181/kafka"
CUT_OFF = "This ZooKeeper instance is not currently serving requests\n"
FORBIDDEN = None
SILENT = "silent"


def srvr(mode: str, zxid: int) -> str:
    """As a server of 3.8 answers."""
    return (
        "Zookeeper version: 3.8.4-9316c2a, built on 2024-02-12 22:16 UTC\nLatency min/avg/max: 0/0.5/21\nReceived: 5\nSent: 4\n"
        f"Connections: 1\nOutstanding: 0\nZxid: {zxid:#x}\nMode: {mode}\nNode count: 40\n"
    )


class Servers:
    """An ensemble whose servers answer `srvr` so, in order; its tree has one broker, registered long ago."""

    def __init__(self, *answers: str | None) -> None:
        self._answers = dict(zip(("a:2181", "b:2181", "c:2181"), answers, strict=True))
        self.calls: list[str] = []

    async def connect(self, _cluster: ClusterRecord) -> "Servers":
        self.calls.append("connect")
        return self

    async def sync(self) -> None:
        self.calls.append("sync")

    async def close(self) -> None:
        self.calls.append("close")

    async def children(self, _path: str) -> tuple[str, ...]:
        return ("1", "seqid")

    async def get_many(self, paths: Sequence[str]) -> tuple[Znode | None, ...]:
        return tuple(Znode(b"{}", 0, 1, modified_zxid=0x105) if path == "/brokers/ids/1" else None for path in paths)

    async def ask(self, server: str, word: str) -> str | None:
        self.calls.append(word)
        answer = self._answers[server]
        if answer == SILENT:
            raise Transient(f"ZooKeeper {server}: no answer to {word}")
        return answer


@pytest.mark.parametrize(
    ("answers", "zxid"),
    [
        ((srvr("follower", 0x200), srvr("leader", 0x203), srvr("follower", 0x203)), 0x203),
        ((srvr("follower", 0x150), srvr("leader", 0x203), FORBIDDEN), 0x203),
        ((srvr("follower", 0x200), SILENT, srvr("follower", 0x202)), 0x202),
        ((CUT_OFF, srvr("leader", 0x203), srvr("follower", 0x203)), 0x203),
        ((srvr("standalone", 0x203), SILENT, SILENT), 0x203),
        ((srvr("read-only", 0x900), srvr("leader", 0x203), SILENT), 0x203),
    ],
)
async def test_the_newest_that_a_serving_server_has_processed_counts(answers: tuple[str | None, ...], zxid: int) -> None:
    assert await newest_told(Servers(*answers), CONNECT) == Newest(zxid)


@pytest.mark.parametrize(
    ("answers", "zxid", "who"),
    [
        ((SILENT, SILENT, SILENT), 0, "none of a:2181, b:2181, c:2181 answers"),
        ((CUT_OFF, srvr("read-only", 0x900), SILENT), 0, "none of a:2181"),
        ((FORBIDDEN, FORBIDDEN, FORBIDDEN), 0, "a:2181, b:2181, c:2181 does not report its mode"),
        (("", SILENT, SILENT), 0, "a:2181 does not report its mode"),
        ((srvr("follower", 0x150), FORBIDDEN, SILENT), 0x150, "b:2181 does not report its mode, and no other one leads"),
    ],
    ids=["silent", "cut off", "forbidden", "another protocol", "a follower beside one that may lead"],
)
async def test_where_nobody_can_say_it_that_is_told(answers: tuple[str | None, ...], zxid: int, who: str) -> None:
    newest = await newest_told(Servers(*answers), CONNECT)
    assert newest.zxid == zxid
    assert who in newest.why_unsure


def cluster_at(connect: str) -> ClusterRecord:
    now, spec = datetime.now(UTC), example_cluster()
    spec = spec.model_copy(update={"zookeeper": spec.ensemble.model_copy(update={"connect": connect})})
    return ClusterRecord(spec=spec, revision=1, generation=1, created_at=now, updated_at=now)


async def test_servers_are_asked_after_our_own_session_has_made_a_transaction_and_caught_up() -> None:
    servers = Servers(srvr("follower", 0x200), srvr("leader", 0x203), srvr("follower", 0x203))
    present = await present_ensemble(servers, cluster_at(CONNECT))
    assert servers.calls == ["connect", "sync", "srvr", "srvr", "srvr", "close"]
    assert (present.brokers, present.newest) == ({1: "{}"}, Newest(0x203))


async def test_where_no_server_tells_what_znodes_tell_is_the_least() -> None:
    present = await present_ensemble(Servers(SILENT, SILENT, SILENT), cluster_at(CONNECT))
    assert present.newest.zxid == 0x105
    assert present.newest.why_unsure
