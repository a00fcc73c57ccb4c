"""What the source alone shows about how a module is built."""
