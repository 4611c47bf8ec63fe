"""ZooKeeper as it is beside KRaft as it is, and clients' data before beside clients' data after."""
