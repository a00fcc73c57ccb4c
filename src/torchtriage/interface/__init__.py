"""The verbs as people and agents call them; no logic of their own."""
