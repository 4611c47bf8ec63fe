"""Causes that only this kind of migration has. Pure."""
