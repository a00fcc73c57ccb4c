"""TrainingState as a callback: a fit of Lightning that was broken off goes on bit by bit."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from forked import Server

from torchtriage.core.errors import TriageError

MADE = Path(__file__).parent.parent.parent / "made"


@pytest.fixture(scope="module")
def python() -> Iterator[Server]:
    there = [each for each in ("lightning", "transformers.trainer") if find_spec(each.partition(".")[0])]
    server = Server("torch", "torch._dynamo", *there, PYTHONWARNINGS="ignore")
    yield server
    server.close()


def fitted(python: Server, folder: Path, script: str, **told: Any) -> dict[str, Any]:
    paths = os.pathsep.join([str(MADE), *sys.path])
    done = python.run(str(MADE / f"{script}.py"), json.dumps(told), place=folder, PYTHONPATH=paths)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.skipif(find_spec("lightning") is None, reason="lightning is not installed: pip install lightning")
@pytest.mark.parametrize(
    ("every", "workers", "accumulate", "stop", "last"),
    [(4, 0, 1, 11, 8), (4, 2, 1, 9, 8), (6, 0, 1, 13, 12), (None, 2, 1, 14, 12), (2, 0, 4, 3, 2)],
)
def test_a_fit_that_was_broken_off_goes_on_bit_by_bit(
    python: Server, tmp_path: Path, *, every: int | None, workers: int, accumulate: int, stop: int, last: int
) -> None:
    said = fitted(python, tmp_path, "fitted", every=every, workers=workers, accumulate=accumulate, stop=stop)
    assert said["last"] == last
    kept = [each for each in said["before"] if each[0] < last]
    assert kept + said["after"] == said["straight"]
    assert len(said["straight"]) == 24


def test_a_callback_says_what_it_cannot_do_yet(tmp_path: Path) -> None:
    from torchtriage.toolkit.keeping import Keeping

    with pytest.raises(TriageError, match="no training has begun"):
        _ = Keeping(tmp_path).state
    with pytest.raises(TriageError, match="every=0 is no number of steps"):
        Keeping(tmp_path, 0)


@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed: pip install transformers")
@pytest.mark.parametrize(
    ("every", "workers", "augment", "stop", "last"),
    [(4, 0, False, 11, 8), (4, 2, False, 11, 8), (None, 0, True, 14, 12), (6, 2, True, 13, 12)],
)
def test_a_train_that_was_broken_off_goes_on_bit_by_bit(
    python: Server, tmp_path: Path, *, every: int | None, workers: int, augment: bool, stop: int, last: int
) -> None:
    said = fitted(python, tmp_path, "tuned", every=every, workers=workers, augment=augment, stop=stop)
    assert said["last"] == last
    kept = [each for each in said["before"] if each[0] < last]
    assert kept + said["after"] == said["straight"]
    assert len(said["straight"]) == 24
