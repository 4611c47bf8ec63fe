"""What runbooks are made of: commands of a shell, of Kafka's and of ZooKeeper's own tools."""
