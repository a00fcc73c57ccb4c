"""A schedule of two steps refuses the third; one of the right length comes to its end."""

from __future__ import annotations

import pytest


def test_a_schedule_that_is_counted_in_epochs_is_over_within_the_first(shown) -> None:
    with pytest.raises(ValueError, match=r"Tried to step 3 times\. The specified number of total steps is 2"):
        shown("schedule-exceeded", "Bad").train()


def test_a_schedule_of_all_steps_is_not(shown) -> None:
    assert shown("schedule-exceeded", "Good").train() == 16
