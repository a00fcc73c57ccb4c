"""Where tensors live, how long, and what they cost."""
