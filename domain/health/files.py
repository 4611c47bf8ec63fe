"""What a node's files tell: whether they are as our last roll left them, how to restore them, what its storage holds."""

from enum import StrEnum

from domain.observed.observation import NodeDisk, StorageState


class Restoration(StrEnum):
    """How the file of a node that we changed can be brought back."""

    ARCHIVE = "archive"
    """The original lies beside it, and the file is as this product left it."""
    EDITED = "edited"
    """The original lies beside it; somebody has changed the file since, and would lose that."""
    INVERSE = "inverse"
    """No original: only by taking back, key by key, what a migration adds."""
    UNKNOWN = "unknown"


def restoration_of(disk: NodeDisk | None) -> Restoration:
    """How the file of a node could be brought back to what it was before the migration."""
    if disk is None or disk.file is None:
        return Restoration.UNKNOWN
    if disk.file.original_sha256 is None:
        return Restoration.INVERSE
    mark = disk.file.mark
    ours = {mark.written_sha256, mark.before_sha256} if mark is not None and not mark.has_edits else set()
    return Restoration.ARCHIVE if disk.file.sha256 in {*ours, disk.file.original_sha256} else Restoration.EDITED


def is_file_ours(disk: NodeDisk | None) -> bool:
    file = disk.file if disk is not None else None
    return file is not None and file.mark is not None and file.sha256 == file.mark.written_sha256


def has_metadata_log(disk: NodeDisk | None) -> bool:
    return disk is not None and any(log_dir.has_metadata_log for log_dir in disk.log_dirs)


def is_startable(disk: NodeDisk | None) -> bool:
    """Whether a controller could start: KRaft refuses storage that was never formatted, or is fenced in every directory.

    Also asked of a controller that runs: half-way into the window it runs on storage that is fenced already.
    """
    if disk is None:
        return True
    unformatted = {StorageState.ABSENT, StorageState.EMPTY}
    return any(log_dir.state not in unformatted and not log_dir.is_fenced for log_dir in disk.log_dirs)
