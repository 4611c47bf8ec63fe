"""`python3 -m setup [--checks]`. Simple enough for any Python 3, so that an old one is told what is wrong."""

import shutil
import sys

OLDEST = (3, 11)
CANDIDATES = ("python3.14", "python3.13", "python3.12", "python3.11")


def too_old() -> str:
    """What to do about this interpreter, or nothing."""
    if sys.version_info[:2] >= OLDEST:
        return ""
    have = ".".join(str(part) for part in sys.version_info[:3])
    message = f"Keeperless needs Python {OLDEST[0]}.{OLDEST[1]} or newer; {sys.executable} is {have}."
    for name in CANDIDATES:
        if shutil.which(name):
            return f"{message} There is {name} on this machine: make setup PYTHON={name}"
    return f"{message} Install one, then: make setup PYTHON=/path/to/python3"


if __name__ == "__main__":
    if too_old():
        sys.exit(too_old())
    from setup.checks import set_up_checks
    from setup.environment import set_up, told

    sys.exit(told(set_up_checks if "--checks" in sys.argv[1:] else set_up))
