"""What the table names is marked in the installed torch, and what it names instead is not."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path

import pytest
import torch

import torchtriage
from torchtriage import triage
from torchtriage.examine.source.edits import changed
from torchtriage.examine.source.seen import look

FILE = Path(torchtriage.__file__).parent / "specialists/debugging_techniques/deprecated.toml"
TABLE = tomllib.loads(FILE.read_text())
made_for = pytest.mark.skipif(
    not torch.__version__.startswith(f"{TABLE['torch']}."), reason=f"the table is of torch {TABLE['torch']}"
)


def thing(name: str) -> object:
    home, _, word = name.rpartition(".")
    return getattr(importlib.import_module(home), word)


@made_for
@pytest.mark.parametrize("name", TABLE["names"])
def test_the_name_is_marked_and_its_successor_is_not(name: str) -> None:
    old, new = thing(name), TABLE["names"][name]
    is_marked = hasattr(old, "__deprecated__") or hasattr(old.__init__, "__deprecated__")  # type: ignore[misc]
    assert is_marked or "deprecated" in (old.__doc__ or "")
    assert not new or (callable(thing(new)) and not hasattr(thing(new), "__deprecated__"))


def test_the_old_name_warns_and_the_new_one_does_not(shown) -> None:
    weights = [torch.ones(3, requires_grad=True)]
    weights[0].grad = torch.ones(3)
    with pytest.warns(FutureWarning, match="clip_grad_norm"):
        shown("api-deprecated", "Bad").clip(weights)
    shown("api-deprecated", "Good").clip(weights)


def test_old_initializers_and_the_old_weight_norm_warn_though_nothing_marks_them() -> None:
    with pytest.warns(FutureWarning, match="weight_norm"):
        torch.nn.utils.weight_norm(torch.nn.Linear(2, 2))
    with pytest.warns(FutureWarning, match="xavier_uniform_"):
        torch.nn.init.xavier_uniform(torch.empty(2, 2))


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("torch.cuda.memory_cached()", "torch.cuda.memory_reserved()"),
        ("t.cuda.memory_cached()", "t.cuda.memory_reserved()"),
        ("cached()", None),
        ("torch.nn.utils.stateless.functional_call(m, p, x)", None),
        ("torch.nn.Container()", None),
        ("own.memory_cached()", ""),
    ],
)
def test_only_the_last_word_is_changed(line: str, after: str | None) -> None:
    text = f"import own\nimport torch\nimport torch as t\nfrom torch.cuda import memory_cached as cached\n{line}\n"
    found = look("a.py", text.encode(), tuple(triage.detectors("rules"))).evidence
    marked = [each for each in found if each.detector == "source/api-deprecated"]
    assert len(marked) == (after != "")
    for each in marked:
        assert changed(text.encode(), each.edits).decode().splitlines()[-1] == (after or line)
