"""Doing the same to several nodes at once."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from temporalio import activity

from domain.errors import Transient

T = TypeVar("T")


async def all_of(*asked: Awaitable[T]) -> list[T]:
    """All answers, once everybody is through: what fails at one node must not leave another one half-way.

    Then the gravest error is raised, where there was one; what may be tried again is the least grave.
    """
    if len(asked) == 1:
        return [await asked[0]]
    found = await asyncio.gather(*asked, return_exceptions=True)
    errors = sorted((one for one in found if isinstance(one, BaseException)), key=lambda one: isinstance(one, Transient))
    for lesser in errors[1:]:
        activity.logger.warning("another of several calls made together failed too: %s", lesser)
    if errors:
        raise errors[0]
    return [one for one in found if not isinstance(one, BaseException)]
