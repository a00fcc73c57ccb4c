"""What is said of very many ranks alike is said once."""

from __future__ import annotations

from collections.abc import Iterable

from torchtriage.core.evidence import Inconclusive

MANY = 8
"""Rows from which on they become one: the ranks of one machine are still told one by one where they are fewer."""


def fewer(rows: Iterable[Inconclusive]) -> tuple[Inconclusive, ...]:
    """ROWS, of which MANY and more with the same way out become one, at the place of their first."""
    alike: dict[tuple[str, str], list[Inconclusive]] = {}
    for row in rows:
        alike.setdefault((row.detector, row.unblock), []).append(row)
    made: list[Inconclusive] = []
    for (detector, unblock), each in alike.items():
        if len(each) < MANY:
            made += each
        else:
            made.append(Inconclusive(detector, f"{each[0].why}; and {len(each) - 1:,} more files alike", unblock))
    return tuple(made)
