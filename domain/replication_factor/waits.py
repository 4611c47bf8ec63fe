"""Waits that only this kind of migration has, and all of its waits with their words."""

from enum import StrEnum

from domain.waits import WAITS as GENERIC
from domain.waits import WaitText


class ReplicaWait(StrEnum):
    REPLICAS_COPYING = "replicas-copying"
    CHANGED_BY_OTHERS = "changed-by-others"
    TARGET_NOT_SERVING = "target-not-serving"


WAITS: dict[str, WaitText] = {
    **GENERIC,
    ReplicaWait.REPLICAS_COPYING: WaitText(
        "New replicas copy their partitions. The migration continues by itself once they are in sync.",
        "replicas copy their partitions",
        "every replica is in sync",
    ),
    ReplicaWait.CHANGED_BY_OTHERS: WaitText(
        "The replicas of a partition are neither those of before nor those of the plan, or its topic is gone. Nothing of it is "
        "changed any more. Give it back the replicas that the plan names, or ask for a rollback.",
        "another program or person has changed a partition",
        "partitions as the plan or the state before has them",
        for_people=True,
    ),
    ReplicaWait.TARGET_NOT_SERVING: WaitText(
        "A broker that is to get replicas is down, fenced, or has only cordoned log directories. Start it, or lift that.",
        "a broker that is to get replicas does not serve",
        "every broker that gets replicas serves",
    ),
}
