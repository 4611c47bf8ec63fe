"""What is compared, as splits that can be read one by one and yield Arrow batches of normalised rows."""
