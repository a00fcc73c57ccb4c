"""Each snippet calls first() and then(); the stores of x are named by their line."""

from __future__ import annotations

import pytest

from torchtriage.examine.source.flow import reaches, reaching, surely


@pytest.mark.parametrize(
    ("code", "reached", "sure"),
    [
        ("first()\nthen()", True, True),
        ("then()\nfirst()", False, False),
        ("if a:\n    first()\nthen()", True, False),
        ("if a:\n    first()\nelse:\n    then()", False, False),
        ("if a:\n    first()\nif a:\n    then()", True, False),
        ("with a:\n    first()\nthen()", True, True),
        ("def f():\n    if a:\n        first()\n        return\n    then()", False, False),
        ("def f():\n    if a:\n        first()\n        raise E\n    then()", False, False),
        ("for i in a:\n    if i:\n        first()\n        continue\n    then()", False, False),
        ("for i in a:\n    if i:\n        first()\n        break\nthen()", True, False),
        ("for i in a:\n    for j in i:\n        first()\n        break\n    then()", True, False),
        ("for i in a:\n    first()\nthen()", True, False),
        ("try:\n    first()\nexcept E:\n    then()", True, True),
        ("try:\n    pass\nexcept E:\n    first()\nexcept F:\n    then()", False, False),
        ("match a:\n    case 1:\n        first()\n    case 2:\n        then()", False, False),
        ("then(first())", True, True),
        ("if a:\n    pass\nelif b:\n    first()\nelse:\n    then()", False, False),
        ("if a:\n    first()\nelif b:\n    then()", False, False),
    ],
)
def test_what_can_run_after_what(reads, code: str, reached: bool, sure: bool) -> None:
    script = reads(code)
    first, then = next(script.calls("first")), next(script.calls("then"))
    assert (reaches(first, then), surely(first, then)) == (reached, sure)


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("x = 1\nx = 2\nuse(x)", {2}),
        ("x = 1\nif a:\n    x = 2\nuse(x)", {1, 3}),
        ("if a:\n    x = 1\nelse:\n    x = 2\nuse(x)", {2, 4}),
        ("x = 1\nfor i in a:\n    use(x)\n    x = 2", {1, 4}),
        ("for i in a:\n    x = 1\n    use(x)\n    x = 2", {2}),
        ("for i in a:\n    x = 1\n    for j in i:\n        use(x)\n        x = 2", {2, 5}),
        ("use(x)\nx = 1", set()),
    ],
)
def test_which_stores_a_use_may_see(reads, code: str, lines: set[int]) -> None:
    script = reads(code)
    use = next(script.calls("use"))
    assert {store.node.lineno for store in reaching(script.names.stores("x", use.scope), use)} == lines
