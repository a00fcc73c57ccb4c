"""Reads the rooms' data files into nouns and audits them. It never imports a room's Python."""
