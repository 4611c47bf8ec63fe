"""Doing the same at several nodes: all are through before anything is raised, and the gravest error wins."""

import asyncio

import pytest

from activities.concurrently import all_of
from domain.errors import Transient, Unsafe


async def test_the_gravest_error_is_raised_once_all_are_through() -> None:
    done = []

    async def at(node: int, error: Exception | None) -> int:
        await asyncio.sleep(node / 1000)
        done.append(node)
        if error is not None:
            raise error
        return node

    with pytest.raises(Unsafe):
        await all_of(at(1, Transient("it is silent")), at(2, Unsafe("it is another's")), at(3, None))
    assert done == [1, 2, 3]
    assert await all_of(at(4, None), at(5, None)) == [4, 5]
    assert await all_of() == []
