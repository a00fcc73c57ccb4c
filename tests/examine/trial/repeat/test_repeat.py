"""A sample of the planted differences, in legs of one forking process; bench/trials.py runs them all, as a user does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from repeated import Forked, Server

from torchtriage.examine.trial.repeat.trial import Repeat, repeat

CASES = Path(__file__).parents[3] / "cases" / "trials" / "repeat"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def head(name: str) -> dict[str, str]:
    lines = (CASES / f"{name}.py").read_text().splitlines()
    return dict(line[2:].split(": ", 1) for line in lines if line.startswith("# ") and ": " in line)


def tried(name: str, server: Server, folder: Path) -> Repeat:
    return repeat(Forked(server, CASES / f"{name}.py", folder))


@pytest.mark.parametrize(
    ("name", "held"),
    [
        ("noise_in_a_backward_1", "entropy"),
        ("weights_shaken_after_the_update", "entropy"),
        ("files_shuffled_by_python", "seeds"),
        ("no_modules_at_all", "entropy"),
    ],
)
def test_step_phase_module_and_reason_are_told(name: str, held: str, server: Server, tmp_path: Path) -> None:
    found, wanted = tried(name, server, tmp_path), head(name)
    assert found.place is not None
    assert (found.place.step, found.place.phase) == (int(wanted["step"]), wanted["phase"])
    assert wanted.get("module", "null") in {"null", found.place.module}
    assert found.explained is not None
    assert found.explained.what == held


@pytest.mark.parametrize("name", ["healthy_evaluation_on_noise", "healthy_evaluation_in_inference_mode"])
def test_what_trains_alike_has_no_difference(name: str, server: Server, tmp_path: Path) -> None:
    found = tried(name, server, tmp_path)
    assert (found.place, found.unseen, found.tried) == (None, (), ())
    assert found.steps == found.counts[0] > 3
