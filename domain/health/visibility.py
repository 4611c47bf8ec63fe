"""Whether keeperless-activities sees anything of the nodes: if not, it runs on another machine than they do."""

from domain.cluster import ClusterSpec
from domain.observed.observation import Observation

SEES_NOTHING = "it sees neither the properties file nor the process of any broker"


WHERE_IT_BELONGS = (
    "It runs on another machine than the nodes, or in a container, or mount namespace, without their folders: stop that one, "
    "and start keeperless-activities on their machine, with the folders of their files, data and pid files at the same paths. "
    "Where it is right, see whether a volume is not mounted there any more (`findmnt`). Restore no file, and restart no node, "
    "before that is known."
)


def is_elsewhere(seen: Observation, spec: ClusterSpec) -> bool:
    """Whether whoever looked could read that there is nothing, of each of them. What does not answer is not nothing."""
    brokers = [seen.node(broker.id) for broker in spec.brokers]
    return all(
        view.disk is not None and view.disk.file is None and view.process is not None and not view.process.is_running
        for view in brokers
    )
