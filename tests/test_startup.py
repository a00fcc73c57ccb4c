"""What a bare import costs: nothing heavy, and a test that would notice."""

from __future__ import annotations

import subprocess
import sys

import pytest

import torchtriage

HEAVY = ("torch", "numpy", "rich", "jinja2", "plotly", "fsspec", "mcp", "pydantic", "anyio")


def loaded(code: str) -> set[str]:
    """The heavy packages that a fresh process has loaded after CODE."""
    script = f"{code}\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import torchtriage",
        "from torchtriage import ask; ask('NaN loss after epoch 3')",
        "import torchtriage.interface.cli",
        "from torchtriage import check; import torchtriage.triage",
        "import torchtriage; torchtriage.toolkit.watch, torchtriage.toolkit.TrainingState",
    ],
)
def test_nothing_heavy_is_imported(code: str) -> None:
    assert loaded(code) == set()


def test_the_toolkit_is_loaded_on_first_use_only() -> None:
    loading = "'torchtriage.toolkit' in sys.modules"
    script = f"import sys, torchtriage; print({loading}); torchtriage.toolkit.watch; print({loading})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_this_test_can_fail() -> None:
    assert loaded("import torchtriage, numpy") == {"numpy"}


def test_every_public_name_is_there_and_an_unknown_one_is_met_with_those_that_are() -> None:
    assert [name for name in torchtriage.__all__ if getattr(torchtriage, name) is None] == []
    assert set(torchtriage.__all__) < set(dir(torchtriage))
    with pytest.raises(AttributeError, match="it has Case, Page"):
        _ = torchtriage.nonsense
