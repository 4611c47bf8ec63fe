"""`Comparing`: a step that only looks. It has no effect, so nothing is lost where it is dropped in the middle."""

import asyncio

from temporalio import workflow
from temporalio.exceptions import ActivityError, TimeoutType
from temporalio.exceptions import TimeoutError as ActivityTimeout

from domain.contracts import CheckOutcome, StepOutcome
from domain.decisions import Step
from workflows.board import Board
from workflows.calls import Calls, drop
from workflows.orders import Orders
from workflows.stopping import Stop, reason_of
from workflows.telling import CLUSTER, summary_of
from workflows.turns import Turn

AGAIN = StepOutcome(is_done=False, blocked="compared already, and asked for once more at once")


class Comparing:
    """`last`: the check since which nothing else was decided. A clock that goes wrong must not fill the history with it."""

    def __init__(self, calls: Calls, orders: Orders, turn: Turn, board: Board, stop: Stop) -> None:
        self._calls, self._orders, self._turn, self._board, self._stop = calls, orders, turn, board, stop
        self.last: str | None = None

    async def compare(self, step: Step, number: int) -> StepOutcome | None:
        """Have both sides compared, unless somebody orders something else meanwhile: a hold or a rollback does not wait."""
        is_again, self.last = self.last == step.action, step.action
        check = self._calls.check(step, number)
        try:
            with self._turn.awaiting(lambda: check.done() or self._is_dropped(step)) as is_over:
                await workflow.wait_condition(is_over)
            if check.done():
                self._note(step, number, await check)
            else:
                drop(check)
                self._board.note_dropped(step, number, self._orders.held_because or "the way back was asked for")
        except ActivityError as error:
            self._after(error, step, number)
        except asyncio.CancelledError:
            drop(check)
            raise
        finally:
            self._board.note_over()
        return AGAIN if is_again else None

    def _is_dropped(self, step: Step) -> bool:
        """What nothing waits for no order has to stop: after the end there is nothing to undo."""
        return step.how.given_up_after is None and (self._orders.is_held or self._orders.revert is not None)

    def _note(self, step: Step, number: int, outcome: CheckOutcome) -> None:
        self._calls.unchecked_since = None
        self._board.note_check(step, number, outcome)

    def _after(self, error: ActivityError, step: Step, number: int) -> None:
        """If no worker took it, that becomes a wait by its name, with the next look; if nothing waits for it, it is left."""
        if _is_untaken(error):
            why = "no worker has taken it: keeperless-checks does not run, or is busy"
        elif step.how.given_up_after is not None:
            why = reason_of(error)
        else:
            self._stop.after(error, summary_of(step, CLUSTER))
            return
        self._calls.unchecked_since = workflow.now()
        self._board.note_dropped(step, number, why)


def _is_untaken(error: ActivityError) -> bool:
    return isinstance(error.cause, ActivityTimeout) and error.cause.type is TimeoutType.SCHEDULE_TO_START
