"""Programs that are sent to a node, run there once, and are removed: one file each, the standard library only."""
