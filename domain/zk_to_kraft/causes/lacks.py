"""What a node that runs says that it lacks, and what to do about it: memory, open files."""

from dataclasses import replace

from domain.diagnosis.logs.lines import Found, current, found_in, of_this_process
from domain.diagnosis.logs.running import OUT_OF_MEMORY, SILENCES, who_asked
from domain.zk_to_kraft.causes.case import Looked

FEW_PARTITIONS = 20_000
"""Whose metadata take some 60 MiB of a heap."""


def lack_of(looked: Looked, node_id: int) -> Found | None:
    """By what its log has said of late, with the whole fix; `None` where it says nothing of it."""
    lines = current(looked.hints.logs.get(node_id, ()))
    for found in found_in(lines, SILENCES):
        exact = who_asked(found, of_this_process(lines))
        return replace(exact, told=replace(exact.told, fix=fix_of_lack(looked, exact)))
    return None


def fix_of_lack(looked: Looked, found: Found) -> str:
    """Of one that runs."""
    told = found.told
    then = " Then restart it." if told.cure != told.fix else ""
    return f"{before_more_heap(looked, told.name)}{told.cure}{then}"


def before_more_heap(looked: Looked, kind: str) -> str:
    """What to look for first where a node had no heap left, and the cluster's metadata are not what has filled it."""
    kafka = looked.observation.kafka
    if kind != OUT_OF_MEMORY.name or kafka is None or kafka.partition_count > FEW_PARTITIONS:
        return ""
    return (
        f"The metadata of {kafka.partition_count:,} partitions do not fill a heap: look first for what does. Whoever connects "
        "to its listener and does not speak Kafka (a scanner for vulnerabilities, a health check, a client with a TLS that it "
        "has not got) has it reserve up to socket.request.max.bytes (100 MiB) for each connection, and so do large requests: "
        "see who connects there (`ss -tn`, the firewall's log, the scanner's schedule), keep that from its port, or lower "
        "socket.request.max.bytes. If it is none of that: "
    )
