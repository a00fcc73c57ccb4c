"""How modules register, hold and build what they are made of."""
