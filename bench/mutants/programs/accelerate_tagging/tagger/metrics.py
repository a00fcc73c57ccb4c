from collections.abc import Sequence

from torch import Tensor

from .corpus import IGNORE

Span = tuple[int, int, str]


def spans(tags: Sequence[str]) -> set[Span]:
    """Start, end and kind of the entities in a sentence; an I without a fitting B opens one too."""
    found: set[Span] = set()
    start, kind = 0, ""
    for position, tag in enumerate([*tags, "O"]):
        prefix, _, name = tag.partition("-")
        if kind and (prefix != "I" or name != kind):
            found.add((start, position, kind))
            kind = ""
        if name and not kind:
            start, kind = position, name
    return found


class SpanScore:
    """Precision, recall and F1 over entities, as counted over a whole evaluation."""

    def __init__(self, tag_names: Sequence[str]) -> None:
        self.tag_names = tag_names
        self.hits = self.predicted = self.expected = 0

    def add(self, predicted: Tensor, expected: Tensor) -> None:
        for guess, truth in zip(predicted.tolist(), expected.tolist(), strict=True):
            pairs = [(g, t) for g, t in zip(guess, truth, strict=True) if t != IGNORE]
            guessed = spans([self.tag_names[g] for g, _ in pairs])
            wanted = spans([self.tag_names[t] for _, t in pairs])
            self.hits += len(guessed & wanted)
            self.predicted += len(guessed)
            self.expected += len(wanted)

    def compute(self) -> dict[str, float]:
        return {
            "precision": self.hits / max(1, self.predicted),
            "recall": self.hits / max(1, self.expected),
            "span_f1": 2 * self.hits / max(1, self.predicted + self.expected),
        }
