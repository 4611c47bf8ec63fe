"""Which clients ask ZooKeeper most, by what its servers say of their connections."""

from typing import cast

import pytest

from activities.diagnosis import metadata
from activities.ports.zookeeper import ZooKeepers
from domain.errors import Transient

QUIET = " /10.0.0.1:4711[1](queued=0,recved=%d,sent=9,sid=0x1,lop=PING,est=1)\n"
LOUD = " /10.9.9.9:4000[1](queued=3,recved=%d,sent=9,sid=0x2,lop=GETC,est=1)\n"


class Servers:
    """The first two tell, one after the other; the third is gone."""

    def __init__(self, *answers: str | None) -> None:
        self._answers = list(answers)

    async def ask(self, server: str, word: str) -> str | None:
        assert word == "cons"
        if server == "c:3":
            raise Transient("gone")
        return self._answers.pop(0)


async def asked(*answers: str | None) -> tuple[str, ...]:
    return await metadata.busy_clients(cast("ZooKeepers", Servers(*answers)), "a:1,b:2,c:3/chroot")


async def test_a_client_that_asks_without_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "SECONDS_BETWEEN", 0.05)
    (told,) = await asked(QUIET % 5, LOUD % 100, QUIET % 6, LOUD % 10_000)
    assert told.startswith("10.9.9.9:4000 (")
    assert told.endswith(" requests a second)")


async def test_a_host_that_connects_anew_all_the_time_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "SECONDS_BETWEEN", 0.0)
    many = "".join(f" /10.9.9.9:{port}[0](queued=0,recved=1,sent=0)\n" for port in range(60))
    assert await asked(QUIET % 5, "", QUIET % 5, many) == ("10.9.9.9 (60 new connections)",)


async def test_where_the_word_is_not_allowed_nothing_is_known() -> None:
    assert await asked(None, None) == ()
