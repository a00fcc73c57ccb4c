"""Where ranks that train together meet, what they have in common, and where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from .event import Event

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NotRequired

    from .event import Where


class Collective(TypedDict):
    """One that torch's Flight Recorder holds. seq: its number within the group, from 1, apart for sends and receives.

    p2p: it is one of those. created: nanoseconds since 1970. pending: it has not ended as far as this process knows.
    sizes, dtypes: of what goes in, [[4, 4]] and ["Float"]. path, line: who asked for it, where that is known.
    """

    group: str
    seq: int
    p2p: bool
    op: str
    created: int
    pending: bool
    sizes: Sequence[Sequence[int]]
    dtypes: Sequence[str]
    path: NotRequired[str]
    line: NotRequired[int]


class Call(TypedDict, total=False):
    """A call of a function of torch.distributed, with the ranks that it names: in all, and within its group."""

    op: str
    group: str
    src: int
    dst: int
    group_src: int
    group_dst: int


class Reached(Event):
    """How far a rank had come in its collectives when its script was over.

    collectives: the last ones of each group and all that are pending. last: the number of the last one by group,
    "0 p2p" for sends and receives in group 0. groups: their ranks. batches, forwards, backwards: so far. why: what
    asked for a Hang. wakes: looks of the thread that watches, woken: microseconds of CPU time in all of them.
    """

    why: str = ""
    batches: int = 0
    forwards: int = 0
    backwards: int = 0
    collectives: Sequence[Collective] = ()
    last: Mapping[str, int] = {}
    groups: Mapping[str, Sequence[int]] = {}
    wakes: int = 0
    woken: int = 0


class Hang(Reached):
    """Where a rank stands that has not moved for SECONDS, or that was asked.

    why: "hang-after" so long, "signal" from another process, "error" that ends it, "dump" of the Flight Recorder.
    state: it "waits" for other ranks, stands "still" for two looks, is "busy", was "seen" once, or has "ended"; by a
    dump with nothing pending it is "past" its last collective. at: nanoseconds since 1970. stack: file, line, function
    and first lines of the loops around, of the user's frames, the innermost first. frames: file, line and function of
    any code. call: what the user's innermost frame has called. training: it learns just now.
    """

    seconds: float = 0.0
    state: str = ""
    at: int = 0
    stack: Sequence[tuple[str, int, str, Sequence[int]]] = ()
    frames: Sequence[tuple[str, int, str]] = ()
    call: Call | None = None
    training: bool = False


class Moved(Event):
    """A rank moves again that had written down where it stands, SECONDS after it had come to stand."""

    seconds: float


class Meeting(Event):
    """Call number N of a function of torch.distributed, or a "backward" pass, in which a wrapper averages gradients.

    Written before it begins, as text, in a ring file of its own. done: 1 once it has returned. at: nanoseconds since
    1970. backwards: passes so far. size, dtype: of its first tensor. path, line: who called. loops: function and first
    line of those around the call and its callers.
    """

    done: int = 0
    n: int = 0
    at: int = 0
    backwards: int = 0
    op: str = ""
    size: int = 0
    dtype: str = ""
    path: str = ""
    line: int = 0
    loops: Sequence[tuple[str, int]] = ()


class Rounds(Event):
    """Function and first line of the loops around a place in which an optimizer is called."""

    loops: Sequence[tuple[str, int]] = ()


class Collectives(Event):
    """The collectives of the last steps. Moments in microseconds after `base`, nanoseconds since 1970.

    ends: step, its last backward began, ended, its last wait for a collective ended, and the step. groups: name and
    ranks. rows: step, index of the group, number of the step's first collective, when it began, the same of its last,
    when the last one within backward began, how many, and bytes. pairs: sends and receives. kinds: the most frequent
    collectives, their bytes, how many. queued: seconds of a step that other threads of the process waited for a CPU.
    """

    base: int
    ends: Sequence[Sequence[int]]
    groups: Sequence[tuple[str, Sequence[int]]]
    rows: Sequence[tuple[int, int, int, int, int, int, int | None, int, int]] = ()
    pairs: int = 0
    kinds: Sequence[tuple[str, int, int]] = ()
    queued: float = 0.0


class Wrapper(Event):
    """A DistributedDataParallel, by what it notes of itself, made at path and line around a module of class `name`.

    world: ranks. buckets: bytes of each. looks: passes in which it took notes. spared: the search for unused parameters
    is not to blame, since it found one or a library wants it. searches: whether it does. unused: bytes of what was not
    used. passes: so far. size: bytes of all parameters. cap: of a bucket. hook: that exchanges in its stead. names: of
    parameters that learn, in the order of their numbers; told once.
    """

    name: str
    path: str
    line: int
    world: int | None = None
    buckets: Sequence[int]
    looks: int
    spared: bool
    searches: int | None = None
    unused: int | None = None
    passes: int | None = None
    size: int | None = None
    cap: int | None = None
    hook: str | None = None
    names: Sequence[str] = ()


class Replicas(Event):
    """The tensors of optimizer number `optimizer`, as from its update `turn` on: what each Look with this key is at.

    class_: the optimizer's, built: who made it. name: the class of the model. kinds: a letter for each tensor: p moved
    by the optimizer; o too, but in no wrapper, where there is one; f frozen, in a wrapper; b a buffer that nobody sends
    round. left: how many are divided among ranks, and not compared. over: ranks that a DistributedDataParallel averages
    over, None without one; made: who made it, hooks: functions that exchange in its stead, unknown: it has none of the
    tensors, though its module has.
    """

    optimizer: int
    turn: int
    class_: str
    built: Where | None = None
    key: int
    names: Sequence[str]
    sizes: Sequence[int]
    kinds: str
    left: int = 0
    name: str
    over: Sequence[int] | None = None
    hooks: Sequence[str] = ()
    made: Where | None = None
    unknown: bool = False


class Look(Event):
    """The bits of an optimizer's tensors after its update `turn`, 0 before the first.

    marks: sums of bits, squares: of values, writes: in place so far, of each tensor. gradients, states: sums of bits of
    all gradients and all states, None where nobody looked. settings: rates and the like of the first groups. clips: of
    gradients so far, clipped: lines of those since the last update. backwards: so far. at: who updated. joins: ranks
    may have different numbers of batches.

    Of the job's own collectives: averaged: updates before which they carried gradients, carried: numbers of the tensors
    whose gradients they did now, groups: of ranks, asked: the line and its callers. weights: values of weights that
    they carried, calls: how many, most: values in them between two updates; so far.
    """

    optimizer: int
    turn: int
    key: int
    writes: Sequence[int]
    settings: Sequence[Mapping[str, float | Sequence[float]]] = ()
    clips: int = 0
    clipped: Sequence[Where] = ()
    backwards: int = 0
    at: Where = ("", 0)
    joins: bool = False
    averaged: int = 0
    weights: int = 0
    calls: int = 0
    most: int = 0
    carried: Sequence[int] = ()
    groups: Sequence[Sequence[int]] = ()
    asked: Sequence[Where] = ()
    marks: Sequence[int] = ()
    squares: Sequence[float] = ()
    gradients: int | None = None
    states: int | None = None
