"""The page in a real browser: its plots are drawn, and it can be read on a screen and on a telephone, by day and by night."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from math import exp, sin
from pathlib import Path
from typing import Any

import pytest
from allocator import GIB, MIB, Allocator, Job, OutOfMemoryError
from traced.jobs import Job as Traced
from traced.jobs import Plan, made

from torchtriage import triage
from torchtriage.core.case import Case
from torchtriage.core.evidence import Evidence, Place
from torchtriage.core.fault import Confidence, Fault, FaultClass, Persona, Remedy, Sign
from torchtriage.core.finding import Finding
from torchtriage.diagnose.compare import compare
from torchtriage.report.formats import compared
from torchtriage.report.html import render

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install '.[test]'")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH: apt-get install chromium")

PHASES = ("data", "transfer", "forward", "backward", "optimizer", "communication", "idle", "other")
LONG = "A fact that was measured in the run, and that is long enough to be folded on every telephone."
LINE = "loss = criterion(model(inputs, mask=mask), targets.to(device, non_blocking=True)) / accumulation"
LOOP = "src/project/training/loop.py"
MODULE = "encoder.layers.3.self_attention.out_proj"


def measured(steps: int, broken: int | None = None) -> dict[str, Any]:
    """A run of so many steps; from the step BROKEN on, loss and gradient norm are no numbers."""
    at, gone = range(steps), steps if broken is None else broken
    phases = {name: [0.01 * (1 + 0.3 * sin(step + len(name))) for step in at] for name in PHASES}
    return {
        "steps": steps,
        "step_time": {"median": 0.08, "p10": 0.07, "p90": 0.1, "interval": [0.078, 0.082]},
        "shares": dict.fromkeys(PHASES, 0.125),
        "setup": {"launch": ["python", "train.py", "--output-dir", "/scratch/users/someone/experiments/run-000123"]},
        "timeline": {"step": list(at), **phases, "rss": [3e9 + 1e6 * step for step in at], "allocated": [9e9] * steps},
        "loss": [[step, 7 * exp(-step / 40) if step < gone else "nan"] for step in at],
        "grad_norm": [[step, exp(abs(step - gone) / 9) if step < gone else "inf"] for step in at],
        "scale": [[step, 65536.0 * 2 ** -(step // 40)] for step in at],
    }


def finding(number: int, step: int) -> Finding:
    detector = f"run/example-{number}"
    fault = Fault(
        f"example-{number}",
        "mixed-precision-and-optimization",
        f"Example {number} of a fault that goes wrong",
        (FaultClass.WRONG, FaultClass.WASTE, FaultClass.ADVICE)[number % 3],
        Confidence.HIGH,
        Persona.DEFAULT,
        (Sign(detector),),
        (Remedy("one", LONG, LONG, LONG, 1, LONG),),
    )
    place = Place(LOOP, 40 + number, 5, rank=0, step=step, module=MODULE, anchor=LINE)
    return Finding(fault, (Evidence(detector, place, LONG, 0.5, "of the step", (0.4, 0.6)),))


STEPS_OF_MANY = (0, 1, 40, 40, 41, 42, 44, 90, 91, 150, 170, 171, 198, 199)
CASES = {
    "healthy": Case(measurements=measured(60)),
    "nan": Case(findings=(finding(0, 41),), measurements=measured(60, broken=41)),
    "many": Case(
        findings=tuple(finding(number, step) for number, step in enumerate(STEPS_OF_MANY)),
        measurements=measured(200, broken=170),
    ),
}


def several(ranks: int) -> dict[str, Any]:
    """A run of so many ranks, of which the last is waited for, and drifts away from the others."""
    at, last = range(0, 200, 4), ranks - 1
    slow = {rank: 0.004 if rank == last else 0.0 for rank in range(ranks)}
    times = {
        name: [[0.01 * (1 + 0.1 * sin(step + rank)) + slow[rank] for step in at] for rank in range(ranks)]
        for name in ("data", "forward", "backward", "optimizer")
    }
    each = [
        {
            "rank": rank, "steps": 200, "step_time": {"median": 0.08}, "seconds": dict.fromkeys(PHASES, 0.01),
            "differs": {"data": 0.012, "backward": -0.012} if rank == last else {}, "late": 0.012 * (rank == last),
            "host": f"node-{rank // 8}.cluster.example", "device": f"cuda:{rank % 8}", "ended": "exit",
            "memory": {"rss": 2e9, "peak": 7e10},
        }
        for rank in range(ranks)
    ]  # fmt: skip
    looks = [{"step": 2**power, "differing": max(0, power - 3) * 11, "of": 60} for power in range(8)]
    waits = {
        "step": 199,
        "seconds": 30.0,
        "waits_in": "all_reduce",
        "seq": 812,
        "group": "0",
        "path": LOOP,
        "line": 61,
        "state": "waits",
    }
    hang = [
        {"rank": rank, **waits, **({"waits_in": None, "line": 57, "state": "still"} if rank == last else {})}
        for rank in range(ranks)
    ]
    heat = {"of": ranks, "ranks": list(range(ranks)), "steps": list(at), "wide": 4, "phases": times}
    first = {"step": 16, "tensor": f"{MODULE}.weight", "ranks": [last]}
    divergence = {"looks": looks, "first": first}
    return {"world_size": ranks, "each": each, "heat": heat, "divergence": divergence, "hang": hang}


DRAWN = """() => [...document.querySelectorAll(".plot")].map((plot) => ({
  id: plot.id,
  svg: plot.querySelector("svg.main-svg")?.getBoundingClientRect().width ?? 0,
  paths: [...plot.querySelectorAll(".scatterlayer path.js-line, .scatterlayer path.js-fill")]
    .filter((path) => path.getTotalLength() > 20).length,
}))"""
CLIPPED = """() => {
  const found = [];
  for (const text of document.querySelectorAll(":is(.plot, .heat) svg text")) {
    const [inner, outer] = [text.getBoundingClientRect(), text.closest("svg").getBoundingClientRect()];
    const within = inner.left >= outer.left - 1 && inner.right <= outer.right + 1
      && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
    if (inner.width && !within) found.push(text.textContent);
  }
  for (const box of document.querySelectorAll("main *:not(.plot *, .heat *)")) {
    if (box.textContent.trim() && box.clientWidth && box.scrollWidth > box.clientWidth + 1) found.push(box.outerHTML.slice(0, 80));
  }
  return found;
}"""
FAINT = """() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const [r, g, b, a = 1] = channels(getComputedStyle(at).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return channels(getComputedStyle(document.documentElement).backgroundColor);
  };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    if (![...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim()) || !node.getClientRects().length) continue;
    const style = getComputedStyle(node);
    const [one, two] = [light(channels(node.closest("svg") ? style.fill : style.color)), light(behind(node))];
    const contrast = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    if (contrast < 4.5) found.push(`${node.textContent.trim().slice(0, 40)}: ${contrast.toFixed(2)}`);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield started
        started.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for name, case in CASES.items():
        (folder / f"{name}.html").write_text(render(case), encoding="utf-8")
    for ranks in (2, 64):
        case = Case(measurements={**measured(200), "ranks": several(ranks)})
        (folder / f"ranks-{ranks}.html").write_text(render(case), encoding="utf-8")
    told = compare(CASES["nan"], CASES["many"])
    (folder / "compared.html").write_text(compared(told, "html"), encoding="utf-8")
    for name, left in (("traces", traces(folder)), ("snapshot", snapshot(folder))):
        (folder / f"{name}.html").write_text(render(triage.read([left])), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in (*CASES, "ranks-2", "ranks-64", "compared", "traces", "snapshot")}


def traces(folder: Path) -> Path:
    """Of eight ranks, of which one waits for its data."""
    plan = Plan(late=1, more=60_000_000, phase="input")
    made(Traced("late", plan, 8, 1, frozenset(), frozenset()), folder / "traces")
    return folder / "traces"


def snapshot(folder: Path) -> Path:
    """Of a device whose memory is full of the activations of a step that is larger than those before."""
    job = Job(Allocator(2 * GIB), activation=60 * MIB).build()
    try:
        for scale in (1.0, 1.0, 1.0, 2.2):
            job.step(scale=scale)
    except OutOfMemoryError:
        (folder / "snapshot.pickle").write_bytes(pickle.dumps(job.device.snapshot()))
    return folder / "snapshot.pickle"


READY = """() => {
  if (!document.querySelector(".plot")) return true;
  if (document.querySelector(".plot:not(:has(.scatterlayer path))")) return false;
  const tick = document.querySelector(".plot .xtick text");
  return getComputedStyle(tick).fill === getComputedStyle(document.querySelector("nav a:not(:hover)")).color;
}"""


# Compiled once: what a page is asked later its own policy forbids to be evaluated.
WITHIN = """() => new Promise((done) => {
  const is = CONDITION;
  let frames = 600;
  const look = () => (is() || !frames-- ? done(is()) : requestAnimationFrame(look));
  look();
})"""


def becomes(page: Any, condition: str) -> bool:
    """Whether CONDITION, a function of JavaScript, is true of PAGE within some seconds."""
    return bool(page.evaluate(WITHIN.replace("CONDITION", condition)))


class Pages:
    """Each case's page, opened once for each width; whatever the browser complains of, and asks for, is kept."""

    def __init__(self, browser: Any, files: dict[str, Path]) -> None:
        self.browser, self.files = browser, files
        self.open: dict[tuple[str, int], Any] = {}
        self.complaints: list[str] = []

    def fresh(self, name: str, width: int) -> Any:
        page = self.browser.new_page(viewport={"width": width, "height": 900})
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.complaints.append(request.url) if request.url[:5] != "file:" else None)
        page.goto(self.files[name].as_uri())
        return page

    def __call__(self, name: str, width: int = 1280, scheme: str = "light") -> Any:
        if (name, width) not in self.open:
            self.open[name, width] = self.fresh(name, width)
        page = self.open[name, width]
        page.emulate_media(color_scheme=scheme)
        assert becomes(page, READY)
        return page


@pytest.fixture(scope="module")
def pages(browser: Any, files: dict[str, Path]) -> Pages:
    return Pages(browser, files)


@pytest.fixture
def shown(pages: Pages) -> Iterator[Pages]:
    yield pages
    assert pages.complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", CASES)
def test_every_plot_is_drawn_and_all_text_can_be_read(name: str, width: int, scheme: str, shown: Pages) -> None:
    page = shown(name, width, scheme)
    plots = page.evaluate(DRAWN)
    assert [plot["id"] for plot in plots] == ["plot-time", "plot-loss", "plot-grad_norm", "plot-scale", "plot-memory"]
    assert all(plot["svg"] > 0.8 * min(width, 900) and plot["paths"] for plot in plots)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CLIPPED) == []
    assert page.evaluate(FAINT) == []


WARM = "document.querySelectorAll('#heat-map .heatmaplayer image').length"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("ranks", [2, 64])
def test_ranks_side_by_side_can_be_read(ranks: int, width: int, scheme: str, shown: Pages) -> None:
    page = shown(f"ranks-{ranks}", width, scheme)
    assert becomes(page, f"() => {WARM} === 4")
    page.evaluate("document.querySelectorAll('#ranks details').forEach((each) => { each.open = true; })")
    images = page.evaluate(
        "[...document.querySelectorAll('#heat-map image')].map((each) => each.href.baseVal.slice(0, 14))"
    )
    assert images == ["data:image/png"] * 4
    assert page.locator(".ranks tbody tr").count() == ranks
    assert page.locator(".ranks .slow th").inner_text().split()[0] == str(ranks - 1)
    assert page.locator(".stand tbody th").first.inner_text() == str(ranks - 1)
    assert page.locator("#plot-divergence .scatterlayer path.js-line").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CLIPPED) == []
    assert page.evaluate(FAINT) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_traces_of_many_ranks_can_be_read(width: int, scheme: str, shown: Pages) -> None:
    page = shown("traces", width, scheme)
    assert becomes(page, f"() => {WARM} === 2")
    assert [plot["id"] for plot in page.evaluate(DRAWN)] == ["plot-time"]
    assert page.locator(".ranks .slow th").inner_text().split()[0] == "1"
    assert page.locator(".ranks .lane svg").count() == 8
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CLIPPED) == []
    assert page.evaluate(FAINT) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_a_memory_snapshot_can_be_read(width: int, scheme: str, shown: Pages) -> None:
    page = shown("snapshot", width, scheme)
    (plot,) = page.evaluate(DRAWN)
    assert plot["id"] == "plot-snapshot"
    assert plot["paths"] > 8
    assert "could not be allocated" in page.locator("#seen-snapshot .marks").inner_text()
    assert page.locator("#plot-snapshot .legendtext").count() == 9
    assert page.locator(".alive tbody tr").count() == 10
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CLIPPED) == []
    assert page.evaluate(FAINT) == []
    lost = "[...document.querySelectorAll('a')].filter((a) => !document.getElementById(a.hash.slice(1))).map((a) => a.href)"
    assert page.evaluate(lost) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_a_comparison_can_be_read(width: int, scheme: str, shown: Pages) -> None:
    page = shown("compared", width, scheme)
    assert page.locator("article").count() == len(STEPS_OF_MANY)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CLIPPED) == []
    assert page.evaluate(FAINT) == []


def test_a_finding_leads_to_its_plot_and_the_plot_back(shown: Pages) -> None:
    page = shown("nan")
    page.click("#finding-example-0 a[href='#seen-time']")
    assert page.evaluate("document.querySelector(':target').id") == "seen-time"
    page.click("#seen-loss .marks a")
    assert page.evaluate("document.querySelector(':target').id") == "finding-example-0"
    page.click("#plot-loss .annotation")
    assert page.evaluate("location.hash") == "#finding-example-0"


@pytest.mark.parametrize("name", CASES)
def test_no_link_leads_nowhere(name: str, shown: Pages) -> None:
    lost = "[...document.querySelectorAll('a')].filter((a) => !document.getElementById(a.hash.slice(1))).map((a) => a.href)"
    assert shown(name).evaluate(lost) == []


def test_the_faulty_step_is_marked_in_every_plot(shown: Pages) -> None:
    page = shown("nan")
    labels = "[...document.querySelectorAll('.plot')].map((plot) => plot.querySelector('.annotation')?.textContent)"
    assert page.evaluate(labels) == ["step 41"] * 5
    assert page.locator("#seen-loss .marks").inner_text() == "step 41: example-0, loss is not finite"


def test_a_page_follows_a_change_of_width_and_of_scheme(shown: Pages) -> None:
    page = shown.fresh("nan", 1280)
    assert becomes(page, READY)
    before = page.evaluate("getComputedStyle(document.querySelector('.plot .xtick text')).fill")
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 400, "height": 800})
    assert becomes(page, "() => document.querySelector('.plot svg.main-svg').getBoundingClientRect().width < 400")
    assert becomes(page, READY)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.evaluate("getComputedStyle(document.querySelector('.plot .xtick text')).fill") != before


def test_faint_and_clipped_text_would_be_noticed(shown: Pages) -> None:
    page = shown.fresh("healthy", 400)
    page.evaluate("document.querySelector('h1').style.color = '#ddd'")
    page.evaluate("Object.assign(document.querySelector('.pace').style, {whiteSpace: 'nowrap', overflow: 'hidden'})")
    assert [text.partition(":")[2] for text in page.evaluate(FAINT)] == [" 1.36"]
    assert [text[:15] for text in page.evaluate(CLIPPED)] == ['<p class="pace"']
