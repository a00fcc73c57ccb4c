"""What goes in: samples that do not belong to their labels, splits that overlap, inputs that were changed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mutants.catalogue import ERROR, FIGURE, MEMORY, REPORT, SPEED, operator
from mutants.queries import LABELS, batches, calls, keyword, last_name
from mutants.source import Project, Site, Source

MISALIGNED = ("labels-misaligned",)
HELD_OUT = re.compile(r"(?i)(val|valid|validation|test|eval|dev)")


def inserted(project: Project, code: str, aid: str = "", *, of_numbers: bool = False) -> Iterator[Site]:
    """CODE right after a training has taken its batch apart; {x} and {y} are the names of its inputs and its labels.

    of_numbers: not in a program that embeds its inputs, which are ids.
    """
    if of_numbers and any(calls(project, "Embedding")):
        return
    for batch in batches(project):
        text = code.format(x=batch.inputs, y=batch.targets)
        put = batch.source.before if batch.is_before else batch.source.after
        yield put(batch.anchor, text) + (batch.source.imported(aid) if aid else Site(()))


def getitems(project: Project) -> Iterator[tuple[Source, ast.FunctionDef]]:
    for source in project.sources:
        yield from ((source, each) for each in source.walk(ast.FunctionDef) if each.name == "__getitem__")


@operator("DeepCrime TCL; shuffled labels of Zhang et al. 2017", MISALIGNED, beside=("input-ignored",))
def labels_shuffled(project: Project) -> Iterator[Site]:
    yield from inserted(project, "{y} = {y}[torch.randperm(len({y}))]", "import torch")


@operator("Two arrays that are one off, after one was filtered", MISALIGNED, beside=("input-ignored",))
def labels_rolled(project: Project) -> Iterator[Site]:
    yield from inserted(project, "{y} = {y}.roll(1, 0)")


@operator("An index that counts from 1 in one of two arrays", MISALIGNED, beside=("input-ignored",))
def labels_off_by_one_sample(project: Project) -> Iterator[Site]:
    """`self.labels[index]` of a data set becomes that of the sample before."""
    for source, function in getitems(project):
        for each in source.walk(ast.Subscript, function):
            name = last_name(each.value)
            if LABELS.fullmatch(name) and isinstance(each.slice, ast.Name) and isinstance(each.value, ast.Attribute):
                yield source.replace(each.slice, f"{each.slice.id} - 1")


@operator("A next-token target that is not shifted", ("target-in-input",), beside=("labels-misaligned",),
          shows=(ERROR, FIGURE, REPORT))  # fmt: skip
def target_not_shifted(project: Project) -> Iterator[Site]:
    """`ids[:, 1:]` becomes `ids[:, :-1]`, and `[i + 1 : …]` loses its 1."""
    sequences = re.compile(r"\w*(ids|tokens|chunk|seq|sequence|text|target|targets|tgt|labels)")
    for source in project.sources if any(calls(project, "Embedding")) else ():
        for each in source.walk(ast.Slice):
            parent = source.parent(each)
            whole = source.parent(parent) if isinstance(parent, ast.Tuple) else parent
            if not isinstance(whole, ast.Subscript) or not sequences.fullmatch(last_name(whole.value)):
                continue
            if each.upper is None and each.lower is not None and source.code(each) == "1:":
                yield source.replace(each, ":-1")
            elif each.lower is not None and each.upper is not None:
                lower, upper = source.code(each.lower), source.code(each.upper)
                if lower.endswith(" + 1") and ("+ 1 +" in upper or upper.endswith("+ 1")):
                    yield source.replace(each, f"{lower[:-4]} : {re.sub(r' [+] 1(?= [+]|$)', '', upper, count=1)}")


@operator("A feature that was computed from the label (data leakage, Kaufman et al. 2012)", ("target-in-input",),
          beside=("labels-misaligned",), shows=(ERROR, FIGURE, REPORT))  # fmt: skip
def label_written_into_input(project: Project) -> Iterator[Site]:
    """The first feature of each sample is its label, in training only, as a column that is not known later."""
    code = "{x} = {x}.clone()\n{x}.flatten(1)[:, 0] = {y}.flatten()[: len({x})].to({x}.dtype)"
    yield from inserted(project, code, of_numbers=True)


@operator("DeepCrime VRM; evaluation on the training set", ("evaluation-data-in-training",), shows=(ERROR, REPORT))
def evaluated_on_training_data(project: Project) -> Iterator[Site]:
    """A held-out set or loader in an argument is replaced by its training twin of the same scope."""
    for source in project.sources:
        known = {node.id for node in source.walk(ast.Name) if isinstance(node.ctx, ast.Store)}
        for call in source.walk(ast.Call):
            found = [each for given in call.args for each in source.walk(ast.Name, given) if HELD_OUT.match(each.id)]
            twins = [HELD_OUT.sub("train", each.id, count=1) for each in found]
            if found and set(twins) <= known:
                edits = [source.replace(each, twin).edits for each, twin in zip(found, twins, strict=True)]
                yield Site(tuple(edit for each in edits for edit in each))


@operator("A split whose parts overlap", ("evaluation-data-in-training",), shows=(ERROR, REPORT))
def split_overlaps(project: Project) -> Iterator[Site]:
    """Of `[:n]` and `[n:]` the first takes everything, of all arrays of a statement."""
    for source in project.sources:
        plain = [each for each in source.walk(ast.Slice) if isinstance(source.parent(each), ast.Subscript)]
        ends = {source.code(each.lower) for each in plain if each.lower and not each.upper}
        heads: dict[tuple[ast.stmt, str], Site] = {}
        for each in plain:
            if each.lower is None and each.upper is not None and each.step is None and source.code(each.upper) in ends:
                place = (source.statement(each), source.code(each.upper))
                heads[place] = heads.get(place, Site(())) + source.replace(each, ":")
        yield from heads.values()


@operator("Pictures from 0 to 255 that were meant from 0 to 1", ("learning-rate-too-high",),
          beside=("loss-diverged",))  # fmt: skip
def inputs_times_255(project: Project) -> Iterator[Site]:
    """In training only: evaluation has the scaling that training lost."""
    yield from inserted(project, "{x} = {x} * 255", of_numbers=True)


@operator("A normalisation that was forgotten", (), beside=("learning-rate-too-high",))
def normalisation_dropped(project: Project) -> Iterator[Site]:
    """`(x - mean) / std` becomes x, and `x / 255` becomes x."""
    for source in project.sources:
        for each in source.walk(ast.BinOp):
            if not isinstance(each.op, ast.Div):
                continue
            names = " ".join(last_name(node) for node in ast.walk(each.right)).lower()
            left = each.left
            if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Sub) and re.search(r"std|sigma|scale", names):
                yield source.replace(each, source.code(left.left))
            elif source.code(each.right) in ("255", "255.0"):
                yield source.replace(each, source.code(left))


@operator("An input that was cast to bytes", ("input-ignored", "loss-at-chance"), beside=("dead-units",))
def inputs_cast_to_integers(project: Project) -> Iterator[Site]:
    """In training only."""
    yield from inserted(project, "{x} = {x}.to(torch.int8).to({x}.dtype)", "import torch", of_numbers=True)


@operator("Values that are missing come as NaN", ("input-not-finite", "non-finite-origin"))
def missing_values_as_nan(project: Project) -> Iterator[Site]:
    """A sample of each batch has one, in training."""
    yield from inserted(project, '{x} = {x}.clone()\n{x}[0].flatten()[:1] = float("nan")', of_numbers=True)


@operator("A loader that does not shuffle", ("sampler-epoch-not-set",), beside=("seeds-incomplete",))
def shuffle_off(project: Project) -> Iterator[Site]:
    for source, call in calls(project, "DataLoader"):
        given = keyword(call, "shuffle")
        if given and source.code(given.value) == "True":
            yield source.replace(given.value, "False")


@operator("A seed that is set where it was not meant: every draw is the first", ("dataset-owned-rng",))
def seed_set_for_each_sample(project: Project) -> Iterator[Site]:
    for source, function in getitems(project):
        first = function.body[1 if ast.get_docstring(function) and len(function.body) > 1 else 0]
        yield source.before(first, "torch.manual_seed(0)") + source.imported("import torch")


@operator("Preprocessing in Python, for each sample and again in each epoch", ("input-bound", "worker-count"),
          beside=("python-loop-over-tensor",), shows=(ERROR, SPEED, MEMORY))  # fmt: skip
def slow_samples(project: Project) -> Iterator[Site]:
    code = "weights = [value**0.5 for value in range(40_000)]\nassert sum(weights) > 0"
    for source, function in getitems(project):
        first = function.body[1 if ast.get_docstring(function) and len(function.body) > 1 else 0]
        yield source.before(first, code)


@operator("Augmentation that is also on in evaluation", ("augmentation-in-evaluation",), shows=(ERROR, FIGURE, REPORT))
def augmented_evaluation(project: Project) -> Iterator[Site]:
    """A switch that is off in a call or by default, as it is for the held-out set, is on."""
    switch = re.compile(r"augment\w*|train|training|is_train|random_\w+|jitter|flip|mirror")
    for source in project.sources:
        for call in source.walk(ast.Call):
            for given in call.keywords:
                if switch.fullmatch(given.arg or "") and source.code(given.value) == "False":
                    yield source.replace(given.value, "True")
        for function in source.walk(ast.FunctionDef):
            arguments = function.args.args[::-1]
            for name, value in zip(arguments, function.args.defaults[::-1], strict=False):
                if switch.fullmatch(name.arg) and source.code(value) == "False":
                    yield source.replace(value, "True")
