"""Whether a worker's polls for tasks come to Temporal, by the SDK's own count of those that fail."""

import logging
import time
from collections.abc import Mapping
from datetime import timedelta

from temporalio.runtime import LogForwardingConfig, LoggingConfig, MetricBuffer, Runtime, TelemetryConfig, TelemetryFilter

SDK_LOG = "temporalio.sdk"
"""The SDK's native part logs there: of warnings, those of polls that fail."""
FAILED_POLLS, POLL = "temporal_long_request_failure", "Poll"
AGAIN = timedelta(seconds=20)
"""A poll that fails is tried again within ten seconds, so that after this time none has failed again."""
UPDATES = 100_000
"""Of metrics, between two beats; what comes beyond that is dropped."""


class Polls:
    """Give the client `runtime`, and ask `trouble` every few seconds."""

    def __init__(self) -> None:
        self._updates = MetricBuffer(UPDATES)
        self._failed_at, self._status = -AGAIN.total_seconds(), ""
        self.runtime = Runtime(
            telemetry=TelemetryConfig(
                metrics=self._updates,
                logging=LoggingConfig(
                    filter=TelemetryFilter(core_level="WARN", other_level="ERROR"),
                    forwarding=LogForwardingConfig(
                        logging.getLogger(SDK_LOG), append_target_to_name=False, prepend_target_on_message=False
                    ),
                ),
            )
        )

    def trouble(self) -> str:
        """One sentence; empty if no poll has failed of late."""
        now = time.monotonic()
        for update in self._updates.retrieve_updates():
            if update.metric.name == FAILED_POLLS and _is_poll(update.attributes):
                self._failed_at, self._status = now, str(update.attributes.get("status_code", "no status"))
        if now - self._failed_at > AGAIN.total_seconds():
            return ""
        return f"Polls for tasks fail ({self._status}): Temporal is not reached, or refuses them."


def _is_poll(attributes: Mapping[str, str | int | float | bool]) -> bool:
    return str(attributes.get("operation", "")).startswith(POLL)
