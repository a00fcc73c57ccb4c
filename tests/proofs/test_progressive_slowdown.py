"""A figure over everything so far reads ever more in each step; one that is updated reads the new batch."""

from __future__ import annotations

from itertools import pairwise

import torch


class Counted(list):  # type: ignore[type-arg]
    """A list that counts the entries that are read in a loop over it."""

    read = 0

    def __iter__(self):
        for each in super().__iter__():
            self.read += 1
            yield each


def test_the_entries_read_in_a_step_grow_with_its_number(shown) -> None:
    bad, read = shown("progressive-slowdown", "Bad"), []

    def accuracy(history) -> float:
        counted = Counted(history)
        value = bad.accuracy(counted)
        read.append(counted.read)
        return value

    bad.train(20, accuracy)
    assert {after - before for before, after in pairwise(read)} == {1024}
    assert read[-1] == 20 * read[0]


def test_both_give_the_same_figures(shown) -> None:
    told = []
    for section in ("Bad", "Good"):
        torch.manual_seed(0)
        told.append(shown("progressive-slowdown", section).train(5))
    assert told[0] == told[1]
