"""Checkpoints as real frameworks write them, and such as attack whoever reads them."""
