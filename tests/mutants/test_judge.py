"""What counts as found, at its place, or false, and what the tables keep to themselves."""

import argparse
from dataclasses import replace
from pathlib import Path

import pytest
from mutants import commands, judge, tables
from mutants.catalogue import Mutant, every_operator, is_aside
from mutants.judge import CHECK, EXPERIMENT, RUN, Heard, Said
from mutants.tables import Row

OPERATOR = next(each for each in every_operator() if each.name == "step-dropped")
TEXT = "class Net:\n    def __init__(self):\n        self.head = None\n\n\ndef train():\n    pass\n"
MUTANT = Mutant("tabular", OPERATOR, {"train.py": TEXT, "a/model.py": TEXT}, {"a/model.py": [3]})


def heard(*said: Said, tool: str = RUN, **more) -> Heard:
    return Heard("tabular/step-dropped", "key", **{tool: list(said)}, **more)


def test_a_finding_of_an_accepted_fault_is_right_wherever_it_is():
    found = heard(Said("step-missing", [("train.py", 7, 7, "")]))
    assert judge.found(found, MUTANT, RUN)
    assert judge.found(found, MUTANT, "")
    assert not judge.found(found, MUTANT, CHECK)
    assert not judge.placed(found, MUTANT, RUN)
    assert judge.false(found, MUTANT, RUN) == []


@pytest.mark.parametrize(
    "place", [("a/model.py", 3, 3, ""), ("a/model.py", 1, 4, ""), ("", 0, 0, "head"), ("", 0, 0, "net.head.0")]
)
def test_a_line_of_the_fault_or_the_module_that_it_assigns_is_the_place(place):
    assert judge.placed(heard(Said("step-missing", [("train.py", 1, 1, ""), place])), MUTANT, RUN)


@pytest.mark.parametrize("place", [("train.py", 3, 3, ""), ("model.py", 3, 3, ""), ("a/model.py", 4, 4, "tail")])
def test_another_file_line_or_module_is_not(place):
    assert not judge.placed(heard(Said("step-missing", [place])), MUTANT, RUN)


def test_a_consequence_is_neither_found_nor_false_and_anything_else_is_false():
    said = (Said("loss-at-chance", [("train.py", 1, 1, "")]), Said("pickle-trusted", [("train.py", 1, 1, "")]))
    assert not judge.found(heard(*said), MUTANT, RUN)
    assert judge.false(heard(*said), MUTANT, RUN) == ["pickle-trusted"]


def test_findings_are_read_above_info_and_below_the_folder_of_the_program(tmp_path):
    place = {"path": str(tmp_path / "a/model.py"), "line": 3, "end_line": None, "module": None}
    case = {
        "findings": [
            {"fault": "step-missing", "severity": "error", "evidence": [{"place": place}]},
            {"fault": "worker-count", "severity": "info", "evidence": [{"place": place}]},
        ]
    }
    assert judge._findings(case, tmp_path) == [Said("step-missing", [("a/model.py", 3, 3, "")])]


def test_the_verdict_is_the_line_under_its_title():
    assert judge._verdict("Verdict\n  ok   Nothing was found\n\nWhy\n") == "ok Nothing was found"
    assert judge._verdict("Traceback\n") == ""


def test_what_was_heard_is_read_as_it_was_written(tmp_path):
    one = heard(Said("step-missing", [("a/model.py", 3, 3, "head")]), verdict="error x", code=None, seconds=2.5)
    path = tmp_path / "judged.jsonl"
    path.write_text(judge.written(replace(one, key="old")) + "\n" + judge.written(one) + "\n")
    assert judge.read(path) == {one.name: one}


def test_a_summary_counts_what_each_tool_finds():
    rows = [
        Row(MUTANT, "figure", heard(Said("step-missing", [("a/model.py", 3, 3, "")]), tool=CHECK)),
        Row(MUTANT, "figure", heard(Said("pickle-trusted", []), verdict="ok Nothing")),
    ]
    text = "\n".join(tables.summary(rows, [heard(Said("x", []))], "open"))
    shares = {line[:40].strip(): line[40:].split()[0] for line in text.splitlines() if "/" in line}
    assert shares["check finds"] == "1/2"
    assert shares["run finds"] == "0/2"
    assert shares["either finds"] == "1/2"
    assert shares["and that all is ok"] == "1/2"
    assert shares["false alarms on healthy runs, run"] == "1/1"
    assert list(tables.table(rows, "operator", tables.KEYS["operator"]))[1].split() == ["step-dropped", *"2101011"]


def test_of_what_an_experiment_may_show_the_rest_is_counted():
    every = [CHECK, RUN, EXPERIMENT]
    rows = [
        Row(MUTANT, "figure", heard(Said("step-missing", []), tools=every)),
        Row(MUTANT, "figure", heard(Said("step-missing", []), tool=EXPERIMENT, tools=every)),
        Row(MUTANT, "figure", heard(Said("pickle-trusted", []), tool=EXPERIMENT, tools=every)),
    ]
    assert [line.split()[-4] for line in list(tables.tried(rows))[1:]] == ["1/2", "1/2"]
    assert list(tables.tried([replace(rows[0], heard=heard())])) == []


def test_a_tool_that_is_known_is_not_asked_again(monkeypatch):
    asked = []
    monkeypatch.setattr(judge, "_heard", lambda _case, tools: asked.append(tools) or heard(tool=EXPERIMENT))
    known = heard(Said("step-missing", []), verdict="error", tools=[CHECK, RUN])
    both = judge.hear(None, known, frozenset({RUN, EXPERIMENT}))
    assert asked == [{EXPERIMENT}]
    assert (both.run, both.verdict, both.tools) == (known.run, "error", [CHECK, EXPERIMENT, RUN])


ASIDE = next(each for each in every_operator() if each.is_aside)


def test_mutants_that_are_set_aside_are_printed_as_sums_only():
    hidden = Mutant("tabular", ASIDE, {"train.py": TEXT}, {"train.py": [1]})
    rows = [Row(hidden, "figure", Heard(hidden.name, "k")), Row(MUTANT, "figure", heard())]
    asked = argparse.Namespace(aside=True, programs=True, operators=True)
    text = "\n".join(commands.report(rows, [], asked))
    assert "set aside: 1 mutants" in text
    assert ASIDE.name not in text
    assert OPERATOR.name in text


def test_a_comparison_names_open_mutants_and_counts_the_others():
    hidden = Mutant("tabular", ASIDE, {}, {})
    found = Heard("x", "k", [Said(next(iter(ASIDE.accepts)), [])])
    before = {"a": Row(hidden, "", Heard("x", "k")), "b": Row(MUTANT, "", heard())}
    after = {"a": Row(hidden, "", found), "b": Row(MUTANT, "", heard(Said("step-missing", [])))}
    assert list(tables.changes(before, after)) == [
        "b: silent → run",
        "set aside, 1 mutants: silent → check",
        "2 mutants in both; 0 only after",
    ]


def test_show_refuses_what_is_set_aside(programs, population, capsys):
    hidden = next(each for own in population.values() for each in own if each.is_aside)
    asked = argparse.Namespace(names=[hidden.name], only=(), public=None, store=Path("none"), out=None)
    commands.show(asked)
    assert capsys.readouterr().out == f"{hidden.name}: set aside, looked at in sums only\n"


def test_aside_is_by_name_alone():
    assert [is_aside(name) for name in ("gan", "recommender", "vae", "tabular")] == [True, True, False, False]
