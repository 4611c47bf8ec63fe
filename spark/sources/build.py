"""A source from its description. Secrets are looked up here, on the machine that reads, and stay in this process."""

import os
from dataclasses import dataclass
from pathlib import Path

from domain.drift.digests import DIGEST_BYTES, Digester
from domain.errors import Permanent
from spark.job import CheckJob, KraftFiles, SourceSpec, ZooKeeperSnapshot
from spark.sources.source import Source
from spark.sources.staged import StagedSource


def build_source(
    spec: SourceSpec, digester: Digester, encoder_secret: bytes | None, is_before_dual_write: bool = False
) -> Source:
    """Readers are imported when they are asked for: a comparison of staged rows needs none."""
    if isinstance(spec, KraftFiles):
        from spark.sources.kraft import KraftSource

        return KraftSource(spec, digester)
    if isinstance(spec, ZooKeeperSnapshot):
        from spark.sources.zookeeper_snapshot import ZooKeeperSnapshotSource

        return ZooKeeperSnapshotSource(spec, digester, encoder_secret, is_before_dual_write)
    return StagedSource.open(spec.directory)


@dataclass(frozen=True)
class Recipe:
    """What a task on another machine makes its source from: a description and references, no secret."""

    spec: SourceSpec
    digest_key: str
    encoder_secret: str | None
    is_before_dual_write: bool = False

    @classmethod
    def of(cls, job: CheckJob, spec: SourceSpec) -> "Recipe":
        return cls(spec, job.digest_key, job.encoder_secret, job.is_before_dual_write)

    def build(self) -> Source:
        key = resolve_secret(self.digest_key)
        if len(key) < DIGEST_BYTES:
            raise Permanent(f"the digest key of {self.digest_key} has {len(key)} bytes, it needs {DIGEST_BYTES} or more")
        encoder = resolve_secret(self.encoder_secret) if self.encoder_secret else None
        return build_source(self.spec, Digester(key), encoder, self.is_before_dual_write)


def resolve_secret(reference: str) -> bytes:
    """`env:NAME` or `file:/path`. A file's last line break is none of its secret."""
    place, _, name = reference.partition(":")
    if place == "file":
        return _read_secret(Path(name))
    if name not in os.environ:
        raise Permanent(f"{reference} is not set on this machine: set the variable where the rows are read")
    return os.environ[name].encode()


def _read_secret(path: Path) -> bytes:
    try:
        return path.read_bytes().removesuffix(b"\n")
    except OSError as unreadable:
        raise Permanent(f"the secret of file:{path} cannot be read on this machine: {unreadable.strerror}") from unreadable
