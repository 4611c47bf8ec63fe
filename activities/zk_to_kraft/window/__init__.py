"""The revert window: the KRaft controllers give way to a ZooKeeper controller, and what they kept is removed."""
