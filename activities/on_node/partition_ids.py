"""Which topic's id each partition's directory has. A part of each program that imports it."""

from __future__ import annotations

import os
import re

from activities.on_node.kernel import names, text

PARTITION = re.compile(r"(.+)-\d+")
"""Not one that is being deleted, moved or found astray: those have a suffix (LocalLog.scala)."""
METADATA_LOG = "__cluster_metadata-0"


def partition_ids(log_dirs: list[str]) -> tuple[list[str], dict[str, str]]:
    """Directories of partitions without a topic's id; and of the others the id of each."""
    without, ids = [], {}
    for path in (f"{log_dir}/{name}" for log_dir in log_dirs for name in names(log_dir)):
        name = os.path.basename(path)  # noqa: PTH119
        if not PARTITION.fullmatch(name) or name == METADATA_LOG or not os.path.isdir(path):  # noqa: PTH112
            continue
        found = re.search(r"^topic_id:\s*(\S+)", text(f"{path}/partition.metadata") or "", re.MULTILINE)
        if found is None:
            without.append(path)
        else:
            ids[path] = found.group(1)
    return without, ids
