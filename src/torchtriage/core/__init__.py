"""The nouns: what flows from station to station. Frozen, no torch, no lore."""
