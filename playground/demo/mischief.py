"""Somebody edits a znode behind Kafka's back, in the middle of a migration, and mends it when the report has named it."""

from typing import Any

from playground.by_hand import ByHand

PATH, KEY, VALUE = "/config/topics/orders", "min.insync.replicas", "1"


class Mischief:
    """At most once each: `do`, then `mend`."""

    def __init__(self, by_hand: ByHand) -> None:
        self._by_hand = by_hand
        self._before: dict[str, Any] | None = None
        self.is_mended = False

    @property
    def is_done(self) -> bool:
        return self._before is not None

    def do(self) -> str:
        """What was done, in words."""
        self._before = self._by_hand.znode(PATH) or {}
        config = {**self._before.get("config", {}), KEY: VALUE}
        self._by_hand.put_znode(PATH, {**self._before, "config": config})
        return f"the demo sets {KEY}={VALUE} in ZooKeeper's {PATH}, past Kafka"

    def mend(self) -> str:
        """What was done, in words."""
        self._by_hand.put_znode(PATH, self._before or {})
        self.is_mended = True
        return f"the demo puts {PATH} back as it was; it is compared again"
