"""A small house of rooms on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

PAGE = """\
+++
title = "Gradients are clipped while still scaled"
class = "wrong"
confidence = "high"
persona = "default"
signs = ["source/clip-before-unscale", "run/clips > 0.3"]
explains = ["loss-scale-trouble"]
proof = "cpu"

[[remedies]]
id = "unscale-first"
title = "Unscale first"
when = "Always."
cost = "None."
verify = "The norm no longer follows the scale."
edit = "safe"

[[remedies]]
id = "clip-less"
title = "Clip less"
when = "Never."
cost = "Time."
verify = "It does not."
+++

## What happens
The norm is multiplied by the scale.

## Bad
```python
clip()
```

## Good
```python
unscale()
clip()
```

## Not this
Clipping without a scaler.
"""

SYMPTOMS = """\
[loss-scale-trouble]
title = "The loss scale collapses"
stage = "diagnose"
because = "The scale is measured before it is changed."
phrases = ["loss scale", "scaler skips"]

[[loss-scale-trouble.signatures]]
name = "no-inf-checks"
contains = "no inf checks"
pattern = "No inf checks were recorded"
faults = ["clip-before-unscale"]
"""

VERDICTS = """\
[compute-bound]
title = "The step computes"
signs = ["run/compute-share > 0.7"]

[launch-bound]
title = "The device waits for launches"
unseen = "a profiler trace"
"""


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A folder of rooms with one room in it."""
    room = tmp_path / "specialists" / "mixed_precision"
    (room / "faults").mkdir(parents=True)
    (room / "faults" / "clip-before-unscale.md").write_text(PAGE)
    (room / "symptoms.toml").write_text(SYMPTOMS)
    (room / "verdicts.toml").write_text(VERDICTS)
    (room / "room.toml").write_text('does = "Half precision."\nwhy = "It vanishes."\n')
    (tmp_path / "specialists" / "__pycache__").mkdir()
    return room.parent


@pytest.fixture
def changed(house: Path) -> Callable[[str, str, str], Path]:
    """Replaces a piece of text in a file of the room."""

    def change(name: str, old: str, new: str) -> Path:
        path = house / "mixed_precision" / name
        text = path.read_text()
        assert dedent(old) in text
        path.write_text(text.replace(old, new))
        return path

    return change
