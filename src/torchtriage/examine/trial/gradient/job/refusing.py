"""What ends a trial before it has begun, in words for the user."""

from __future__ import annotations


class Refused(Exception):
    """what, where, do: as in TriageError. code: 2 for what was asked, 3 where nothing could be examined."""

    def __init__(self, what: str, where: str, do: str, code: int = 3) -> None:
        super().__init__(what)
        self.what, self.where, self.do, self.code = what, where, do, code


def said(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
