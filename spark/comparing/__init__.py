"""The comparisons, as pure functions of Arrow tables."""
