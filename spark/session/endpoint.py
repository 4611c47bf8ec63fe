"""Where a Spark Connect server listens, and what lets us in."""

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Endpoint:
    """`url`: `sc://host:port`, with the parameters of Spark Connect but without its token, which is never shown.

    `has_our_code`: its Python processes can import us. Where they cannot, each session brings our code along.
    """

    url: str
    token: str = field(default="", repr=False)
    has_our_code: bool = True


class SparkProvider(Protocol):
    """Gives a Connect server that answers. Blocks: call it from a thread."""

    def endpoint(self) -> Endpoint:
        """Raises Transient when there is none now, Permanent when there never will be."""
        ...

    def close(self) -> None:
        """Stops what this provider has started."""
        ...
