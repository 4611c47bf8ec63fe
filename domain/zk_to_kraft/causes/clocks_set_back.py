"""A quorum that elects nobody because its controllers' clock was set back while they ran. Pure.

Those of Kafka's timers that raft has go by the wall clock, and never back (Timer.update): each stands until that clock is where
it was already.
"""

from domain.checks.seen import some
from domain.diagnosis.logs.lines import of_this_process, set_back_by
from domain.zk_to_kraft.causes.case import Looked

TIMERS_STAND = (
    "Their timers go by that clock, and stand until it is where it was: until then none of them begins an election. Look which "
    "time is right (`chronyc tracking`, `timedatectl`: an RTC in local time, chrony's makestep, a machine that was resumed). "
    "Where the time of before was, set the clock right, and they go on by themselves. Where that of now is, wait so long, or "
    "restart these controllers, one after the other: nobody leads that could be missed. If it is only the end of summer time, "
    "when logs go back by an hour, and no clock was set: check that the controllers reach each other's listeners."
)


def set_back(looked: Looked, *node_ids: int) -> str:
    """Of which of these the clock was set back, by their logs, and how far it is from where it was, as a further sentence."""
    behind = {i: set_back_by(of_this_process(looked.hints.logs.get(i, ()))) for i in node_ids}
    told = [f"{looked.name(i)} by {by}" for i, by in behind.items() if by]
    return f". By their logs, a clock was set back under {some(told)}" if told else ""
