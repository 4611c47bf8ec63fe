"""`keeperless-api`: the API as a process."""

import signal
from contextlib import suppress
from typing import NoReturn

import structlog
import uvicorn

from api.app import create_app
from api.settings import ApiSettings
from console.program import CannotStart, Program, run_program
from domain.principals import LOCAL
from ledger.errors import LedgerMisuse

STREAMS_END_WITHIN_SECONDS = 5

CANNOT_LISTEN = 1

PROGRAM = Program(
    "keeperless-api",
    "Serves the HTTP API: plans, migrations, approvals, events.",
    "Needs the ledger, Temporal and the artefacts; runs on any machine that reaches them, in any number of copies.",
    (ApiSettings,),
)

log = structlog.get_logger()


def main() -> NoReturn:
    """Serve until SIGINT or SIGTERM."""
    run_program(PROGRAM, serve)


def serve() -> int:
    """Run the server; its exit code."""
    settings = ApiSettings()
    try:
        server = _server(settings)
    except LedgerMisuse as error:
        raise CannotStart(f"KEEPERLESS_LEDGER_URL: {error}") from error
    if not settings.is_auth_on:
        log.warning(
            "authentication is off, so only this machine is served",
            address=settings.bind_address,
            port=settings.port,
            principal=LOCAL,
        )
    # uvicorn raises a signal again when it has stopped. These handlers make that harmless, so that we leave as we want to.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    with suppress(SystemExit):  # uvicorn's way to say that the port is taken, after having logged it.
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
