"""What torch does, as data: a row for each operator, and the names of what is no operator."""
