"""An executable model of a migration, for tests that walk through all of it."""
