"""Each operator's edit of a sample, and what holds for every mutant of every program."""

import re
from difflib import unified_diff
from pathlib import Path

import pytest
from mutants.catalogue import PROGRAMS, every_operator, is_aside, mutants
from mutants.source import Edit, Project, Site, applied, fault_lines

from torchtriage.catalog.load import catalog

HERE = Path(__file__).parent
SAMPLES = {path.stem: Project.of(path.stem, {path.name: path.read_text()}) for path in (HERE / "samples").glob("*.py")}
EXPECTED = {
    name: (sample, lines.splitlines())
    for name, sample, lines in re.findall(
        r"^\[(.+)\] +(\w+)\n((?:[+-].*\n)+)", (HERE / "expected.txt").read_text(), re.MULTILINE
    )
}
# Faults that pages are planned for: an operator may accept them before they are there.
PLANNED = {
    "augmentation-in-evaluation", "cannot-overfit-one-batch", "evaluation-data-in-training", "future-visible",
    "initial-loss-off", "input-ignored", "labels-misaligned", "learning-rate-too-high", "learning-rate-too-low",
    "loss-below-possible", "loss-diverged", "samples-mixed", "seed-decides", "target-in-input", "wrong-loss-input",
}  # fmt: skip


def difference(project: Project, site: Site) -> list[str]:
    texts = applied(project.texts, site.changes)
    name = project.sources[0].name
    lines = unified_diff(project.texts[name].splitlines(), texts[name].splitlines(), lineterm="", n=0)
    return [line for line in lines if line[0] in "+-" and line[:3] not in ("+++", "---")]


@pytest.mark.parametrize("operator", every_operator(), ids=lambda each: each.name)
def test_an_operator_makes_the_edit_that_is_written_down(operator):
    sample, lines = EXPECTED[operator.name]
    project = SAMPLES[sample]
    found = [difference(project, site) for site in operator.find(project)]
    assert next(each for each in found if each) == lines


def test_there_are_at_least_forty_operators_and_each_names_its_source():
    assert len(every_operator()) >= 40
    assert all(each.repeats for each in every_operator())


def test_what_operators_accept_are_faults_that_have_a_page_or_will():
    for each in every_operator():
        assert each.accepts | each.beside <= set(catalog().faults) | PLANNED, each.name


def test_about_a_third_of_operators_and_of_programs_is_set_aside(programs):
    for names in ([each.name for each in every_operator()], [each.name for each in programs]):
        assert 0.25 <= sum(map(is_aside, names)) / len(names) <= 0.42


def test_what_is_set_aside_is_of_many_domains(programs):
    assert len({each.domain for each in programs if is_aside(each.name)}) >= 4


def test_every_mutant_is_python_and_differs_from_its_program(programs, population):
    for program in programs:
        for mutant in population[program.name]:
            changed = {name: text for name, text in mutant.texts.items() if text != program.texts.get(name)}
            assert changed, mutant.name
            for name, text in changed.items():
                compile(text, name, "exec", dont_inherit=True)


def test_the_lines_of_a_fault_are_in_its_files(population):
    for mutant in (each for own in population.values() for each in own):
        assert mutant.lines
        for file, lines in mutant.lines.items():
            assert 1 <= lines[0] <= lines[-1] <= mutant.texts[file].count("\n") + 1, mutant.name


def test_an_operator_is_planted_in_few_programs_and_in_the_same_ones_each_time(programs, population):
    again = mutants([Project.of(each.name, each.texts) for each in reversed(programs)])
    for name, own in population.items():
        assert [each.texts for each in own] == [each.texts for each in again[name]]
    planted = [each.operator.name for own in population.values() for each in own]
    assert max(map(planted.count, planted)) <= PROGRAMS


def test_there_are_some_hundred_mutants_and_some_are_split_or_configured(population):
    found = [each for own in population.values() for each in own]
    assert 250 <= len(found) <= 400
    assert sum(each.composed == "split" for each in found) >= 20
    assert sum(each.composed == "configure" for each in found) >= 20


def test_names_of_mutants_are_their_own(population):
    names = [each.name for own in population.values() for each in own]
    assert len(set(names)) == len(names)


def test_edits_that_overlap_are_refused():
    with pytest.raises(ValueError, match="overlap"):
        applied({"a.py": "abcdef"}, (Edit("a.py", 0, 3, "x"), Edit("a.py", 2, 4, "y")))


def test_edits_are_applied_to_the_original_text():
    edits = (Edit("a.py", 0, 1, "XX"), Edit("a.py", 3, 3, "!"), Edit("a.py", 5, 6, ""))
    assert applied({"a.py": "abcdef"}, edits) == {"a.py": "XXbc!de"}


def test_the_lines_of_an_edit_are_those_of_its_replacement():
    text = "a = 1\nb = 2\nc = 3\n"
    site = Site((Edit("a.py", 6, 12, "b = (\n    2\n)\n"),), (), (Edit("a.py", 0, 0, "import os\n"),))
    texts = applied({"a.py": text}, site.changes)
    assert fault_lines(texts, site) == {"a.py": [3, 4, 5]}
