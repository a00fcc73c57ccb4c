"""What is written: the file of each process, rings of last rows, and no secrets."""
