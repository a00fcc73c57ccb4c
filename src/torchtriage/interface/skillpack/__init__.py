"""The skill pack: what a coding agent loads, built from the rooms and put where its client looks."""
