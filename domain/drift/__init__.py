"""What two sides of a cluster's metadata are compared by: rows of one shape, rules, findings, reports. Pure."""
