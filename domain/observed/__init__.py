"""What was seen of a cluster: the parts of an observation and of a survey."""
