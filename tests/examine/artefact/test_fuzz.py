"""Files with something broken in them never end a reader, and never hold it up."""

from __future__ import annotations

import gzip
from contextlib import suppress
from pathlib import Path
from typing import Any

import artefacts
import pytest
from mutated import mutations

from torchtriage.core.errors import TriageError
from torchtriage.core.evidence import Observed
from torchtriage.examine.artefact import curves, logs
from torchtriage.examine.artefact.kinds import found
from torchtriage.examine.detector import perform
from torchtriage.triage import detectors

REAL = Path(__file__).parents[2] / "cases/artefacts"
COUNT = 2000
SEEDS = {
    "logs": [(REAL / f"{name}.log").read_bytes() for name in ("error", "kill", "tee", "nan")],
    "curves": [(REAL / "diverges.tfevents").read_bytes()[:3000], (REAL / "diverges.csv").read_bytes()[:3000]],
}


@pytest.mark.parametrize(("kind", "reader"), [("logs", logs), ("curves", curves)])
def test_no_broken_file_ends_a_reader_or_a_detector(kind: str, reader: Any, tmp_path: Path) -> None:
    looks = tuple(detectors("readings", f"examine.artefact.{kind}"))
    for number, data in enumerate(mutations(SEEDS[kind], COUNT)):
        path = tmp_path / "x"
        path.write_bytes(gzip.compress(data, 1)[: len(data) // 2] if number % 7 == 0 else data)
        noun = reader.read([str(path)])
        reader.measurements(noun)
        failed = [each for each in perform(looks, noun) if not isinstance(each, Observed) and "failed" in each.why]
        assert failed == []


def test_no_broken_file_ends_the_look_at_what_it_is(tmp_path: Path) -> None:
    seeds = [value for name, value in vars(artefacts).items() if name.isupper() and isinstance(value, bytes)]
    path = tmp_path / "x"
    for data in mutations([*seeds, *(gzip.compress(seed) for seed in seeds)], COUNT):
        path.write_bytes(data)
        with suppress(TriageError):  # in words, for what is none of the kinds
            found([str(path)])
