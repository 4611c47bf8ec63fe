"""One reading of a whole snapshot before any row is made of it: is it what its server wrote, and what must each part of it
know of the others?
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from domain.errors import Permanent
from spark.codec.zookeeper_digest import VERSION, Digest, digest_of
from spark.codec.zookeeper_snapshot import Content, Frame, Nodes, TreeDigest, nodes_from
from spark.sources.topic_znodes import WITHOUT_ID, is_without_id
from spark.sources.zookeeper_regions import regions_of, starts_with, topics_folder

TOLD = 20
"""So many names are told one by one."""


@dataclass
class Survey:
    """Of nodes as they come. Names are those of topics."""

    digest: Digest = field(default_factory=Digest)
    topics: set[str] = field(default_factory=set)
    configured: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    without_id: set[str] = field(default_factory=set)
    count: int = 0
    """Of nodes below the chroot."""

    def add(self, nodes: Nodes, chroot: str) -> None:
        self.digest += digest_of(nodes)
        regions = regions_of(nodes, chroot)
        topics = nodes.taken(regions.topics)
        self.count += len(regions.topics) + len(regions.others)
        names = [name.decode(errors="replace") for name in _names(topics.paths(), topics_folder(chroot))]
        self.topics.update(names)
        self.without_id.update(name for name, content in zip(names, topics.contents(), strict=True) if is_without_id(content))
        others = nodes.taken(regions.others)
        for folder, found in (("/config/topics/", self.configured), ("/admin/delete_topics/", self.deleted)):
            prefix = f"{chroot}{folder}".encode()
            found.update(
                name.decode(errors="replace") for name in _names(others.taken(starts_with(others, prefix)).paths(), prefix)
            )


@dataclass(frozen=True)
class Known:
    """What every part has to know. `left_out`: topics whose znodes are no rows."""

    left_out: frozenset[str]
    not_read: tuple[str, ...]


def all_nodes(content: Content, name: str, begin: int, end: int) -> Iterator[Nodes]:
    """`Permanent` where a node does not end at `end`: then the file is damaged, or was cut in the wrong place."""
    while begin < end:
        nodes = nodes_from(content, name, begin, end)
        yield nodes
        begin = nodes.stop


def surveyed(content: Content, name: str, frame: Frame, chroot: str) -> Known:
    survey = Survey()
    for nodes in all_nodes(content, name, frame.begin, frame.end):
        survey.add(nodes, chroot)
    if not survey.count:
        raise Permanent(f"{name} has nothing below {chroot}/: is {chroot} the chroot of this cluster?")
    untold = _ensure_equal(survey.digest, frame.digest, name)
    return _known(survey, untold)


def _ensure_equal(ours: Digest, theirs: TreeDigest | None, name: str) -> tuple[str, ...]:
    """`Permanent` where they differ. What is told where there is nothing to compare with."""
    if theirs is None or theirs.zxid == 0:
        why = "its server wrote none" if theirs is None else "its server had none yet when it wrote the file"
        return (f"the digest of {name}: {why}, so nothing proves that the tree is of one moment",)
    if theirs.version != VERSION:
        return (f"the digest of {name}: it is of version {theirs.version}, and only version {VERSION} is known",)
    if not ours.equals(theirs.value):
        told = f"{ours.value % 2**64:#x} from its {ours.count} nodes, {theirs.value % 2**64:#x} in the file"
        advice = f"it was written while transactions up to {theirs.zxid:#x} came in; take one of a quiet server"
        raise Permanent(f"{name} is not the tree of one moment: the digest is {told}; probably {advice}")
    return ()


def _known(survey: Survey, untold: tuple[str, ...]) -> Known:
    without_id = sorted(survey.without_id - survey.deleted)
    orphans = survey.configured - survey.topics
    missing = [f"/brokers/topics/{topic} {WITHOUT_ID}" for topic in without_id]
    return Known(frozenset(survey.deleted | orphans), (*untold, *_few(missing)))


def _few(told: list[str]) -> list[str]:
    return told if len(told) <= TOLD else [*told[:TOLD], f"… and {len(told) - TOLD} more like these"]


def _names(paths: Iterable[bytes], folder: bytes) -> Iterator[bytes]:
    return (path[len(folder) :] for path in paths if b"/" not in path[len(folder) :])
