"""Runs on a machine: says which places lie on volumes that take nothing more. Writes nothing.

    python3 -c PROGRAM '{"places": ["/var/lib/zookeeper"]}'

The answer is one JSON object on standard output: `full`, those on whose volumes is no room, and `deleted`, who has
much open there that was deleted, and how many bytes; `read_only`, those whose file systems can only be read. Python 3.7 or
later.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from activities.on_node.volumes import deleted_on, is_full, is_written_by_nobody


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    full = [place for place in asked["places"] if is_full(Path(place))]
    return {
        "full": full,
        "deleted": deleted_on(full),
        "read_only": [place for place in asked["places"] if is_written_by_nobody(Path(place))],
    }


if __name__ == "__main__":
    json.dump(answer(json.loads(sys.argv[1])), sys.stdout)
