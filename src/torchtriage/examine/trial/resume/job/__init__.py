"""What runs inside each leg: it writes down what the training holds, when, and what it saves and loads.

Loaded by file path under a private name: standard library and the job's torch only, Python 3.10 or later.
"""
