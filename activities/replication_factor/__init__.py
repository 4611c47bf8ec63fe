"""What only changes of replication factors look at and do."""
