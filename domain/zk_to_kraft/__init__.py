"""From ZooKeeper to KRaft, in place, brokers serving all the time (KIP-866 as Kafka 3.9 shipped it)."""
