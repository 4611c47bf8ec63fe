"""The one place that turns our errors into Temporal failures, so that no retry policy lists class names.

| ours        | Temporal                                                     |
|-------------|--------------------------------------------------------------|
| Transient   | retried for ever, by the activity's retry policy             |
| Unsafe      | not retried: the migration holds itself and says why         |
| Permanent   | not retried: likewise                                        |
| Superseded  | not retried: the run ends without another effect             |
| others      | bugs: retried, visible in Temporal's UI, healed by a release |
"""

from typing import Any

from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from domain.errors import KeeperlessError, Transient


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
