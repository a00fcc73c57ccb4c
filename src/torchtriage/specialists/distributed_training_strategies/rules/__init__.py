"""What the source alone shows about training on several devices."""
