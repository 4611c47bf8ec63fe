"""Logs: one JSON object a line on standard error, or aligned text where a person is looking."""

import logging
import re
import sys
from datetime import UTC, datetime

import structlog

from console.polls import SDK_LOG

OF_A_STATUS = re.compile(r"\bcode: '?[\w ]{1,60}'?, message: \"([^\"]{1,200})\"")
"""What the server or the system says of a call, inside what Temporal's SDK prints of it. Other fields may hold a run's data."""


def configure_logs(program: str) -> None:
    """Set up structlog and the standard library's logging alike. Call once, first thing in a program."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer]
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    logging.getLogger("kazoo").setLevel(logging.ERROR)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(program=program)


class LastError(logging.Handler):
    """Keeps what this program logged last as an error, or Temporal's SDK as a warning, which is how it tells of failed polls.

    `said` holds whatever was logged: redact it. Failures of activities and workflows are warnings of others, and not kept.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said = ""
        self.at: datetime | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR or record.name == SDK_LOG:
            self.said, self.at = _words(record), datetime.fromtimestamp(record.created, UTC)


def _words(record: logging.LogRecord) -> str:
    """What happened, with the error that is named beside it. Of structlog an entry is a mapping."""
    if isinstance(record.msg, dict):
        parts = [str(record.msg.get("event", "")), str(record.msg.get("error", ""))]
    elif (entry := getattr(record, "temporal_log", None)) is not None:
        parts = [entry.message, *OF_A_STATUS.findall(str(entry.fields))[:1]]
    else:
        parts = [record.getMessage(), record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""]
    return ": ".join(filter(None, parts))
