"""A node's gauges, through whichever agent runs in its JVM."""
