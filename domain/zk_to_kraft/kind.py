"""ZooKeeper to KRaft, as the rest of the product sees it."""

from domain.kinds import Kind
from domain.zk_to_kraft.afterwards import next_steps
from domain.zk_to_kraft.checks.catalogue import FINDING_CODES
from domain.zk_to_kraft.losses import OF_A_NODE, OF_THE_CLUSTER, names_in
from domain.zk_to_kraft.policy import ZkToKraftPolicy
from domain.zk_to_kraft.steps import FINAL_GATES, KIND, GateName
from domain.zk_to_kraft.wanted import ZkToKraftWanted, achieved, aimed

ZK_TO_KRAFT = Kind(
    name=KIND,
    finding_codes=FINDING_CODES,
    loss_names=names_in,
    loss_forms=(*OF_THE_CLUSTER, *(f"{kind}-NODE" for kind in OF_A_NODE)),
    next_steps=next_steps,
    gates=tuple(GateName),
    final_gates=FINAL_GATES,
    policy=ZkToKraftPolicy,
    wanted=ZkToKraftWanted,
    aimed=aimed,
    achieved=achieved,
)
