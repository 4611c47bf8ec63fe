"""What a rehearsal of Kafka's copy needs, and what it has shown. Pure."""
