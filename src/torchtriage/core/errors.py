"""The one error that a user sees: what is wrong, where, and what to do about it."""

from __future__ import annotations

USAGE = 2
NOTHING_EXAMINED = 3


class TriageError(Exception):
    """A problem that is the caller's to solve, printed as three parts and without a traceback.

    what: the rule that was broken, with the offending value.
    where: the file, option or environment it concerns.
    do: the way out.
    code: the exit code of the command, 2 (usage or configuration) or 3 (nothing could be examined).
    """

    def __init__(self, what: str, where: str, do: str, code: int = USAGE) -> None:
        super().__init__(what, where, do, code)
        self.what, self.where, self.do, self.code = what, where, do, code

    def __str__(self) -> str:
        return f"{self.where}: {self.what}. {self.do}"
