"""Eight rooms of PyTorch lore with the same furniture; a missing piece is simply not there."""
