"""Ports without a world behind them: one simulated cluster in memory, for tests of workflows and activities.

`FakeCluster` is where to start. Its ports pass the conformance suites of the real adapters.
"""
