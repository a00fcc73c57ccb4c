"""Where a number that is not finite came from: passes that are repeated, followed operation by operation."""
