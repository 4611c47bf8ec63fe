"""Runs on a broker's machine: says of some topics which id each directory of their partitions has. Writes nothing.

    python3 -c PROGRAM '{"log_dirs": […], "topics": ["orders"]}'

The answer is one JSON object on standard output. Python 3.7 or later.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from activities.on_node.partition_ids import partition_ids


def of_topics(request: dict[str, Any]) -> dict[str, object]:
    without, ids = partition_ids(request["log_dirs"])
    wanted = set(request["topics"])

    def is_wanted(path: str) -> bool:
        return path.rpartition("/")[2].rpartition("-")[0] in wanted

    return {
        "without_id": [path for path in without if is_wanted(path)],
        "topic_ids": {path: found for path, found in ids.items() if is_wanted(path)},
    }


if __name__ == "__main__":
    json.dump(of_topics(json.loads(sys.argv[1])), sys.stdout)
