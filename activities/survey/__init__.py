"""What the preflight looks at, before the start and for a plan; two of its looks are asked again right before each stop."""
