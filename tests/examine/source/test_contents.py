from __future__ import annotations

import ast

import pytest

MADE = "from torch.optim import SGD, Adam\n"


@pytest.mark.parametrize(
    "code",
    [
        "solvers = {'a': SGD(), 'b': Adam()}\nkey = input()\nsolvers[key].step()",
        "solvers = [SGD(), Adam()]\nfor i in range(2):\n    solvers[i].step()",
        "solvers = {}\nfor key in 'ab':\n    solvers[key] = SGD() if key == 'a' else Adam()\nsolvers['a'].step()",
        "solvers = {}\nfor key in 'ab':\n    solvers[key] = SGD() if key == 'a' else Adam()\nsolvers[key].step()",
        "solvers = {}\nsolvers['a'] = SGD()\nsolvers['b'] = Adam()\nfor each in solvers.values():\n    each.step()",
        "solvers = []\nsolvers.append(SGD())\nsolvers.append(Adam())\nfor each in solvers:\n    each.step()",
        "class T:\n    def __init__(self):\n        self.solvers = []\n        self.solvers.append(SGD())\n"
        "        self.solvers.append(Adam())\n    def f(self):\n        for each in self.solvers:\n"
        "            each.step()",
    ],
)
def test_what_is_put_into_a_dictionary_or_a_list_is_found_under_any_key(reads, code: str) -> None:
    script = reads(MADE + code)
    call = next(script.calls("step"))
    assert {part.name for part in script.roles.made(call.receiver, call.scope, "optimizer")} == {
        "torch.optim.SGD",
        "torch.optim.Adam",
    }


def test_a_list_of_the_same_name_in_another_function_is_another_list(reads) -> None:
    script = reads(
        MADE + "def f():\n    s = []\n    s.append(SGD())\ndef g(s):\n    for each in s:\n        each.step()"
    )
    call = next(script.calls("step"))
    assert not script.roles.made(call.receiver, call.scope, "optimizer")


def test_an_entry_of_unknown_things_stays_what_it_is(reads) -> None:
    script = reads("def f(x, i):\n    x[i].step()")
    call = next(script.calls("step"))
    assert [type(end.node) for end in script.trace.origins(call.receiver, call.scope)] == [ast.Subscript]


def test_what_a_helper_put_into_the_dictionary_that_it_returns_is_found(reads) -> None:
    script = reads(
        MADE + "def build():\n    out = {}\n    for key in 'ab':\n        out[key] = SGD()\n    return out\n"
        "class T:\n    def __init__(self):\n        self.solvers = build()\n    def f(self):\n"
        "        self.solvers['a'].step()"
    )
    call = next(script.calls("step"))
    assert [part.name for part in script.roles.made(call.receiver, call.scope, "optimizer")] == ["torch.optim.SGD"]


def test_an_instance_that_is_called_runs_its_call_method(reads) -> None:
    script = reads(
        MADE + "class Stop:\n    def __call__(self, solver):\n        solver.step()\nstop = Stop()\nstop(SGD())"
    )
    call = next(script.calls("step"))
    assert [part.name for part in script.roles.made(call.receiver, call.scope, "optimizer")] == ["torch.optim.SGD"]
