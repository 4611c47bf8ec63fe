"""Searches for causes, each a function from a case to causes."""
