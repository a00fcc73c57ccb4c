"""What runs inside the job may be in another environment than torchtriage: it must need nothing of ours."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import torchtriage
from torchtriage.triage import probes

RUN = Path(torchtriage.__file__).parent / "examine" / "run"
EVENTS = "torchtriage.examine.run.job.events"  # what runs in the job goes by this name while it imports the probes
FILES = (
    *sorted((RUN / "job").rglob("*.py")),
    *sorted((RUN / "attach").glob("*.py")),
    *(file for folder in probes() for file in folder.rglob("*.py")),
)


def imported(tree: ast.AST) -> set[str]:
    """Top-level packages that a file imports when it runs; what only a type checker sees is left out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body.clear()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module).split(".")[0])
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_code_inside_the_job_is_python_3_10_and_needs_the_standard_library_and_torch_only(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 10))
    if "probes" in path.parts:
        tree.body = [each for each in tree.body if not (isinstance(each, ast.ImportFrom) and each.module == EVENTS)]

    assert imported(tree) - set(sys.stdlib_module_names) - {"torch", "sitecustomize"} == set()
