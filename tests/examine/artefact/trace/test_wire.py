"""From text to columns: any layout, any order of keys, whatever is wrong with it."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from traced.changed import changed
from traced.jobs import Job, Plan, made

from torchtriage.examine.artefact import trace
from torchtriage.examine.artefact.opened import Unreadable
from torchtriage.examine.artefact.trace.events import Odd
from torchtriage.examine.artefact.trace.exact import exact, nanoseconds
from torchtriage.examine.artefact.trace.wire import Read, decode

SMALL = Job("small", Plan(items=1), 2, 0, frozenset(), frozenset(), steps=2)
COLUMNS = ("category", "start", "length", "call", "inside")


def reader(text: str | bytes) -> Any:
    """A file's read."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    at = 0

    def read(size: int) -> bytes:
        nonlocal at
        at += size
        return data[at - size : at]

    return read


def told(read: Read) -> list[tuple[Any, ...]]:
    """The events as rows, in no order."""
    events = read.events
    names = [events.names[each] for each in events.name.tolist()]
    shapes = [json.loads(events.shapes[each][1]) if each >= 0 else None for each in events.shape.tolist()]
    columns = [getattr(events, name).tolist() for name in COLUMNS]
    return sorted(zip(names, *columns, (str(each) for each in shapes), strict=True))


numbers = st.integers(0, 2**42).map(lambda nano: f"{nano // 1000}.{nano % 1000:03d}")
events = st.fixed_dictionaries(
    {
        "ph": st.sampled_from(['"X"', '"X"', '"X"', '"i"', '"s"', '"zz"']),
        "cat": st.sampled_from(
            ['"kernel"', '"cpu_op"', '"cuda_runtime"', '"user_annotation"', '"ac2g"', '"of its own"']
        ),
        "name": st.text(max_size=12).map(json.dumps),
        "pid": st.sampled_from(["0", "1", '"Spans"']),
        "tid": st.sampled_from(["7", "20", '"PyTorch Profiler"']),
        "ts": numbers,
        "dur": numbers,
        "args": st.fixed_dictionaries(
            {"External id": st.integers(0, 99).map(str), "correlation": st.integers(0, 99).map(str)},
            optional={
                "Input Dims": st.sampled_from(["[[2, 3], []]", "[]", '[[4], {"a": [1]}]']),
                "bytes": st.integers(0, 2**40).map(str),
                "Collective name": st.just('"allreduce"'),
                "more": st.sampled_from(['{"a": {"b": [1, 2]}}', '"},{"', '"]}"']),
            },
        ),
    }
)


def spelled(event: dict[str, Any], chance: Random, blank: str) -> str:
    pairs = [(key, spelled(value, chance, blank) if isinstance(value, dict) else value) for key, value in event.items()]
    chance.shuffle(pairs)
    return "{" + f",{blank}".join(f'"{key}":{blank}{value}' for key, value in pairs) + "}"


@given(st.lists(events, min_size=1, max_size=40), st.integers(0, 99), st.sampled_from(["", " ", "\n    ", "\t\r\n"]))
@settings(max_examples=60, phases=[Phase.generate])
def test_the_typed_way_and_the_exact_way_tell_the_same_of_any_layout_and_order_of_keys(
    listed: list[dict[str, Any]], seed: int, blank: str
) -> None:
    text = f"{blank},{blank}".join(spelled(event, Random(seed), blank) for event in listed)
    whole = f'{{"schemaVersion": 1,{blank}"traceEvents":{blank}[{text}]{blank},"rank": 3}}'
    # a value that no profiler writes sends everything beside it the exact way
    odd = whole.replace("[{", '[{"ph": "X", "cat": "kernel", "ts": "x"},{', 1)
    fast, slow = decode(reader(whole)), decode(reader(odd))
    assert told(fast) == told(slow)
    assert fast.fields == slow.fields == {"schemaVersion": 1, "rank": 3}
    assert not fast.odd.counts
    assert fast.broken is slow.broken is None


@given(st.lists(events, min_size=1, max_size=40), st.integers(0, 99), st.integers(40, 400))
@settings(max_examples=40, phases=[Phase.generate])
def test_where_the_text_is_cut_into_pieces_changes_nothing(listed: list[dict[str, Any]], seed: int, size: int) -> None:
    from torchtriage.examine.artefact.trace import pieces

    text = "[" + ",".join(spelled(event, Random(seed), " ") for event in listed) + "]"
    whole = told(decode(reader(text)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "SIZE", size)
        assert told(decode(reader(text))) == whole


@pytest.mark.parametrize("layout", ["kineto", "lines", "dense", "pretty", "shuffled", "list", "late", "gzip"])
def test_every_layout_gives_the_same_summary(layout: str, tmp_path: Any) -> None:
    paths, _ = made(SMALL, tmp_path, layout)
    expected, _ = made(SMALL, tmp_path / "as", "dense")
    own, other = trace.summary(str(paths[0])), trace.summary(str(expected[0]))
    assert (own.steps, own.total, own.kernels, own.met) == (other.steps, other.total, other.kernels, other.met)


@pytest.mark.parametrize("layout", ["kineto", "lines", "dense", "pretty", "shuffled", "list", "late", "gzip"])
def test_the_first_word_is_that_of_the_whole_analysis(layout: str, tmp_path: Any) -> None:
    paths, _ = made(SMALL, tmp_path, layout)
    first, whole = trace.glance(str(paths[0])), trace.summary(str(paths[0]))
    assert first.exactly == (layout == "shuffled")
    assert (first.steps, first.length, first.device) == (whole.count, whole.length, whole.device)
    assert {
        phase: whole.total[phase] for phase in ("compute", "communication", "memcpy")
    }.items() <= first.total.items()
    assert sum(first.total.values()) == whole.length


@pytest.mark.parametrize(
    ("text", "nano"),
    [
        ("4513877311629.843", 4513877311629843),
        ("1.0005", 1000),
        ("1.0015", 1002),
        ("1711964646123456.789", 1711964646123456789),
        ("0.001", 1),
        ("1e3", 1_000_000),
    ],
)
def test_times_are_whole_nanoseconds(text: str, nano: int) -> None:
    odd = Odd()
    (event,) = exact(f'{{"ts": {text}}}'.encode(), odd).events
    assert nanoseconds(event["ts"]) == nano
    body = f'[{{"ph": "X", "cat": "kernel", "name": "k", "ts": {text}, "dur": 0.001}}]'
    assert decode(reader(body)).events.start.tolist() == [nano]


@pytest.mark.parametrize(
    ("event", "what"),
    [
        ('"ts": 1, "ts": 2, "dur": 3', "objects that name a key twice (the last value counts)"),
        ('"ts": 1, "dur": 3, "dur": 4', "objects that name a key twice (the last value counts)"),
        ('"ts": 1, "dur": -4', "events with a negative duration"),
        ('"ts": 1', "events without a time or a duration that is a number"),
        ('"ts": "soon", "dur": 1', "events without a time or a duration that is a number"),
        ('"ts": 1e400, "dur": 1', "events without a time or a duration that is a number"),
        ('"ts": NaN, "dur": 1', "events without a time or a duration that is a number"),
        ('"ts": 1e19, "dur": 1', "events without a time or a duration that is a number"),
    ],
)
def test_what_is_wrong_with_an_event_is_counted(event: str, what: str) -> None:
    sound = '{"ph": "X", "cat": "kernel", "name": "k", "ts": 5.000, "dur": 1.000}'
    read = decode(reader(f'[{sound}, {{"ph": "X", "cat": "kernel", "name": "k", {event}}}, {sound}]'))
    assert read.odd.counts == {what: 1}
    assert read.events.start.tolist().count(5000) == 2
    assert read.seen == 3


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_trace_is_read_to_the_break(kept: float, tmp_path: Any) -> None:
    paths, _ = made(SMALL, tmp_path, "kineto")
    data = paths[0].read_bytes()
    cut = data[: int(len(data) * kept)]
    paths[0].write_bytes(cut)
    read = decode(reader(cut))
    assert read.broken is not None
    assert len(cut) - 1000 < read.broken <= len(cut)
    assert read.seen == cut[: read.broken].count(b'"ph"')
    (why,) = (each.why for each in trace.read([str(paths[0])]).inconclusive if "read up to byte" in each.why)
    assert f"{read.broken:,}" in why


def test_what_has_no_list_of_events_is_refused_in_words(tmp_path: Any) -> None:
    (tmp_path / "x.json").write_text('{"a": 1}')
    with pytest.raises(Unreadable, match="traceEvents"):
        trace.summary(str(tmp_path / "x.json"))
    assert "traceEvents" in trace.read([str(tmp_path / "x.json")]).inconclusive[0].why


def test_changed_traces_are_read_without_a_crash(tmp_path: Any) -> None:
    chance, path = Random(8), tmp_path / "changed.json"
    seeds = [made(SMALL, tmp_path, layout)[0][0].read_bytes()[:3_000] for layout in ("kineto", "dense", "late", "list")]
    for _ in range(2_000):
        path.write_bytes(changed(chance.choice(seeds), chance))
        for look in (trace.summary, trace.glance):
            try:
                look(str(path))
            except Unreadable:
                continue


def test_a_summary_of_a_long_trace_stays_below_100_kb(tmp_path: Any) -> None:
    import msgspec

    job = Job("long", Plan(bucket=2**16, buckets=24), 2, 0, frozenset(), frozenset(), steps=300)
    paths, _ = made(job, tmp_path, "dense")
    told_of = trace.summary(str(paths[0]))
    data = msgspec.json.encode(told_of)
    assert len(data) <= 100_000
    assert told_of.count == 300
    assert msgspec.json.decode(data, type=trace.RankSummary) == told_of
    assert len({each.step for each in told_of.met}) >= 60


def test_columns_are_of_one_length() -> None:
    read = decode(reader('[{"ph": "X", "cat": "kernel", "name": "k", "ts": 5.000, "dur": 1.000}]'))
    assert {len(getattr(read.events, name)) for name in ("category", "name", "thread", "start", "shape")} == {1}
    assert read.events.start.dtype == np.int64


def test_a_wait_is_told_with_the_function_of_the_user_that_called_it(tmp_path: Any) -> None:
    def one(cat: str, name: str, start: int, length: int, **args: Any) -> dict[str, Any]:
        tid = 7 if cat == "kernel" else 1
        return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": start, "dur": length, "args": args}

    rows = [
        one("python_function", "train.py(3): <module>", 0, 1000),
        one("python_function", "train.py(12): log", 90, 400),
        one("python_function", "/venv/lib/python3.11/site-packages/torch/_tensor.py(5): item", 95, 300),
        one("cpu_op", "aten::item", 100, 290),
        one("cpu_op", "aten::_local_scalar_dense", 101, 280),
        one("cuda_runtime", "cudaStreamSynchronize", 110, 250, correlation=4),
        one("cuda_runtime", "cudaLaunchKernel", 50, 5, correlation=3),
        one("kernel", "k", 60, 200, correlation=3),
    ]
    (tmp_path / "x.json").write_text(json.dumps(rows))
    (wait,) = trace.summary(str(tmp_path / "x.json")).waits
    assert (wait.operator, wait.call, wait.count, wait.nanoseconds) == (
        "aten::item",
        "cudaStreamSynchronize",
        1,
        250_000,
    )
    assert (wait.path, wait.line, wait.function) == ("train.py", 12, "log")


def test_a_gzip_that_breaks_off_is_read_to_the_break(tmp_path: Any) -> None:
    paths, _ = made(SMALL, tmp_path, "gzip")
    whole = trace.summary(str(paths[0]))
    paths[0].write_bytes(paths[0].read_bytes()[:-4000])
    cut = trace.summary(str(paths[0]))
    assert 0 < cut.events < whole.events
    assert cut.broken is not None
    assert "gzip" in cut.broken[1]
    assert trace.glance(str(paths[0])).exactly


@pytest.mark.parametrize("filling", ["x", "[", "{", " ", '{"a":', "\\"])
def test_text_without_an_end_of_an_event_is_given_up(filling: str) -> None:
    sound = '{"ph": "X", "cat": "kernel", "name": "k", "ts": 5.000, "dur": 1.000},'
    read = decode(reader(f'{{"traceEvents": [{sound}{{"name": "' + filling * (40_000_000 // len(filling))))
    assert read.broken is not None
    assert read.events.start.tolist() == [5000]


@pytest.mark.parametrize(
    ("further", "unseen"),
    [
        ("", None),
        (', {"ph": "X", "cat": "mtia_kernels", "name": "k", "ts": 3.000, "dur": 1.000}', "an accelerator whose events"),
        (', {"ph": "X", "cat": "of my own", "name": "k", "ts": 3.000, "dur": 1.000}', None),
    ],
)
def test_a_host_whose_device_is_not_seen_is_not_judged_by_its_own_times(
    further: str, unseen: Any, tmp_path: Any
) -> None:
    one = '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1.000, "dur": 9.000}'
    (tmp_path / "x.json").write_text(f"[{one}{further}]")
    told = trace.summary(str(tmp_path / "x.json"))
    assert (told.unseen is None) == (unseen is None)
    assert unseen is None or unseen in str(told.unseen)
    head = '{"deviceProperties": [{"id": 0, "name": "NVIDIA A100"}], "traceEvents": '
    (tmp_path / "x.json").write_text(f"{head}[{one}]}}")
    assert "NVIDIA A100" in trace.read([str(tmp_path / "x.json")]).inconclusive[0].why
