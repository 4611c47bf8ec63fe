"""Pure readings of an observation, the same for every kind of migration: who runs, who leads, what is in sync."""
