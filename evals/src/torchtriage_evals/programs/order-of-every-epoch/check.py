"""Each epoch has another order, and in each the ranks' shares are all samples, none twice."""

from typing import Any


def order(program: Any, rank: int, epochs: int = 3) -> list[list[int]]:
    seen: list[list[int]] = [[] for _ in range(epochs)]
    program.train(24, rank, 2, epochs, lambda epoch, batch: seen[epoch].extend(batch))
    return seen


def check(program: Any) -> None:
    first, second = order(program, 0), order(program, 1)
    for epoch, shares in enumerate(zip(first, second, strict=True)):
        every = sorted(shares[0] + shares[1])
        assert every == list(range(24)), f"epoch {epoch}: the ranks' shares are {every}"
    assert first[0] != first[1] != first[2] != first[0], "every epoch has the same order"
    assert first == order(program, 0), "a second run has another order"
