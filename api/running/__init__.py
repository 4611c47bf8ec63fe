"""Calls that reach Temporal and the ledger: starting, commands, orders to workers, and what is tried again."""
