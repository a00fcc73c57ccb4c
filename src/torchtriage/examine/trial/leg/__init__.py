"""A leg: one execution of the user's own command, in a folder that mirrors theirs and that it alone writes to."""
