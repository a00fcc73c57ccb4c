"""Every fault page keeps its word: Bad is found, Good is silent, and the harm is proven on real torch."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from signal import Signals

import forked
import pytest
from jobs import Server
from machine import Machine, skip_where_busy

from torchtriage import triage
from torchtriage.catalog import load, page, walk
from torchtriage.core.case import Case
from torchtriage.core.fault import Basis, FaultClass

PAGES = [pytest.param(page.read(path), id=slug) for slug, path in walk.pages().items()]
TESTS = Path(__file__).parent
PROOFS = {Basis.CPU: TESTS / "proofs", Basis.SIM: TESTS / "simulation/proofs"}
"""Where the proofs of the pages are, each in a file of its name. Those of SIM run on CUDA, too, where there is one."""

ON_CUDA = TESTS / "simulation/on_cuda.json"
"""What a run of `make gpu` has left."""

every_page = pytest.mark.parametrize("each", PAGES)


def looks(each: page.Page, looker: str) -> bool:
    return any(sign.detector.startswith(f"{looker}/") for sign in each.fault.signs)


SEEN_IN_SOURCE = [each for each in PAGES if looks(each.values[0], "source")]  # type: ignore[arg-type]
SEEN_IN_RUN = [
    each
    for each in PAGES
    if each.values[0].ranks > 1  # type: ignore[union-attr]
    or (
        not looks(each.values[0], "source")  # type: ignore[arg-type]
        and looks(each.values[0], "run")  # type: ignore[arg-type]
        and Basis.CPU in each.values[0].fault.proven_on  # type: ignore[union-attr]
    )
]
SEEN_IN_LOG = [
    each
    for each in PAGES
    if {sign.detector.partition("/")[0] for sign in each.values[0].fault.signs} == {"log"}  # type: ignore[union-attr]
    if Basis.CPU in each.values[0].fault.proven_on  # type: ignore[union-attr]
]


def slugs(case: Case) -> set[str]:
    return {finding.fault.slug for finding in case.findings}


@pytest.mark.parametrize("each", SEEN_IN_SOURCE)
def test_in_the_source_bad_is_found_and_good_is_silent(each: page.Page, tmp_path: Path) -> None:
    for section in ("Bad", "Good"):
        (tmp_path / f"{section}.py").write_text(each.snippet(section))
    assert each.fault.slug in slugs(triage.check([tmp_path / "Bad.py"]))
    assert slugs(triage.check([tmp_path / "Good.py"])) == set()


@pytest.mark.parametrize("each", SEEN_IN_LOG)
def test_in_a_log_bad_is_found_and_good_is_silent(each: page.Page, tmp_path: Path, python: forked.Server) -> None:
    for section in ("Bad", "Good"):
        script, log = tmp_path / f"{section}.py", tmp_path / f"{section}.log"
        script.write_text(each.snippet(section))
        log.write_text("step 0 loss 0.5\n")  # a log of nothing is no log
        code = run_to_its_end(script, log, python)
        assert section == "Bad" or code == 0, log.read_text()
    assert slugs(triage.read([tmp_path / "Bad.log"])) == {each.fault.slug}
    assert slugs(triage.read([tmp_path / "Good.log"])) == set()


@pytest.fixture(scope="module")
def python() -> Iterator[forked.Server]:
    server = forked.Server("torch", "torch._dynamo", "torch.utils.data", "torch.distributed")
    yield server
    server.close()


def run_to_its_end(script: Path, log: Path, python: forked.Server) -> int:
    """Its exit code. Gloo's threads now and then abort a process that is exiting; what it did counts, not that."""
    for _ in range(3):
        code = python.run(str(script), place=script.parent, log=log).returncode
        if code != -Signals.SIGABRT:
            break
    return code


@pytest.fixture(scope="module")
def jobs() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.mark.parametrize("each", SEEN_IN_RUN)
def test_in_a_run_bad_is_found_and_good_is_silent(
    each: page.Page, tmp_path: Path, jobs: Server, machine: Machine
) -> None:
    bad = machine.until_told(lambda name: run(each, "Bad", tmp_path / name, jobs), [each.fault.slug], lost=timed(each))
    assert slugs(run(each, "Good", tmp_path / "good", jobs)) == set()
    skip_where_busy(bad, [each.fault.slug])
    assert each.fault.slug in slugs(bad)


def run(each: page.Page, section: str, folder: Path, jobs: Server) -> Case:
    folder.mkdir()
    script = folder / f"{section}.py"
    script.write_text(each.snippet(section))
    code = jobs.run(script, folder / "run", ranks=each.ranks if each.ranks > 1 else 0)
    if code and each.ranks == 1:  # as the launcher tells it
        ended = {"kind": "ended", "code": 128 - code if code < 0 else code}
        ended["signal"] = Signals(-code).name if code < 0 else None
        with (folder / "run" / "processes.jsonl").open("a") as notes:
            notes.write(json.dumps(ended) + "\n")
    is_raised = each.fault.kind is FaultClass.ERROR or looks(each, "log")
    assert code == 0 or (section == "Bad" and is_raised)
    return triage.judge(folder / "run")


def timed(each: page.Page) -> bool:
    """What only a clock shows may be lost among a busy machine's other work, but nothing may be made of that."""
    return each.fault.specialist == "performance-profiling" or each.ranks > 1


def bases(slug: str) -> set[Basis]:
    """What has shown the harm of a fault, by the tests that are there."""
    found = {basis for basis, folder in PROOFS.items() if (folder / proof_of(slug)).exists()}
    if slug in json.loads(ON_CUDA.read_text())["passed"]:
        found.add(Basis.CUDA)
    if list((TESTS / "cases/recorded").glob(f"{slug}.*")):
        found.add(Basis.TRACE)
    return found


def proof_of(slug: str) -> str:
    return f"test_{slug.replace('-', '_')}.py"


@every_page
def test_a_page_names_what_has_proven_its_harm_or_says_why_nothing_has(each: page.Page) -> None:
    assert set(each.fault.proven_on) == bases(each.fault.slug)
    assert each.fault.proven_on or len(each.fault.proof.split()) >= 5


@pytest.mark.parametrize("proof", sorted(PROOFS[Basis.SIM].glob("test_*.py")), ids=lambda path: path.stem)
def test_a_proof_on_the_simulated_device_runs_there(proof: Path) -> None:
    """Each of its tests asks for the device by a fixture, and one for the code of the page."""
    tree = ast.parse(proof.read_text())
    tests = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")]
    on_device = [{each.arg for each in test.args.args} & {"device", "simulated", "ranks"} for test in tests]
    assert on_device
    assert all(on_device)
    slug = proof.stem.removeprefix("test_").replace("_", "-")
    assert any(isinstance(each, ast.Constant) and each.value == slug for each in ast.walk(tree))


@pytest.mark.parametrize("trace", sorted((TESTS / "cases/recorded").glob("*")), ids=lambda path: path.name)
def test_a_recorded_trace_shows_its_fault(trace: Path) -> None:
    assert trace.name.partition(".")[0] in slugs(triage.read([trace]))


@every_page
def test_a_remedy_is_verified_by_something_one_can_do(each: page.Page) -> None:
    short = [remedy.id for remedy in each.fault.remedies if len(remedy.verify.split()) < 4]
    assert short == []


def test_no_proof_stands_without_its_page() -> None:
    proofs = {path.name for folder in PROOFS.values() for path in folder.glob("test_*.py")}
    assert proofs <= {proof_of(slug) for slug in walk.pages()}


def test_every_specialist_shows_a_fault_in_the_source_or_a_run() -> None:
    assert {each.values[0].fault.specialist for each in PAGES} == set(load.catalog().specialists)  # type: ignore[union-attr]
