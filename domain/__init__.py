"""What is true of Kafka migrations without any tool: data and pure functions, no I/O, no clock, no framework."""
