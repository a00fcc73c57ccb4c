"""The criterion by which a mutant hurts, and that what is stored belongs to today's programs."""

import math
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutants import harm
from mutants.harm import Limits, Measured, bad, fisher, hurts, is_decided, verdict
from mutants.measure import texts_of
from mutants.programs import Program, write
from mutants.store import Line, Store

BENCH = Path(__file__).parents[2] / "bench"
ALL = frozenset({"error", "figure", "report", "speed", "memory", "resume"})
HEALTHY = [Measured(seed, 0, 1.0 + seed / 100, 2.0, 50.0, resumed=1.0 + seed / 100, resume_code=0) for seed in range(5)]
UNTRAINED = [Measured(seed, 0, 3.0, 2.0, 50.0) for seed in range(3)]
LIMITS = Limits.of(HEALTHY, UNTRAINED)


@pytest.mark.parametrize(
    ("table", "p"),
    [  # as scipy.stats.fisher_exact(..., alternative="greater") and a textbook's tea give them
        ((5, 5, 0, 5), 1 / 252),
        ((4, 5, 0, 5), 6 / 252),
        ((3, 5, 0, 10), 10 / 455),
        ((3, 4, 1, 4), 17 / 70),
        ((0, 5, 0, 10), 1.0),
        ((5, 5, 10, 10), 1.0),
    ],
)
def test_fisher_gives_known_values(table, p):
    assert fisher(*table) == pytest.approx(p)


@given(st.integers(0, 12), st.integers(1, 12), st.integers(0, 12), st.integers(1, 12))
def test_one_more_bad_run_lowers_p(bad_runs, of, control_bad, control_of):
    bad_runs, control_bad = min(bad_runs, of - 1), min(control_bad, control_of)
    assert fisher(bad_runs + 1, of, control_bad, control_of) <= fisher(bad_runs, of, control_bad, control_of) + 1e-12
    assert not hurts(bad_runs, of, control_bad, control_of) or hurts(bad_runs + 1, of, control_bad, control_of)


finite = st.floats(-1e6, 1e6)
runs = st.builds(Measured, st.just(0), st.sampled_from([0, 0, 1]), finite, finite.map(abs), finite.map(abs))


@given(runs, finite.map(abs), st.sampled_from(["figure", "seconds", "memory"]))
def test_a_run_that_becomes_worse_stays_bad(run, more, what):
    worse = replace(run, **{what: getattr(run, what) + more})
    shows = ALL - {"report", "resume"}
    assert not bad(run, LIMITS, shows) or bad(worse, LIMITS, shows)


@given(st.lists(st.booleans(), min_size=5, max_size=5), st.integers(0, 10))
def test_a_mutant_left_early_has_the_answer_of_all_seeds(bads, control_bad):
    whole = hurts(sum(bads), 5, control_bad, 10)
    early = next((done for done in range(1, 6) if is_decided(sum(bads[:done]), done, control_bad, 10)), None)
    assert early is not None
    assert verdict(sum(bads[:early]), early, control_bad, 10) is whole


def test_three_bad_runs_hurt_and_three_good_ones_do_not():
    assert verdict(3, 3, 0, 10) is True
    assert verdict(0, 3, 0, 10) is False
    assert verdict(2, 3, 0, 10) is None


@pytest.mark.parametrize(
    ("change", "how"),
    [
        ({}, []),
        ({"code": 1}, ["error"]),
        ({"code": -9, "figure": math.nan}, ["error"]),
        ({"figure": 1.2}, []),
        ({"figure": 1.26}, ["figure", "report"]),
        ({"figure": math.nan}, ["figure", "report"]),
        ({"figure": 0.7}, ["report"]),
        ({"seconds": 2.4}, []),
        ({"seconds": 2.6}, ["speed"]),
        ({"seconds": 2.6, "beside": 2.5}, []),
        ({"memory": 65.0}, []),
        ({"memory": 67.0}, ["memory"]),
        ({"resumed": 1.0, "resume_code": 0}, []),
        ({"resumed": 1.1, "resume_code": 0}, ["resume"]),
        ({"resumed": math.nan, "resume_code": 1}, ["resume"]),
    ],
)
def test_what_makes_a_run_bad(change, how):
    assert bad(replace(Measured(0, 0, 1.0, 2.0, 50.0), **change), LIMITS, ALL) == how


def test_only_what_an_operator_shows_makes_its_runs_bad():
    assert bad(Measured(0, 0, 9.0, 9.0, 999.0), LIMITS, frozenset({"memory"})) == ["memory"]


def test_a_program_that_learns_nothing_has_its_spread_as_margin():
    assert Limits.of(HEALTHY, [replace(run, figure=math.nan) for run in UNTRAINED]).worst == pytest.approx(1.08)


def test_a_line_is_read_as_it_was_written(tmp_path):
    runs = (Measured(0, 0, math.nan, 1.5, 2.0), Measured(1, -9, math.inf, 1.0, 2.0, resumed=-1.0, resume_code=0))
    store = Store(tmp_path / "harm.jsonl")
    store.add(Line("k", "b/x", "2.13", runs))
    store.add(Line("old", "a/x", "2.13", runs))
    store.add(Line("new", "a/x", "2.13", runs))
    store.tidy()
    again = Store(tmp_path / "harm.jsonl")
    assert list(again.lines) == ["a/x", "b/x"]
    assert again.get("a/x", "old") is None
    assert again.get("a/x", "new") is not None
    assert repr(again.lines["b/x"].runs) == repr(runs)


def test_what_is_stored_belongs_to_todays_programs(programs, population):
    """Else: python bench/mutants harm."""
    store, keys = Store(), {}
    for program in programs:
        for torch in {line.torch for line in store.lines.values()} | {version("torch")}:
            for name in ("healthy", "untrained"):
                keys[f"{program.name}/{name}", torch] = program.key(program.texts, torch)
            for mutant in population[program.name]:
                keys[mutant.name, torch] = program.key(texts_of(program, mutant), torch)
    stale = [line.name for line in store.lines.values() if keys.get((line.name, line.torch)) != line.key]
    assert stale == []


TINY = """import argparse, sys
import torch

reader = argparse.ArgumentParser()
reader.add_argument("--seed", type=int)
reader.add_argument("--out")
torch.manual_seed(reader.parse_args().seed)
weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for _ in range(20):
    loss = (weight - 1).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"val_loss {loss.item():.6f}")
"""
TOML = """title = "one weight"
domain = "none"
command = ["train.py", "--seed", "{seed}", "--out", "{out}"]
figure = 'val_loss[ =:]+([0-9.eE+-]+|nan|inf)'
better = "lower"
steps = 20
"""


def test_harm_of_a_tiny_program_is_measured_once(tmp_path):
    """The healthy program learns, without gradients it does not, and a step that is missing hurts."""
    write({"train.py": TINY, "program.toml": TOML}, tmp_path / "programs/tiny")
    where = ("--public", tmp_path / "programs", "--store", tmp_path / "harm.jsonl")
    command = [sys.executable, BENCH / "mutants", "harm", "--only", "tiny/step-dropped", *where]
    first = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert "tiny/step-dropped: hurts True, figure, 3 of 3" in first.stdout, first.stderr
    lines = Store(tmp_path / "harm.jsonl").lines
    assert list(lines) == ["tiny/healthy", "tiny/step-dropped", "tiny/untrained"]
    assert all(run.code == 0 and run.figure < 0.01 for run in lines["tiny/healthy"].runs)
    assert all(run.figure == 1.0 for run in lines["tiny/untrained"].runs)
    again = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert "step-dropped" not in again.stdout, again.stderr


def test_a_key_is_of_the_files_their_use_and_the_torch(tmp_path):
    write({"train.py": TINY, "program.toml": TOML}, tmp_path)
    program = Program.read(tmp_path)
    key = program.key(program.texts, "2.13")
    assert key == program.key(dict(program.texts), "2.13")
    assert key != program.key(program.texts, "2.14")
    assert key != program.key({"train.py": TINY + "\n"}, "2.13")
    assert key != replace(program, steps=21).key(program.texts, "2.13")


def test_the_figure_is_the_last_match_and_lower_is_better(tmp_path):
    write({"train.py": TINY, "program.toml": TOML.replace('"lower"', '"higher"')}, tmp_path)
    program = Program.read(tmp_path)
    assert program.value("val_loss: 3\nval_loss = 2.5\n") == 2.5
    assert program.loss("val_loss 2.5") == -2.5
    assert math.isnan(program.value("nothing"))


def test_seeds_for_limits_are_used_for_nothing_else():
    assert not set(harm.CALIBRATION) & {*harm.CONTROL, *harm.SEEDS}
    assert set(harm.SEEDS) <= set(harm.CONTROL)
