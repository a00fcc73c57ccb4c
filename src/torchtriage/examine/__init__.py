"""Looks at what there is and says what it saw, or why it could not: machinery, no PyTorch lore."""
