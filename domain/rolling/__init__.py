"""Restarting nodes in waves: which may restart together, and whose file it is that they restart with."""
