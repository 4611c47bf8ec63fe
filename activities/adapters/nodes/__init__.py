"""Nodes: a transport (how the machine is reached) × a service manager (how the process is started and stopped)."""
