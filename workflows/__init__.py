"""When things are done to a cluster: a small interpreter that hardly ever changes. Decisions are made in activities."""
