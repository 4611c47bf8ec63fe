"""Changes of the replication factor of topics while they are written. Pure: what to place where, and whether that may be."""
