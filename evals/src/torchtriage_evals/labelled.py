"""Answers that people have labelled: what a judge is measured by before it may judge anything.

`store.labelled()` gives them, `store.scenarios()` the scenarios, `store.artefact(name)` the path of a recorded file.
"""

from __future__ import annotations

from msgspec import Struct


class Labelled(Struct, frozen=True, forbid_unknown_fields=True):
    """One answer and one point, and whether the answer makes the point.

    decoy: an answer that looks as if it made the point, and does not: the right words about another thing, a
    promise, the point denied, an order to the judge. quote: the words of the answer that make the point.
    """

    id: str
    query: str
    point: str
    answer: str
    made: bool
    decoy: bool = False
    quote: str = ""

    def __post_init__(self) -> None:
        if not (self.id and self.query.strip() and self.point.strip() and self.answer.strip()):
            raise ValueError(f"labelled answer {self.id!r}: an id, a query, a point and an answer")
        if self.decoy and self.made:
            raise ValueError(f"labelled answer {self.id!r}: a decoy does not make its point")
        if self.quote not in self.answer:
            raise ValueError(f"labelled answer {self.id!r}: {self.quote!r} does not stand in the answer")
