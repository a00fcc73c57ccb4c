"""Gradients written by hand."""
