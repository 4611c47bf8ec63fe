"""Why nothing happens: what is looked up for people, on nodes, on machines, in ZooKeeper, and what is noted for that."""
