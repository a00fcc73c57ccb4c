"""Which public functions and classes the installed torch has marked as deprecated, and what it names in their place.

    python learn/deprecated.py      (make deprecated)

Writes specialists/debugging_techniques/deprecated.toml. The names are read off the sources of torch: an object may be
deprecated without being reachable from `import torch` alone.
"""

from __future__ import annotations

import ast
import importlib
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch

TABLE = Path(__file__).parents[1] / "src/torchtriage/specialists/debugging_techniques/deprecated.toml"
# What no training calls: compilers' insides and tools for exporting, and autocast, which has a rule of its own.
_ASIDE = (
    *("torch.ao.", "torch.fx.", "torch.jit.", "torch.onnx.", "torch.utils.data.datapipes."),
    *("torch.cuda.amp.", "torch.cpu.amp."),
)
_INSTEAD = re.compile(r"(?:use|to|of|see)\s+`([\w.]+)(?:\(|`)", re.I)


def marked(file: Path) -> Iterator[tuple[str, str]]:
    """The functions and classes of FILE that are marked, and the message."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            yield from ((node.name, text) for text in messages(node))
        elif isinstance(node, ast.ClassDef):
            made = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
            yield from ((node.name, text) for text in messages(node))
            yield from ((node.name, text) for each in made for text in messages(each))


def helpers(file: Path) -> Iterator[tuple[str, str]]:
    """The functions of FILE that only call a marked `apply` of a class: torch.nn.utils.weight_norm."""
    body = ast.parse(file.read_text(encoding="utf-8")).body
    methods = (
        (f"{node.name}.{each.name}", text)
        for node in body
        if isinstance(node, ast.ClassDef)
        for each in node.body
        if isinstance(each, ast.FunctionDef) and each.name == "apply"
        for text in messages(each)
    )
    marked_methods = dict(methods)
    for node in body:
        for called in ast.walk(node) if isinstance(node, ast.FunctionDef) else ():
            name = ast.unparse(called.func) if isinstance(called, ast.Call) else ""
            if isinstance(node, ast.FunctionDef) and name in marked_methods:
                yield node.name, marked_methods[name]


def initializers() -> Iterator[tuple[str, str]]:
    """torch.nn.init.xavier_uniform and its kin, which warn and call xavier_uniform_."""
    for word, thing in vars(torch.nn.init).items():
        if f"{word}_" in vars(torch.nn.init) and "deprecated" in (thing.__doc__ or ""):
            yield f"torch.nn.init.{word}", f"torch.nn.init.{word}_"


def messages(node: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
    for each in node.decorator_list:
        if isinstance(each, ast.Call) and ast.unparse(each.func).rpartition(".")[2] == "deprecated" and each.args:
            yield " ".join(str(part.value) for part in ast.walk(each.args[0]) if isinstance(part, ast.Constant))


def names(module: str, word: str) -> Iterator[str]:
    """Under which public names the object WORD of MODULE can be called."""
    thing = getattr(importlib.import_module(module), word, None)
    home = module
    # not where it is one overload that is marked, which only a type checker sees
    is_marked = any(hasattr(each, "__deprecated__") for each in (thing, getattr(thing, "__init__", None)))
    while home and is_marked:
        public = not any(part.startswith("_") for part in f"{home}.{word}".split("."))
        if public and getattr(sys.modules[home], word, None) is thing:
            yield f"{home}.{word}"
        home = home.rpartition(".")[0]


def instead(text: str, name: str) -> str:
    """The first function or class of those that TEXT names as the successor of NAME; "" where it names none."""
    home = name.rpartition(".")[0]
    for found in _INSTEAD.findall(text):
        whole = found if found.startswith("torch.") else f"{home}.{found}"
        if whole != name and is_callable(whole):
            return whole
    return ""


def is_callable(name: str) -> bool:
    thing: object = torch
    for word in name.split(".")[1:]:
        thing = getattr(thing, word, None)
    return callable(thing)


def table() -> dict[str, str]:
    """Every deprecated public name → the name that takes its place."""
    home, found = Path(torch.__file__).parent, {}
    for file in sorted(home.rglob("*.py")):
        if "@deprecated" not in file.read_text(encoding="utf-8", errors="replace"):
            continue
        module = ".".join(["torch", *file.relative_to(home).with_suffix("").parts]).removesuffix(".__init__")
        if any(part.startswith("_") for part in module.split(".")) and "distributed" not in module:
            continue
        for word, text in marked(file):
            for name in names(module, word) if not module.startswith(_ASIDE) else ():
                if not f"{name}.".startswith(_ASIDE):
                    found[name] = instead(text, name)
        package = module.rpartition(".")[0]
        for word, text in helpers(file) if not module.startswith(_ASIDE) else ():
            found[f"{package}.{word}"] = instead(text, f"{package}.{word}")
    return dict(sorted((found | dict(initializers())).items()))


def main() -> None:
    version = torch.__version__.partition("+")[0].rpartition(".")[0]
    lines = [f"# By learn/deprecated.py, off torch {version}.", f'torch = "{version}"', "", "[names]"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines += [f'"{name}" = "{successor}"' for name, successor in table().items()]
    TABLE.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
