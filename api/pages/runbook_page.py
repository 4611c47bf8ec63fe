"""A runbook as a page of Markdown, for somebody who has nothing but a shell, at three in the morning.

On top stands what was not seen, because every line below was written without knowing it.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from api.pages.markdown import fenced, in_one_line
from domain.questions import Runbook, RunbookAction

HOW_TO = """\
- Choose one direction, back or forward, and stay with it.
- Run the actions in this order, and the blocks of an action in theirs. Begin one only when the one before has ended with exit
  code 0 (`echo $?` shows it) and its check passes.
- Commands are for a POSIX shell on the host that is named. Passwords and the like are not written here: the commands take them
  from a variable in capitals, which you set first.
- If something fails, or a check does not pass, stop and find out why. This page shows one moment: if anything differs from it,
  get it again."""


def page_of(runbook: Runbook) -> str:
    """The page. The way back comes first: who needs this page seldom wants to go on."""
    why_not = [runbook.why_no_way_back] if runbook.why_no_way_back else []
    parts = [
        f"# Runbook of cluster {runbook.cluster}",
        *_not_seen(runbook.unknown),
        f"Phase **{runbook.phase or 'unknown'}**, as seen at {runbook.observed_at:%Y-%m-%d %H:%M:%S %Z}.",
        HOW_TO,
        "## Rollback",
        *(why_not or _actions(runbook.back)),
        "## Forward",
        *_actions(runbook.forward),
    ]
    return "\n\n".join(parts) + "\n"


def _not_seen(unknown: Sequence[str]) -> Iterator[str]:
    if unknown:
        yield "**Did not answer, so this page does not cover it. Find out first:**"
        yield "\n".join(f"- {in_one_line(part)}" for part in unknown)


def _actions(actions: Sequence[RunbookAction]) -> list[str]:
    return [part for number, action in enumerate(actions, 1) for part in _action(number, action)] or ["Nothing is left to do."]


def _action(number: int, action: RunbookAction) -> Iterator[str]:
    yield f"### {number}. {in_one_line(action.title)}"
    if action.commands or action.check:
        yield _where(action)
    # A block each: whoever pastes one sees that it failed before the next one is run.
    yield from (fenced(command, "sh") for command in action.commands)
    yield from _check(action.check)


def _check(check: str) -> Iterator[str]:
    """A shell's lines; the comments before them say what to expect."""
    lines = check.splitlines()
    told = list(takewhile(lambda line: line.startswith("#"), lines))
    if check:
        yield f"**Check.** {in_one_line(' '.join(line.lstrip('#') for line in told))}".rstrip()
    if commands := "\n".join(lines[len(told) :]):
        yield fenced(commands, "sh")


def _where(action: RunbookAction) -> str:
    if action.node is None:
        return "On any host that reaches the cluster:" if action.host is None else f"On host {action.host}:"
    return f"On **{action.node}**:" if action.host is None else f"On **{action.node}**, host {action.host}:"
