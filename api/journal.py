"""What systemd's programs print: nothing where there are none, or they have no answer in time."""

import os
import subprocess

SECONDS = 2.0
LINES = 200
NEEDED = ("PATH", "XDG_RUNTIME_DIR")
"""Of our own environment, which holds secrets: what finds them, and the user's own manager."""


def printed_by(*command: str) -> list[str]:
    """Its lines."""
    given = {name: os.environ[name] for name in NEEDED if name in os.environ}
    environment = {**given, "LC_ALL": "C", "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"}
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=SECONDS, env=environment, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.decode(errors="replace").splitlines()


def journal(*chosen: str) -> list[str]:
    """Its last lines, of what is chosen."""
    return printed_by("journalctl", *chosen, "--output=cat", f"--lines={LINES}", "--no-pager")
