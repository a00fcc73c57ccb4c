"""Renders a whole Case, a route or a page for its reader. The same case gives the same bytes, and what came from a job,
a log or a file is data in every form.
"""
