"""Whether a job repeats: two runs of one command, held against one another step by step."""
