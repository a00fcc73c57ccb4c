"""How large the source side is: its rules and the engine under them, and what they still hold by themselves.

    python bench/size.py [--lists]

A rule is a detector in a room's rules/; one is about executions where it asks `Trainings`, else it is about files. The
length of a rule is that of its module, shared evenly by the rules there, helpers and all; modules that only help count
in the whole. A list of torch names is a literal with three or more texts that are operators or classes of torch: what
the tables of examine/source/torch_api should say. --lists: each of them with its place.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import grimp

from torchtriage.examine.source.torch_api.operators import operators

HOME = Path(__file__).parent.parent / "src/torchtriage"
SOURCE = "torchtriage.examine.source"
RUN = "torchtriage.examine.run"
FEW = 3
"""Texts that make a list."""


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def rules(tree: ast.Module) -> list[ast.FunctionDef]:
    """The detectors of a module."""
    functions = (each for each in tree.body if isinstance(each, ast.FunctionDef))
    return [each for each in functions if any("detector(" in ast.unparse(one) for one in each.decorator_list)]


def is_about_executions(rule: ast.FunctionDef) -> bool:
    first = rule.args.args[0].annotation if rule.args.args else None
    return first is not None and ast.unparse(first) == "Trainings"


def torch_lists(tree: ast.Module, known: frozenset[str]) -> Iterator[ast.expr]:
    """The literals of a module that list torch's names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Set | ast.List | ast.Tuple):
            texts = [each.value for each in node.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        elif isinstance(node, ast.Dict):
            texts = [each.value for each in node.keys if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        else:
            continue
        if sum(each in known or each.startswith("torch.") for each in texts) >= FEW:
            yield node


def circles(package: str, *, has_types: bool = False) -> list[str]:
    """The modules of PACKAGE that import themselves on some way, with what only a type checker imports (HAS_TYPES) or
    without.
    """
    graph = grimp.build_graph("torchtriage", cache_dir=None, exclude_type_checking_imports=not has_types)
    inside = [each for each in graph.modules if each.startswith(package)]
    return sorted(
        each
        for each in inside
        if any(graph.chain_exists(importer=one, imported=each) for one in graph.find_modules_directly_imported_by(each))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", action="store_true")
    options = parser.parse_args()
    known = frozenset(name for group in operators().values() for name in group)
    files = sorted(HOME.glob("specialists/*/rules/*.py"))
    lengths, total, of_executions, listed = [], 0, 0, list[str]()
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        mine = rules(tree)
        total += lines(path)
        lengths += [lines(path) / max(1, len(mine))] * len(mine)
        of_executions += sum(map(is_about_executions, mine))
        listed += [f"{path.relative_to(HOME)}:{each.lineno}: {ast.unparse(each)}" for each in torch_lists(tree, known)]
    engine = sum(map(lines, HOME.glob("examine/source/**/*.py")))
    print(
        f"rules: {len(lengths)} in {len(files)} modules, {total:,} lines (8,000 wanted), median {median(lengths):.0f}"
    )
    print(f"  about executions {of_executions}, about files {len(lengths) - of_executions}")
    print(f"examine/source: {engine:,} lines (9,000 wanted)")
    print(f"lists of torch's names in rules: {len(listed)} (0 wanted)")
    for each in listed if options.lists else ():
        print(f"  {each}")
    print(f"modules in import circles: {len(circles(SOURCE))} (0 wanted)")
    print(f"  in examine/run, imports for types counted: {len(circles(RUN, has_types=True))} (0 wanted)")


if __name__ == "__main__":
    main()
