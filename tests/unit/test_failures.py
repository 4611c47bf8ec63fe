"""How errors of activities become Temporal's."""

import errno
import socket
import ssl
from typing import Any, cast

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor

from activities.failures import FailureTranslator
from domain.errors import Permanent, Transient
from ledger.errors import LedgerUnavailable


class Failing(ActivityInboundInterceptor):
    def __init__(self, error: Exception) -> None:
        self._error = error

    async def execute_activity(self, input: Any) -> Any:  # noqa: A002 - Temporal's signature
        raise self._error


async def failure_of(error: Exception) -> Exception:
    with pytest.raises(Exception) as told:  # noqa: PT011 - which one is what is asked
        await FailureTranslator().intercept_activity(Failing(error)).execute_activity(cast("Any", None))
    return told.value


@pytest.mark.parametrize(("error", "is_final"), [(Transient("no answer"), False), (Permanent("wrong password"), True)])
async def test_ours_are_named_and_say_whether_they_are_final(error: Exception, is_final: bool) -> None:
    failure = await failure_of(error)
    assert isinstance(failure, ApplicationError)
    assert (failure.type, failure.message, failure.non_retryable) == (type(error).__name__, str(error), is_final)


async def test_what_mends_it_travels_with_it() -> None:
    failure = await failure_of(LedgerUnavailable("the ledger's database does not answer as it should", "Fix what it says."))
    assert isinstance(failure, ApplicationError)
    assert failure.details == ({"fix": "Fix what it says."},)


async def test_a_process_without_threads_says_what_to_raise_and_is_asked_again() -> None:
    failure = await failure_of(RuntimeError("can't start new thread"))
    assert isinstance(failure, ApplicationError)
    assert (failure.type, failure.non_retryable) == ("Transient", False)
    assert "TasksMax=" in failure.message


async def test_what_its_machine_refuses_is_told_in_the_systems_words() -> None:
    failure = await failure_of(FileNotFoundError(errno.ENOENT, "text of a caller's", "/opt/releases/7"))
    assert isinstance(failure, ApplicationError)
    assert (failure.type, failure.non_retryable) == ("Transient", False)
    assert failure.message.endswith("refuses that process something: No such file or directory: /opt/releases/7")


@pytest.mark.parametrize(
    "error",
    [
        OSError("GET http://anna:hunter2@host/"),
        ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
        socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
        ssl.SSLError(1, "certificate verify failed"),
    ],
)
async def test_an_error_of_a_librarys_own_or_of_others_is_none_of_the_machines(error: OSError) -> None:
    assert await failure_of(error) is error


async def test_a_bug_stays_what_it_is() -> None:
    bug = RuntimeError("the moon")
    assert await failure_of(bug) is bug
