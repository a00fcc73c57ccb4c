"""Trials: a job or a function is executed several times, and what the executions show is compared."""
