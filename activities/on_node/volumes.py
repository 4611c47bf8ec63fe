"""Of the volumes that places lie on: whether they take nothing more. A part of programs. Python 3.7 or later."""

from __future__ import annotations

import os
from pathlib import Path

from activities.on_node.kernel import mount_of

LITTLE_ROOM = 64 * 1024
WRITTEN_BY_NOBODY = frozenset({"ro", "emergency_ro", "shutdown"})
"""Options of a file system; the last two are those of one that has failed, with newer kernels (ext4)."""


def is_full(place: Path) -> bool:
    """Whether its volume takes nothing more. Those that are only read say so always."""
    try:
        there = next(one for one in (place, *place.parents) if one.exists())
        sizes, is_root = os.statvfs(there), there.stat().st_uid == os.geteuid() == 0
    except OSError:
        return False
    free = (sizes.f_bfree if is_root else sizes.f_bavail) * sizes.f_frsize
    has_inodes = not sizes.f_files or sizes.f_favail > 0
    return bool(sizes.f_blocks) and not sizes.f_flag & os.ST_RDONLY and (free < LITTLE_ROOM or not has_inodes)


def is_written_by_nobody(place: Path) -> bool:
    """Whether its file system can only be read, and not only as this program sees it (proc(5), mountinfo)."""
    mount = mount_of(str(place))
    return mount is not None and not WRITTEN_BY_NOBODY.isdisjoint(mount.of_all.split(","))
