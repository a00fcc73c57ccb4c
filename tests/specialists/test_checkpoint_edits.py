"""The edits of the checkpointing room mend the finding that they were handed out for, and make no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from torchtriage import triage
from torchtriage.catalog import walk
from torchtriage.catalog.page import read

HEAD = "import copy\nimport os\nimport torch\nfrom torch import nn\n"
BEST = """
def fit(model: nn.Module, loader, val, optimizer: torch.optim.Optimizer):
    best = 0.0
    for epoch in range(9):
        for x in loader:
            model(x).backward()
            optimizer.step()
            optimizer.zero_grad()
        if val(model) > best:
            kept = {kept}
    model.load_state_dict(kept)
"""
LOST = """
def load(model: nn.Module, größe, path):
    grün = 'ä'; torch.save({{'ä': model.state_dict}}, path)
    {name} = {name}.load_state_dict(torch.load(path)['ä'])
    return {name}
"""
WHOLE = """
def load(model: nn.Module):
    torch.save({"model": model.state_dict(), "epoch": 3}, "model.pt")
    state = torch.load("model.pt")
    model.load_state_dict(state)
"""
CASES = {
    "copied": (HEAD + BEST.format(kept="model.state_dict()"), "copy.deepcopy(model.state_dict())"),
    "copied once": (HEAD + BEST.format(kept="model.state_dict().copy()"), "copy.deepcopy(model.state_dict())"),
    "cloned": (HEAD.replace("import copy\n", "") + BEST.format(kept="model.state_dict()"), ".detach().clone() for"),
    "called": (HEAD + LOST.format(name="model"), "{'ä': model.state_dict()}"),
    "kept": (HEAD + LOST.format(name="model"), "    model.load_state_dict(torch.load(path)['ä'])"),
    "named": (HEAD + WHOLE, 'model.load_state_dict(state["model"])'),
}


def mended(path: Path) -> str:
    data = path.read_bytes()
    edits = {
        (edit.start, edit.end, edit.text)
        for finding in triage.check([path]).findings
        for item in finding.evidence
        for edit in item.edits
    }
    for start, end, text in sorted(edits, reverse=True):
        data = data[:start] + text.encode() + data[end:]
    path.write_bytes(data)
    return data.decode()


@pytest.mark.parametrize("name", CASES)
def test_the_edit_mends_what_it_was_handed_out_for(name: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    source, wanted = CASES[name]
    path.write_text(source)
    after = mended(path)
    ast.parse(after)
    assert wanted in after
    assert [finding.fault.slug for finding in triage.check([path]).findings] == []


PAGES = ["state-dict-not-called", "best-state-aliased", "resume-off-by-one", "save-not-atomic", "keys-mismatched"]


@pytest.mark.parametrize("slug", [*PAGES, "whole-object-saved"])
def test_the_edits_turn_bad_into_good(slug: str, tmp_path: Path) -> None:
    page, path = read(walk.pages()[slug]), tmp_path / "train.py"
    path.write_text(page.snippet("Bad"))
    after = mended(path)
    if slug == "keys-mismatched":
        assert "torch.save(compiled._orig_mod.state_dict(), path)" in after
    elif slug == "best-state-aliased":
        assert "detach().clone()" in after
    else:
        assert re.sub(r"\s", "", after) == re.sub(r"\s", "", page.snippet("Good"))
    assert [finding.fault.slug for finding in triage.check([path]).findings] == []
