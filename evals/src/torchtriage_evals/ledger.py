"""What has been spent, and the end of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from torchtriage import TriageError
from torchtriage_evals.trial import Spent

if TYPE_CHECKING:
    from inspect_ai.model import ModelUsage

MILLION = 1e6


class LimitReached(Exception):
    """No call may be made any more."""


class Price(Struct, frozen=True):
    """Dollars for a million tokens."""

    tokens_in: float
    tokens_out: float

    def of(self, tokens_in: int, tokens_out: int) -> float:
        return (tokens_in * self.tokens_in + tokens_out * self.tokens_out) / MILLION


class Ledger:
    """Adds up the dollars of all calls, the judge's too, and refuses the next one when the limit is reached.

    Calls that are under way when it is reached are still paid: at most as many as run at the same time.
    """

    def __init__(self, limit: float | None, prices: Mapping[str, Price]) -> None:
        self.limit, self.spent, self._prices = limit, 0.0, prices
        self.ended = False

    def check(self) -> None:
        """Raises LimitReached once the limit has been spent."""
        if self.limit is not None and self.spent >= self.limit:
            self.ended = True
            raise LimitReached

    def add(self, model: str, usage: ModelUsage | None) -> Spent:
        """Enters one call of MODEL. A price that was given counts before the one that the library knows."""
        if usage is None:
            return Spent()
        read = usage.input_tokens + (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
        price = self._prices.get(model)
        dollars = price.of(read, usage.output_tokens) if price else usage.total_cost
        self.spent += dollars or 0.0
        return Spent(read, usage.output_tokens, dollars)


def price(text: str) -> Price:
    """A price as it is written on the command line, "IN,OUT"; raises TriageError for anything else."""
    try:
        tokens_in, tokens_out = (float(part) for part in text.split(","))
    except ValueError as error:
        do = "Give dollars for a million tokens read and written: --price 3,15"
        raise TriageError(f"{text!r} is no price", "--price", do) from error
    if not (0 <= tokens_in < float("inf") and 0 <= tokens_out < float("inf")):
        raise TriageError(f"{text!r} is no price", "--price", "Prices are finite and not negative.")
    return Price(tokens_in, tokens_out)
