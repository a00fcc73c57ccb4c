"""Notebooks: the code of their cells is examined, and a finding names its cell and the line in it."""

from __future__ import annotations

import json

import pytest

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.notebook import read
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.seen import look
from torchtriage.examine.source.text import UnreadableError


@detector("source/marked")
def marked(script: Script):
    """A call of fault()."""
    for call in script.calls("fault"):
        yield Sighting(script.place(call.node), edits=script.insertion("r", call.statement, "pass"))


def book(*cells: str | tuple[str, str]) -> bytes:
    made = [("code", cell) if isinstance(cell, str) else cell for cell in cells]
    return json.dumps({"cells": [{"cell_type": kind, "source": code} for kind, code in made]}).encode()


def places(data: bytes) -> list[tuple[int | None, int | None, str | None]]:
    return [(each.place.cell, each.place.line, each.place.anchor) for each in look("a.ipynb", data, [marked]).evidence]


def test_a_finding_names_its_cell_among_all_cells_and_the_line_in_it() -> None:
    data = book("import torch", ("markdown", "# fault()"), "x = 1\n\nfault()", "fault()")
    assert places(data) == [(3, 3, "fault()"), (4, 1, "fault()")]


def test_cells_may_be_lists_of_lines_and_of_the_old_format() -> None:
    sheets = {"worksheets": [{"cells": [{"cell_type": "code", "input": ["import torch\n", "fault()"]}]}]}
    assert places(json.dumps(sheets).encode()) == [(1, 2, "fault()")]


@pytest.mark.parametrize(
    "cell",
    [
        "%matplotlib inline\nfault()",
        "!pip install torch\nfault()",
        "?torch.nn\nfault()",
        "files = !ls\nfault()",
        "torch.nn?\nfault()",
        "%%time\nfault()",
        "%%capture out\nfault()",
        "files=!ls\nfault()",
        "d['a'] = !ls\nfault()",
        "a.b[0]?\nfault()",
    ],
)
def test_a_line_of_magic_is_passed_over_and_lines_stay_where_they_are(cell: str) -> None:
    assert places(book("import torch", cell)) == [(2, 2, "fault()")]


def test_a_magic_inside_of_a_block_keeps_the_block_whole() -> None:
    assert places(book("import torch\nif x:\n    !ls\nfault()")) == [(1, 4, "fault()")]


@pytest.mark.parametrize("cell", ["%%bash\nfault()", "%%writefile train.py\nfault()"])
def test_a_cell_in_another_language_is_no_python(cell: str) -> None:
    assert places(book("import torch", cell)) == []


def test_a_cell_that_is_no_python_is_named_and_the_others_are_examined() -> None:
    seen = look("a.ipynb", book("import torch", "def (:", "fault()"), [marked])
    assert [each.place.cell for each in seen.evidence] == [3]
    assert [each.why for each in seen.inconclusive] == ["a.ipynb, cell 2, line 1: invalid syntax"]
    assert seen.is_read


def test_an_edit_of_a_notebooks_code_would_not_fit_its_file() -> None:
    (evidence,) = look("a.ipynb", book("import torch\nfault()"), [marked]).evidence
    assert evidence.edits == ()


@pytest.mark.parametrize("data", [b"torch", b"[]", b'{"cells": ["torch"]}', b'{"cells": 3}', b"{}", b'{"cells": [{}]}'])
def test_what_is_no_notebook_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(UnreadableError, match=r"^a\.ipynb:1: no notebook"):
        read("a.ipynb", data)


def test_a_percent_sign_that_continues_an_expression_is_no_magic() -> None:
    assert places(book("import torch", "y = (n\n     % 3)\nfault()")) == [(2, 3, "fault()")]


def test_a_shell_command_over_several_lines_is_passed_over() -> None:
    assert places(book("import torch", "!cat \\\n  a.txt\nfault()")) == [(2, 3, "fault()")]


def test_a_notebook_may_hold_nan_and_half_of_a_sign() -> None:
    data = b'{"metadata": {"x": NaN}, "cells": [{"cell_type": "code", "source": "import torch\\nfault()#\\ud83d"}]}'
    assert [line for _, line, _ in places(data)] == [2]


def test_findings_stand_in_the_order_of_the_cells() -> None:
    assert [cell for cell, _, _ in places(book("import torch\n\nfault()", "fault()"))] == [1, 2]
