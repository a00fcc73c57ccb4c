"""Every block of code in sheets and topics: it runs, or it fails where it is said to be wrong; its names exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from sheets import Block, blocks, prose, texts

from torchtriage.catalog.walk import pages

BLOCKS = [block for path in texts() for block in blocks(path)]
PYTHON = [block for block in BLOCKS if block.language == "python"]
DOTTED = re.compile(r"`(torch(?:\.\w+)+)")


def test_a_block_says_what_it_is() -> None:
    kinds = {(block.language, block.kind) for block in BLOCKS}
    alone = {"bash", "text", "toml", "json", "yaml"}
    assert kinds <= {(each, "") for each in alone} | {
        ("python", kind) for kind in ("", "wrong", "right", "needs=cuda", "needs=ranks")
    }


@pytest.mark.parametrize("block", [each for each in PYTHON if each.kind in ("", "right")], ids=str)
def test_a_block_runs(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch_as_it_was: None) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block.code, block.name, "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("block", [each for each in PYTHON if each.kind == "wrong"], ids=str)
def test_a_wrong_block_fails(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch_as_it_was: None
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((AssertionError, RuntimeError, ValueError, TypeError, AttributeError)):
        exec(compile(block.code, block.name, "exec"), {"__name__": "__main__"})


def test_wrong_and_right_come_in_pairs() -> None:
    for path in texts():
        kinds = [block.kind for block in blocks(path) if block.kind in ("wrong", "right")]
        assert kinds == ["wrong", "right"] * (len(kinds) // 2), path


@pytest.mark.parametrize("path", [*texts(), *pages().values()], ids=str)
def test_names_of_torch_exist(path: Path) -> None:
    names = {found for line in prose(path) for found in DOTTED.findall(line)}
    names |= {name for block in blocks(path) if block.language == "python" for name in dotted(block.code)}
    assert [name for name in sorted(names) if not exists(name)] == []


def dotted(code: str) -> Iterator[str]:
    """The names below torch that CODE writes out, by the names under which it imports them."""
    tree = ast.parse(code)
    known = {"torch": "torch"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {
                each.asname or each.name.partition(".")[0]: each.name if each.asname else "torch"
                for each in node.names
                if each.name.partition(".")[0] == "torch"
            }
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch":
            known |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
            yield from (f"{node.module}.{each.name}" for each in node.names)
    for node in ast.walk(tree):
        parts: list[str] = []
        inner: ast.AST = node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if parts and isinstance(inner, ast.Name) and inner.id in known:
            yield ".".join((known[inner.id], *reversed(parts)))


def exists(name: str) -> bool:
    """Whether NAME is a module, or an attribute of one; what an object holds beyond that is not looked at."""
    found: Any = import_module("torch")
    path = "torch"
    for part in name.split(".")[1:]:
        path = f"{path}.{part}"
        if not hasattr(found, part):
            try:
                found = import_module(path)
            except ImportError:
                return False
        else:
            found = getattr(found, part)
    return True


def test_a_name_that_torch_lacks_is_seen() -> None:
    assert list(dotted("import torch.nn as nn\nnn.Linearr(1, 1)\n")) == ["torch.nn.Linearr"]
    assert not exists("torch.nn.Linearr")
    assert exists("torch.nn.functional.relu")
