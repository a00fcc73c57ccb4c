"""What the source alone shows about tensors and memory."""
