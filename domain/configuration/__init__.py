"""What a node's properties file says, read as Kafka reads it."""
