"""`keeperless-api`: the API as a process."""

import signal
from typing import NoReturn

import structlog
import uvicorn
from pydantic import ValidationError

from api.app import create_app
from api.audit import PRINCIPAL
from api.settings import ApiSettings
from console.inherited import take_signals_as_they_are
from console.leaving import exit_cleanly
from console.logs import configure_logs
from ledger.errors import LedgerMisuse

STREAMS_END_WITHIN_SECONDS = 5

CANNOT_LISTEN = 1
WRONG_SETTINGS = 2
"""The exit code when a person has to change a setting first."""

log = structlog.get_logger()


def main() -> NoReturn:
    """Serve until SIGINT or SIGTERM."""
    take_signals_as_they_are()
    configure_logs("keeperless-api")
    try:
        code = serve()
    except SystemExit:  # uvicorn's way to say that the port is taken, after having logged it.
        code = CANNOT_LISTEN
    exit_cleanly(code)


def serve() -> int:
    """Run the server; its exit code."""
    try:
        settings = ApiSettings()
        server = _server(settings)
    except (ValidationError, LedgerMisuse) as error:
        log.error("keeperless-api cannot start with these settings", error=str(error))  # noqa: TRY400 - no bug, no traceback
        return WRONG_SETTINGS
    log.warning(
        "there is no authentication yet, so only this machine is served",
        address=settings.bind_address,
        port=settings.port,
        principal=PRINCIPAL,
    )
    # uvicorn raises a signal again when it has stopped. These handlers make that harmless, so that we leave as we want to.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    server.run()
    return 0 if server.started else CANNOT_LISTEN


def _server(settings: ApiSettings) -> uvicorn.Server:
    app = create_app(settings, is_closing=lambda: server.should_exit)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            host=settings.bind_address,
            port=settings.port,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=STREAMS_END_WITHIN_SECONDS,
        )
    )
    return server


if __name__ == "__main__":
    main()
