"""Inputs of one size in a folder: made once, whole or not at all."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from bench import segments
from bench.raw import KINDS, RawCluster
from spark.engine.local import LocalEngine
from spark.job import CheckJob, KraftFiles, SourceSpec, StagedRows, ZooKeeperSnapshot

FORMAT = 1
"""Of what is written here. Another one is made anew."""
Told = dict[str, int]


def raw_job(inputs: Path, out: Path) -> CheckJob:
    return job(inputs, out, ZooKeeperSnapshot(path=inputs / "snapshot.4d"), KraftFiles(directory=inputs / "kraft"))


def staged_job(inputs: Path, out: Path) -> CheckJob:
    staged = inputs / "staged"
    return job(inputs, out, StagedRows(directory=staged / "left"), StagedRows(directory=staged / "right"))


def job(inputs: Path, out: Path, left: SourceSpec, right: SourceSpec) -> CheckJob:
    key = f"file:{inputs / 'digest.key'}"
    return CheckJob(id="bench", left=left, right=right, kinds=KINDS, out=out, digest_key=key)


def cluster_inputs(folder: Path, partitions: int) -> tuple[Path, Told]:
    """Where they are, and what is to be found in them. Rows are staged by the local engine."""

    def make(partial: Path) -> Told:
        raw = RawCluster.of(partitions)
        raw.write(partial)
        LocalEngine().run(raw_job(partial, partial / "staged"))
        return raw.truth()

    return _made(folder / f"cluster-{partitions}", make)


def segment_inputs(folder: Path, mebibytes: int) -> tuple[Path, Told]:
    def make(partial: Path) -> Told:
        segments.write_segments(partial, mebibytes)
        return segments.truth(partial, mebibytes)

    return _made(folder / f"segments-{mebibytes}", make)


def _made(folder: Path, make: Callable[[Path], Told]) -> tuple[Path, Told]:
    known = folder / "truth.json"
    if known.exists():
        told = json.loads(known.read_text())
        if told["format"] == FORMAT:
            return folder, told["truth"]
    partial = folder.with_name(f"{folder.name}.partial")
    for old in (folder, partial):
        shutil.rmtree(old, ignore_errors=True)
    partial.mkdir(parents=True)
    truth = make(partial)
    (partial / known.name).write_text(json.dumps({"format": FORMAT, "truth": truth}))
    partial.rename(folder)
    return folder, truth
