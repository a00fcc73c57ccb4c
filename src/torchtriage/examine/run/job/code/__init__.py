"""The code of the user's program, as frames and as text, told from ours; nothing of it is run."""
