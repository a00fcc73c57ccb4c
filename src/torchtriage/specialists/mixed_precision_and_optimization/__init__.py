"""Half precision, loss scales and numbers that vanish."""
