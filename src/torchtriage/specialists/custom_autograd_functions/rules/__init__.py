"""What the source alone shows about custom autograd functions."""
