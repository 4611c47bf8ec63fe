"""Batches of two looks compared by Spark: what the kernel says in one process, on a generated cluster with every loss."""

import random
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from domain.drift.message_manifest import MessageComparison
from domain.drift.messages import ReplicaLog
from domain.offsets import PartitionOffsets
from spark.engine.messages import run
from spark.engine.messages_on_spark import compare_on_spark
from spark.engine.progress import ignore
from tests.unit.message_cases import TOPIC_ID, Look, rows_of

TOPICS = ("orders", "ключ.é", "orders-1")
LOSSES = 60


def big_look(chance: random.Random) -> Look:
    look = Look()
    for topic in TOPICS:
        for number in range(4):
            rows = rows_of(topic, number, [chance.randint(1, 9) for _ in range(200)], chance.randint(0, 50))
            start, end = rows[0]["base_offset"], rows[-1]["last_offset"] + 1
            look.partitions[topic, number] = PartitionOffsets(topic, TOPIC_ID, number, start, end, False)
            for broker in (1, 2, 3):
                look.replicas[topic, number, broker] = ReplicaLog(topic, TOPIC_ID, number, broker, start, end, start, end)
                look.batches += [{**row, "broker": broker} for row in rows]
    return look


def lose(look: Look, chance: random.Random) -> None:
    for row in chance.sample(look.batches, LOSSES):
        match chance.choice(["crc", "size", "is_damaged", "drop"]):
            case "drop":
                look.batches.remove(row)
            case "is_damaged":
                row["is_damaged"] = True
            case name:
                row[name] += 1


@pytest.mark.parametrize("is_lossy", [True, False])
def test_spark_finds_what_the_kernel_finds_here(spark: Any, tmp_path: Path, is_lossy: bool) -> None:
    chance = random.Random(7)  # noqa: S311
    before = big_look(chance)
    after = before.copy()
    if is_lossy:
        lose(after, chance)
    chance.shuffle(after.batches)
    files = [(look.write(tmp_path / f"{name}.parquet"),) for name, look in (("before", before), ("after", after))]
    job = MessageComparison("messages", before.sight(), after.sight(), files[0], files[1], tmp_path / "here")
    here = run(job)
    there = run(replace(job, out=tmp_path / "there"), partial(compare_on_spark, spark, 5, ignore), "spark")
    assert there.finding_count == here.finding_count == (LOSSES if is_lossy else 0)
    assert (there.verdict, there.counts, there.content_hash) == (here.verdict, here.counts, here.content_hash)
    assert pq.read_table(there.findings).equals(pq.read_table(here.findings))
    print(there.seconds, here.seconds, here.counts["batch"])


def test_a_side_without_any_file_has_lost_all(spark: Any, tmp_path: Path) -> None:
    before = big_look(random.Random(1))  # noqa: S311
    file = before.write(tmp_path / "before.parquet")
    job = MessageComparison("messages", before.sight(), before.sight(), (file,), (), tmp_path / "here")
    there = run(replace(job, out=tmp_path / "there"), partial(compare_on_spark, spark, 3, ignore), "spark")
    assert there.counts["batch"].missing_right == there.counts["batch"].left == len(before.batches)
    assert there.content_hash == run(job).content_hash
