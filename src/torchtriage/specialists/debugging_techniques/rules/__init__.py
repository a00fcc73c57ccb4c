"""What the source alone shows about training loops that run and do not learn."""
