"""Which steps are watched, by whom, and what that costs.

From the bottom: `governor` and `listeners` choose, `phases` adds up times, `session` is what all parts are given,
`patching` wraps functions, `stacks` samples, `rest` and `clock` end each step.
"""
