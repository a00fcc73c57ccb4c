"""Remedies by someone who had not seen how they are judged: trainings, edits that `check` proposes, and decoys."""
