"""Bytes of Kafka and ZooKeeper, and what they say. numpy and Arrow only, no Spark."""
