"""What goes out: resources, problems, and the addresses that they point to."""
