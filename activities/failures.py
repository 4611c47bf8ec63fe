"""The one place that turns our errors into Temporal failures, so that no retry policy lists class names.

| ours        | Temporal                                                     |
|-------------|--------------------------------------------------------------|
| Transient   | retried for ever, by the activity's retry policy             |
| Unsafe      | not retried: the migration holds itself and says why         |
| Permanent   | not retried: likewise                                        |
| Superseded  | not retried: the run ends without another effect             |
| others      | bugs: retried, visible in Temporal's UI, healed by a release |

A process that can start no thread is none of the last: it says so, and leaves (`console.leaving`). Nor is what its machine
refuses it: that is told in the system's words.
"""

import os
import socket
import ssl
from typing import Any

from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from domain.errors import KeeperlessError, Transient

FIX = "fix"
"""Under which a failure's details have what mends it."""
NO_THREAD = "can't start new thread"
"""CPython's own words."""
NO_THREAD_MEANS = (
    "keeperless-activities, or keeperless-checks, cannot start a thread on its machine: raise TasksMax= of its unit "
    "(pids.max of its control group), ulimit -u or kernel.threads-max, whichever is used up. It exits, and its supervisor "
    "starts it again; if it has none, start it"
)


OF_OTHERS = (ConnectionError, TimeoutError, socket.gaierror, ssl.SSLError)
"""What another machine, or a name, has to do with."""


class FailureTranslator(Interceptor):
    """Register on every activity worker."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        return _Translate(next)


class _Translate(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002, ANN401 - Temporal's signature
        try:
            return await super().execute_activity(input)
        except KeeperlessError as error:
            is_final = not isinstance(error, Transient)
            fix = [{FIX: error.fix}] if error.fix else []
            raise ApplicationError(str(error), *fix, type=type(error).__name__, non_retryable=is_final) from error
        except RuntimeError as error:
            if NO_THREAD not in str(error):
                raise
            raise ApplicationError(NO_THREAD_MEANS, type=Transient.__name__) from error
        except OSError as error:
            if error.errno is None or isinstance(error, OF_OTHERS):  # or a library's own, whose text may hold anything
                raise
            raise ApplicationError(_of_machine(error, error.errno), type=Transient.__name__) from error


def _of_machine(error: OSError, number: int) -> str:
    """In the system's words: what is said of an error, and of which file."""
    about = ", ".join(str(name) for name in (error.filename, error.filename2) if name is not None)
    said = os.strerror(number) + (f": {about}" if about else "")
    return f"the machine of keeperless-activities, or of keeperless-checks, refuses that process something: {said}"
