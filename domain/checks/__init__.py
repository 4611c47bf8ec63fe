"""Preflight checks that every kind of migration may ask, and what a check is."""
