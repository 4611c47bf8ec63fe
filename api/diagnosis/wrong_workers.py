"""What a failure says of its worker: it is of another release, of another service, or its files were replaced while it ran."""

import re
from dataclasses import dataclass

from domain.contracts import WORKFLOW_TYPE, ActivityName

UNDECODED = "Failed decoding arguments"
KNOWN = re.compile(r"(?:available activities|available workflows|Supported types|Known types are): (.*)", re.DOTALL)
"""In the words of Temporal's SDKs for Python and TypeScript, Go and Java, which list what a worker knows in place of what it is
asked for."""
UNLISTED = "no such function is exported by the workflow bundle"
"""That for TypeScript of a workflow: it lists nothing."""


@dataclass(frozen=True)
class WrongWorker:
    """`what`: what a task failed of. `fix`: what to do about it."""

    what: str
    fix: str


OTHER_RELEASE = WrongWorker(
    "the worker that took it runs another release, and does not know this activity, or its input",
    "Stop that worker, and start keeperless-activities and keeperless-checks of the release that the API and "
    "keeperless-workflows run. Nothing was begun; the task is retried by itself.",
)
OTHER_SERVICE = WrongWorker(
    "a worker of another service polls this task queue of Keeperless, and took a task that it does not know",
    "Stop that worker, or give it a task queue of its own: in this namespace of Temporal the queues `cluster`, `watch`, "
    "`checks` and `migrations` belong to Keeperless. Or give Keeperless a namespace of its own (TEMPORAL_NAMESPACE). "
    "Nothing was begun; the task is retried by itself.",
)
FIXES = {stray.what: stray.fix for stray in (OTHER_RELEASE, OTHER_SERVICE)}

OF_ITS_FILES = frozenset({"ImportError", "ModuleNotFoundError", "SyntaxError"})
"""Types of failures. A workflow's code is loaded from disk again for each run, an activity's where it is needed first; what was
loaded before stays as it was."""


def replaced(kind: str, program: str) -> WrongWorker:
    """Report a program that could not load a part of itself: the type of that failure is one of `OF_ITS_FILES`."""
    return WrongWorker(
        f"its code on disk differs from what it was started from ({kind}): it was upgraded, or its environment was created "
        "again, while it ran",
        f"Restart {program}, all processes of it, and run all of Keeperless' programs at one release. Nothing is lost, and it "
        "continues by itself. If that lasts after a restart, a part of it is not installed: its log names it.",
    )


def wrong_worker_behind(message: str) -> WrongWorker | None:
    """Whose worker it was that an activity or a workflow failed with, before it began: it does not know it, or not what it is
    given. An SDK says so in words that tell no value."""
    if message == UNDECODED:
        return OTHER_RELEASE
    if UNLISTED in message:
        return OTHER_SERVICE
    known = KNOWN.search(message)
    if known is None:
        return None
    is_ours = bool(set(re.findall(r"\w+", known.group(1))) & {*ActivityName, WORKFLOW_TYPE})
    return OTHER_RELEASE if is_ours else OTHER_SERVICE
