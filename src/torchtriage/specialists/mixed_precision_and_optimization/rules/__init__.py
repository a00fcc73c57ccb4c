"""What the source alone shows about mixed precision."""
