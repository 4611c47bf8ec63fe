"""The committed example is the generated one, and valid."""

from domain.cluster import ClusterSpec
from playground.example import EXAMPLE_FILE, example_cluster


def test_the_committed_example_is_current() -> None:
    """Otherwise: python -m playground.example."""
    assert ClusterSpec.model_validate_json(EXAMPLE_FILE.read_text(encoding="utf-8")) == example_cluster()
