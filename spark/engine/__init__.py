"""Who runs a check: this process, or Spark. Both give the same report."""
