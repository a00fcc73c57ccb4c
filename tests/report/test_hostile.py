"""What a job, a log or a file says is data in every form."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import msgspec
import pytest
from plotly.offline import get_plotlyjs

from torchtriage.core.case import Case
from torchtriage.core.evidence import Evidence, Inconclusive, Observed, Place, Verdict
from torchtriage.core.fault import Confidence, Fault, FaultClass, Persona, Remedy, Sign
from torchtriage.core.finding import Finding
from torchtriage.core.plain import written
from torchtriage.core.plan import Plan, Stage, Step
from torchtriage.core.query import Query
from torchtriage.diagnose.compare import compare
from torchtriage.report import compare as compared
from torchtriage.report import formats, route
from torchtriage.report.formats import FORMATS, render
from torchtriage.report.paper import Paper

HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "\"' onmouseover=alert(1) x='",
    "[red]x[/red] [link=http://x.example]y[/link]",
    "\x1b]0;pwn\x07\x1b[2J\x1b[31mred",
    "\x9b31mred \x85next",
    "one\n::error file=x::two\r\n::stop-commands::t",
    "[click](javascript:alert(1)) ![i](http://x.example/i.png) `` ` <b>b</b> | @someone # h",
    "{{ 7 * 7 }} {% raw %} ${x} %0A::error::y",
    "\u202egnp.exe\u2066",
    "half \ud800 surrogate",
    ":emoji: 100% a,b:c",
]
LOUD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
COLOR = re.compile(r"\x1b\[[\d;]*m")


def hostile_case(said: str) -> Case:
    """SAID wherever text of a job, a file or a damaged case can stand."""
    remedy = Remedy("one", said, said, said, 1, said)
    fault = Fault(
        "example", said, said, FaultClass.WRONG, Confidence.HIGH, Persona.DEFAULT, (Sign("run/example"),), (remedy,)
    )
    place = Place(said, 3, 4, 3, rank=0, step=1, module=said, container=said, anchor=said)
    evidence = Evidence("run/example", place, said, 0.5, said, (0.4, 0.6))
    plan = Plan((Step("performance-profiling", Stage.DIAGNOSE, said, (said,), (said,), (said,), said),))
    measurements = {
        "setup": {said: said, "list": [{said: said}], "launch": [said]},
        "steps": said,
        "step_time": {"median": 0.1, "p10": said, "p90": [said]},
        "shares": {"data": 0.5, "forward": said, said: 0.5},
        "loss": [[0, 1.0], [1, "nan"], [said, said]],
        "timeline": {"step": [0, 1], "data": [0.1, 0.2], "rss": [said, 1.0], said: [1, 2]},
        "memory": said,
        "overhead": {"share": said},
        "ranks": ranks(said),
    }
    return Case(
        Query(said),
        plan,
        (Observed("run/example", (evidence,)), Inconclusive(said, said, said)),
        (Finding(fault, (evidence,)),),
        (Verdict(said, said, (evidence,)),),
        measurements,
    )


def ranks(said: str) -> dict[str, object]:
    """Two ranks that stand still and drift apart, with SAID wherever a text can stand."""
    waits = {"waits_in": said, "seq": 4, "group": said, "path": said, "line": 4, "state": said, "step": said}
    told = {"host": said, "device": said, "ended": said, "steps": 3, "late": said, "differs": {"step": 0.1, said: 0.1}}
    return {
        "world_size": 2,
        "each": [{"rank": rank, **told, "host": f"{rank} {said}", "step_time": {"median": 0.1}} for rank in range(2)],
        "hang": [{"rank": 0, **waits}, {"rank": 1, **waits, "waits_in": None}],
        "heat": {"ranks": [0, 1], "steps": [0, 1], "phases": {"data": [[0.1, said], [said, 0.1]], said: [[said]]}},
        "divergence": {
            "looks": [{"step": 0, "differing": 0, "of": 3}, {"step": 1, "differing": 1, "of": 3}, {"step": said}],
            "first": {"step": 1, "tensor": said, "ranks": [1, said]},
        },
        "scaling": {"efficiency": said, "ranks": said},
    }


class Shape(HTMLParser):
    """The tags of a page with their attributes' names, and its words."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.mark.parametrize("said", HOSTILE)
@pytest.mark.parametrize("form", FORMATS)
def test_no_control_character_gets_through(form: str, said: str) -> None:
    assert not LOUD.findall(render(hostile_case(said), form).replace(get_plotlyjs(), ""))


@pytest.mark.parametrize("said", HOSTILE)
def test_a_coloured_console_holds_no_sequence_but_colours(said: str) -> None:
    written = render(hostile_case(said), "console", Paper(80, color=True))
    assert not LOUD.findall(COLOR.sub("", written))


def test_console_markup_in_a_name_is_printed_as_it_is_spelt() -> None:
    written = render(hostile_case("[red]x[/red] :smile:"), "console")
    assert "[red]x[/red] :smile:" in written


@pytest.mark.parametrize("said", HOSTILE)
def test_no_text_adds_a_tag_or_an_attribute_to_the_page(said: str) -> None:
    harmless, page = Shape(render(hostile_case("harmless"), "html")), Shape(render(hostile_case(said), "html"))
    assert page.tags == harmless.tags
    assert not {"onerror", "onmouseover"} & {name for _, names in page.tags for name in names}


@pytest.mark.parametrize("said", HOSTILE)
def test_data_within_a_script_cannot_end_it(said: str) -> None:
    page = render(hostile_case(said), "html")
    data = page.split('<script type="application/json" id="plots">')[1].split("</script>")[0]
    assert not set(data) & set("<>&")
    assert msgspec.json.decode(data)


@pytest.mark.parametrize("said", HOSTILE)
def test_annotations_stay_one_for_each_finding(said: str) -> None:
    rows = render(hostile_case(said), "github").splitlines()
    assert len(rows) == 1
    properties, _, message = rows[0].removeprefix("::error ").partition("::")
    assert [part.split("=")[0] for part in properties.split(",")] == ["file", "line", "endLine", "col", "title"]
    assert "::" not in properties
    assert "\r" not in message


@pytest.mark.parametrize("said", HOSTILE)
def test_concise_stays_one_line_for_each_finding(said: str) -> None:
    assert len(render(hostile_case(said), "concise").splitlines()) == 1


@pytest.mark.parametrize("said", HOSTILE)
def test_markdown_holds_no_tag_link_or_mention_of_a_job(said: str) -> None:
    written = render(hostile_case(said), "markdown")
    outside = re.sub(r"(?<!\\)(`+)(?!`).*?(?<!`)\1(?!`)", "", written).replace("<br>", "")
    assert not re.search(r"<[a-zA-Z/!]", outside)
    assert "](" not in outside.replace("\\](", "").replace("\\]\\(", "")
    assert "@" not in outside
    assert "://" not in outside


@pytest.mark.parametrize("said", HOSTILE)
@pytest.mark.parametrize("form", ["json", "sarif"])
def test_json_forms_stay_json(form: str, said: str) -> None:
    assert msgspec.json.decode(render(hostile_case(said), form))


@pytest.mark.parametrize("said", [said for said in HOSTILE if "\ud800" not in said])
def test_json_gives_back_every_character(said: str) -> None:
    assert msgspec.json.decode(render(hostile_case(said), "json"))["findings"][0]["title"] == said


@pytest.mark.parametrize("said", HOSTILE)
def test_an_answer_to_a_hostile_query_is_inert(said: str) -> None:
    case = hostile_case(said)
    assert case.query is not None
    assert case.route is not None
    assert not LOUD.findall(route.render(case.query, case.route))
    assert not LOUD.findall(written(route.as_dict(case.query, case.route)))


COMPARED = {"lang", "charset", "http-equiv", "content", "name", "class", "id", "scope"}


@pytest.mark.parametrize("said", HOSTILE)
def test_a_comparison_of_hostile_cases_is_inert(said: str) -> None:
    named = {"parameters": {said: 3}, "devices": [{"name": said}], "batch": [{"shape": [said]}], "cpus": said}
    shares = {said: 0.5}
    one, two = (
        msgspec.structs.replace(
            hostile_case(said),
            measurements={"step_time": {"median": 0.1}, "setup": setup, "shares": shares, "steps": said},
        )
        for setup in (named, {**named, "devices": [{"name": f"{said}2"}]})
    )
    for told in (compare(one, two), compare(one, Case()), compare(Case(), two)):
        text, table, page = compared.render(told), compared.markdown(told), formats.compared(told, "html")
        assert not LOUD.findall(text + table + page)
        assert {name for _, names in Shape(page).tags for name in names} <= COMPARED
        assert not LOUD.findall(COLOR.sub("", compared.render(told, Paper(80, color=True))))
        assert msgspec.json.decode(compared.as_json(told))
        outside = re.sub(r"(?<!\\)(`+)(?!`).*?(?<!`)\1(?!`)", "", table).replace("<br>", "")
        assert not re.search(r"<[a-zA-Z/!]", outside)
        assert "@" not in outside
        assert "://" not in outside
