"""The one place that turns our errors into Temporal failures, so that no retry policy lists class names.

| ours        | Temporal                                                     |
|-------------|--------------------------------------------------------------|
| Transient   | retried for ever, by the activity's retry policy             |
| Unsafe      | not retried: the migration holds itself and says why         |
| Permanent   | not retried: likewise                                        |
| Superseded  | not retried: the run ends without another effect             |
| others      | bugs: retried, visible in Temporal's UI, healed by a release |

A process that can start no thread is none of the last: it says so, and leaves (`console.leaving`).
"""

from typing import Any

from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from domain.errors import KeeperlessError, Transient

NO_THREAD = "can't start new thread"
"""CPython's own words."""
NO_THREAD_MEANS = (
    "keeperless-activities, or keeperless-checks, can start no thread on its machine: raise TasksMax= of its unit (pids.max of "
    "its control group), ulimit -u or kernel.threads-max, whichever is used up. It leaves, and begins anew where something "
    "supervises it; else start it"
)


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
            raise ApplicationError(str(error), type=type(error).__name__, non_retryable=is_final) from error
        except RuntimeError as error:
            if NO_THREAD not in str(error):
                raise
            raise ApplicationError(NO_THREAD_MEANS, type=Transient.__name__) from error
