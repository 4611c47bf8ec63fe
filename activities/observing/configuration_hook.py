"""What a node's configuration management says of itself, through the hook that its specification names."""

from datetime import timedelta

from activities.ports.nodes import Completed, NodeDriver
from domain.cluster import ConfigurationManagement
from domain.errors import Unsafe
from domain.rolling.configuration_management import by_hand

HOOK_TIMEOUT = timedelta(minutes=1)
"""For an agent that starts an interpreter and waits for its own lock."""

LOOK_TIMEOUT = timedelta(seconds=10)
"""For the question whether it is paused: every look at the cluster asks it."""

SAID = 300
"""Characters of what a hook printed that are shown to people."""


async def is_paused(driver: NodeDriver, hook: ConfigurationManagement) -> bool:
    """What the hook says. `Unsafe`: neither yes nor no, which is unknown and never paused."""
    done = await driver.run(hook.is_paused, {}, LOOK_TIMEOUT)
    if done.exit_code not in {0, 1}:
        raise Unsafe(f"`{by_hand(hook.is_paused)}` ended with {done.exit_code}, neither 0 (paused) nor 1 (not){said(done)}")
    return done.exit_code == 0


def said(done: Completed) -> str:
    """The end of what a program printed, for a message."""
    text = (done.errors or done.output).strip()[-SAID:]
    return f": {text}" if text else ""
