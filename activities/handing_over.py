"""What a worker does after SIGTERM with what it is at: it ends a bounded step, and hands everything else over.

In a bounded step waiting is itself the outage: in the revert window the cluster may be without a controller. It ends within
its own limits. All else goes on for a short grace, and then fails in a way that lets another worker take it up immediately.
"""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from domain.contracts import StepRequest


class HandOver(Interceptor):
    """Register on every activity worker, outside the translator of failures. `grace`: for what is not bounded."""

    def __init__(self, grace: timedelta) -> None:
        self._grace = grace.total_seconds()

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        return _HandOver(next, self._grace)


class _HandOver(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, grace: float) -> None:  # noqa: A002 - Temporal's name
        super().__init__(next)
        self._grace = grace

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002, ANN401 - Temporal's signature
        if any(isinstance(given, StepRequest) and given.step.how.is_urgent for given in input.args):
            return await super().execute_activity(input)
        running = asyncio.ensure_future(super().execute_activity(input))
        told = asyncio.ensure_future(activity.wait_for_worker_shutdown())
        try:
            await asyncio.wait({running, told}, return_when=asyncio.FIRST_COMPLETED)
            done, _ = await asyncio.wait({running}, timeout=self._grace)
            if not done:
                raise ApplicationError("The worker ends: another takes this up.", type="WorkerShutdown")
            return await running
        finally:
            told.cancel()
            running.cancel()
            # Until it has put right what it was in the middle of.
            await asyncio.gather(running, told, return_exceptions=True)
