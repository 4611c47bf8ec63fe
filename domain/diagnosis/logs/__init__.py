"""What the logs of Kafka 3.9 and of its ZooKeeper say, and what it means. Pure."""
