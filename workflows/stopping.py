"""`Stop`: an error that trying again cannot mend stops the migration where it is, until a person says resume or rollback.

More than a hold, which takes effect after an irreversible section: the same step would fail in a circle.
"""

from temporalio.exceptions import ActivityError, ApplicationError, FailureError, is_cancelled_exception

from domain.waits import KEEPERLESS
from workflows.board import Board
from workflows.orders import Orders
from workflows.outbox import Outbox


class Superseded(Exception):
    """Another run holds the cluster."""


class Stop:
    def __init__(self, orders: Orders, outbox: Outbox, board: Board) -> None:
        self._orders, self._outbox, self._board = orders, outbox, board

    def after(self, error: ActivityError, what: str) -> None:
        """Stop, tell and show it, with the worker that said so: of several, one may lack what the others have.

        A cancellation, and the loss of the cluster, are no such errors: they are raised.
        """
        cause = error.cause
        if isinstance(cause, ApplicationError) and cause.type == Superseded.__name__:
            raise Superseded from error
        if is_cancelled_exception(error):
            raise error
        at = f" (at {error.identity})" if error.identity else ""
        self._orders.stop(f"{what}: {reason_of(error)}{at}")
        self._outbox.tell("held", {"by": KEEPERLESS, "reason": self._orders.held_because, "error": _type_of(cause)})
        self._board.note_stop()
        self._outbox.send_soon()

    def hold(self, because: str) -> None:
        """What was done is done and well, and a person has to look before the next step. Whoever goes back need not wait."""
        if self._orders.is_held or self._orders.revert is not None:
            return
        self._orders.hold(because)
        self._board.note_hold(KEEPERLESS, because)
        self._outbox.tell("held", {"by": KEEPERLESS, "reason": because})
        self._outbox.send_soon()


def reason_of(error: ActivityError) -> str:
    """What the activity said; a cancelled one has not said anything."""
    if is_cancelled_exception(error):
        raise error
    cause = error.cause
    return cause.message if isinstance(cause, FailureError) else str(cause or error)


def _type_of(cause: BaseException | None) -> str:
    named = cause.type if isinstance(cause, ApplicationError) else None
    return named or type(cause).__name__
