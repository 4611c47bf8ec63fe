"""What is done to nodes, one after the other or a wave at once: files, stops, starts, and the proof that all is well."""
