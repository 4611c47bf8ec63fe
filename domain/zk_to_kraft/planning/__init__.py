"""What a migration would do, told before anything is touched. Pure."""
