"""What a failure says of a program that could not load a part of itself: mostly its files were replaced while it ran."""

OF_ITS_FILES = frozenset({"ImportError", "ModuleNotFoundError", "SyntaxError"})
"""Types of failures. A workflow's code is loaded from disk anew for each run, an activity's where it is needed first; what was
loaded before stays as it was."""

WHAT = "its code on disk is not what it was started from ({}): it was upgraded, or its environment was made anew, while it ran"


def fix_of(program: str) -> str:
    return (
        f"Restart {program}, all processes of it, and have all of Keeperless' programs of one release. Nothing is lost, and it "
        "goes on by itself. If that lasts after a restart, a part of it is not installed: its log names it."
    )
