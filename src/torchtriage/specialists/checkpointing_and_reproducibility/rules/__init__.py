"""What the source alone shows about saving, resuming and repeating."""
