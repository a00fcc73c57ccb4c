"""What the source alone shows about speed and its measurement."""
