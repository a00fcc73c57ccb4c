from __future__ import annotations

import ast

import pytest

from torchtriage.examine.source.script import Script
from torchtriage.examine.source.text import Text, UnreadableError


def test_lines_are_counted_as_python_counts_them() -> None:
    text = Text("a.py", b"a = 1\r\nb = '\x0c'\rc = 3\n\nd = 4")
    assert [text.line(number) for number in range(1, 6)] == ["a = 1", "b = '\x0c'", "c = 3", "", "d = 4"]
    assert [node.lineno for node in text.parse().body] == [1, 2, 3, 5]
    assert text.data[text.start(3) :].startswith(b"c")


def test_columns_count_characters_from_one() -> None:
    script = Script("a.py", "größe = f('ä'); step(größe)\n".encode())
    call = next(script.calls("step"))
    assert script.place(call.node).column == 17


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("# -*- coding: latin-1 -*-\nnote = 'größe'\n".encode("latin-1"), "note = 'größe'"),
        ("\ufeff# torch\nnote = 'größe'\n".encode(), "note = 'größe'"),
    ],
    ids=["coding comment", "byte order mark"],
)
def test_encodings_of_pep_263_are_honoured(data: bytes, line: str) -> None:
    text = Text("a.py", data)
    text.parse()
    assert text.line(2) == line


@pytest.mark.parametrize(
    ("data", "why", "unblock"),
    [
        (b"def f(:\n    pass\n", "a.py:1:", "syntax"),
        (b"x = 1\ny = = 2\n", "a.py:2:", "syntax"),
        (b"x = '\xff\xfe'\n", "a.py:1:", "UTF-8"),
        (b"x = 1\n# caf\xe9\n", "a.py:2:", "UTF-8"),
        (b"# coding: no-such-thing\nx = 1\n", "a.py:1:", "encoding"),
        (b"x = 1\0\n", "a.py:1:", ""),
        (b"x = " + b"(" * 500 + b")" * 500, "a.py:1:", ""),
        (b"x = " + b"-" * 200_000 + b"1", "a.py:1:", ""),
    ],
    ids=["def", "second line", "not UTF-8", "comment", "unknown coding", "null byte", "parentheses", "deep"],
)
def test_what_is_no_python_is_refused_by_line_with_a_way_out(data: bytes, why: str, unblock: str) -> None:
    with pytest.raises(UnreadableError) as refused:
        Text("a.py", data).parse()
    assert refused.value.why.startswith(why)
    assert unblock in refused.value.unblock


def test_code_too_deep_for_the_walk_is_refused_and_not_crashed_on() -> None:
    tree = "x = " + " + ".join(["a"] * 5000)
    with pytest.raises(UnreadableError, match="nested too deeply"):
        Script("a.py", tree.encode())


def test_warnings_of_the_users_code_are_not_raised_as_ours() -> None:
    assert isinstance(Text("a.py", b"x = '\\d'\nassert (1, 'no')\n").parse(), ast.Module)


@pytest.mark.parametrize(
    ("code", "line", "inserted"),
    [
        ("if a:\n    clip()\n", 2, "    first()\n"),
        ("if a:\r\n\tclip()\r\n", 2, "\tfirst()\r\n"),
        ("norm = clip()\n", 1, "first()\n"),
        ("a(); clip()\n", 1, None),
        ("if a: clip()\n", 1, None),
        ("while clip():\n    pass\n", 1, None),
        ("if a:\n    pass\nelif clip():\n    pass\n", 3, None),
        ("if a: \\\n  clip()\n", 2, None),
    ],
)
def test_a_line_is_inserted_only_before_a_statement_that_starts_its_own(
    code: str, line: int, inserted: str | None
) -> None:
    script = Script("a.py", code.encode())
    edits = script.insertion("mend", next(script.calls("clip")).statement, "first()")
    assert [edit.text for edit in edits] == ([] if inserted is None else [inserted])
    for edit in edits:
        assert edit.start == edit.end == script.text.start(line)
        ast.parse(code[: edit.start] + edit.text + code[edit.end :])
