"""The committed examples are the generated ones, and valid."""

from domain.cluster import ClusterSpec
from domain.zk_to_kraft.wanted import ZkToKraftWanted
from playground.example import EXAMPLES, example_cluster
from playground.wanted import before, wanted_of


def test_the_committed_examples_are_current() -> None:
    """Otherwise: python -m playground.example."""
    spec = ClusterSpec.model_validate_json((EXAMPLES / "cluster.json").read_text(encoding="utf-8"))
    wanted = ZkToKraftWanted.model_validate_json((EXAMPLES / "zk-to-kraft.json").read_text(encoding="utf-8"))
    assert (spec, wanted) == (before(example_cluster()), wanted_of(example_cluster()))
