"""Mutants of real programs: how many faults that measurably hurt does torchtriage find? See README.md."""
