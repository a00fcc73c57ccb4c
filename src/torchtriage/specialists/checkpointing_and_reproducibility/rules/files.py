"""What an execution of the program shows about the files that checkpoints are written to and read from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain, shown
from torchtriage.examine.source.execution.values import (
    Function,
    Loaded,
    Member,
    Partial,
    Spot,
    Unknown,
    Value,
    truth,
)
from torchtriage.examine.source.facts import dotted
from torchtriage.examine.source.script import Script
from torchtriage.specialists.checkpointing_and_reproducibility.rules.saved import (
    is_same_file,
    is_same_path,
    path_of_file,
    saved_states,
)


@detector("source/loads-to-saved-device")
def loads_to_saved_device(trainings: Trainings) -> Iterator[Sighting]:
    """Every rank loads a checkpoint to the device that it was saved from."""
    written = [each for run in trainings.runs for each in run.of(events.Save)]

    def find(training: Training) -> Facts:
        joined = [each for each in training.of(events.LibraryCall) if each.name.endswith(".init_process_group")]
        if not (training.replicas or joined) or not training.mentions(_CUDA) or _saves_from_host(training):
            return
        spawns = {line for each in joined for line in training.calls(each.spot) if _SPAWNS.search(line)}
        used = [each.state for each in training.of(events.Restore)]
        loaded = [each.path for each in used if isinstance(each, Loaded) and not _is_brought_over(each.path, written)]
        paths = {id(each) for each in loaded if not _is_given(each, written)}
        for call in training.of(events.LibraryCall):
            where = call.arguments[1] if len(call.arguments) > 1 else call.keywords.get("map_location")
            is_load = call.name == "torch.load" and not call.guards and where is None and "**" not in call.keywords
            is_of_parent = bool(spawns) and spawns.isdisjoint(training.calls(call.spot))
            if is_load and paths & _path_of(call) and not is_of_parent:
                yield (
                    call.spot,
                    "without map_location every rank puts a copy of the tensors on the device that rank 0 saved them "
                    "from, usually GPU 0",
                )

    yield from certain(trainings, find, where_reached=True)


def _is_given(path: Value, saves: list[events.Save]) -> bool:
    """Whether PATH is a file that this program does not write: "./pretrained/resnet50.pth" holds what is on the CPU."""
    return isinstance(path, str) and not any(is_same_path(path, each.path) for each in saves)


def _is_brought_over(path: Value, saves: list[events.Save]) -> bool:
    """Whether what is written to PATH is no state as it is: tensors that were brought to the CPU."""
    mine = [each for each in saves if is_same_path(path, each.path)]
    return bool(mine) and not any(saved_states(each.saved) for each in mine)


_SPAWNS = re.compile(r"\bspawn\(")
"""By which call a program becomes one of several ranks: what it does before and behind that, it does alone."""
_CUDA = re.compile(rb"cuda|nccl")


def _saves_from_host(training: Training) -> bool:
    """Whether a function that saves brings each entry to the CPU: state[key] = value.cpu()."""
    functions = (each for each in ast.walk(training.script.tree) if isinstance(each, ast.FunctionDef))
    return any("torch.save(" in code and ".cpu()" in code for code in map(training.script.source, functions))


def _path_of(call: events.LibraryCall) -> set[int]:
    return {id(call.arguments[0] if call.arguments else call.keywords.get("f"))}


@detector("source/save-not-atomic")
def save_not_atomic(trainings: Trainings) -> Iterator[Sighting]:
    """The only checkpoint is overwritten in place: a job that is killed while it saves has none."""
    beside = {id(save.spot.node) for run in trainings.runs for save in _beside_others(_repeated(run))}

    def find(training: Training) -> Facts:
        if training.mentions(_MOVES):
            return
        every = training.executor.events
        restores = [each for each in training.of(events.Restore) if isinstance(each.state, Loaded)]
        saves = _repeated(training)
        for save in saves:
            mine = [each for each in saves if each.loops[0][0] == save.loops[0][0]]
            is_only = id(save.spot.node) not in beside
            is_repeated = len({each.loops for each in mine}) > 1 and _NO_RESUME.search(_path_code(save)) is None
            ahead = [each for each in restores if _is_ahead(each, save) and every.index(each) < every.index(save)]
            loads = [each.state.loaded for each in ahead if is_same_file(each.state.path, save.path)]
            if is_only and is_repeated and isinstance(save.saved, dict) and len(save.saved) > 1 and loads and loads[0]:
                yield (
                    save.spot,
                    f"this overwrites the file that {loads[0]} resumes from; while it is being written, "
                    "neither the old checkpoint nor the new one can be loaded",
                    _written_beside,
                )

    yield from shown(trainings, find, throughout=True)


def _repeated(training: Training) -> list[events.Save]:
    """The saves of states in loops."""
    return [each for each in training.of(events.Save) if each.loops and saved_states(each.saved)]


def _beside_others(saves: list[events.Save]) -> Iterator[events.Save]:
    """Those of SAVES in whose loop another file is written as well, from which the training could go on."""
    paths: dict[int, list[Value]] = {}
    for save in saves:
        known = paths.setdefault(save.loops[0][0], [])
        if not any(is_same_file(save.path, each) for each in known[:2]):
            known.append(save.path)
    yield from (each for each in saves if len(paths[each.loops[0][0]]) > 1)


def _is_ahead(restore: events.Restore, save: events.Save) -> bool:
    """Whether RESTORE stands outside of the loop that SAVE is repeated by."""
    return not restore.loops or restore.loops[0][0] != save.loops[0][0]


def _path_code(save: events.Save) -> str:
    given = save.spot.node.args[1:2] if isinstance(save.spot.node, ast.Call) else []
    return " ".join(ast.unparse(each).lower() for each in given)


def _written_beside(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    """Write beside it and rename: where the save is a statement of its own and the file imports os."""
    path = node.args[1] if isinstance(node, ast.Call) and len(node.args) > 1 else None
    statements = (each for each in ast.walk(script.tree) if isinstance(each, ast.Expr) and each.value is node)
    statement = next(statements, None)
    is_known = any(store.imported == "os" and store.name == "os" for store in script.facts.aliases)
    if path is None or statement is None or not is_known or not isinstance(node, ast.Call):
        return ()
    own = script.source(path)
    if isinstance(path, ast.Constant) and isinstance(path.value, str) and path.value.isprintable():
        beside = f'"{path.value}.tmp"'
    elif isinstance(path, ast.Name | ast.Attribute) and dotted(path):
        beside = f'f"{{{own}}}.tmp"'
    else:
        return ()
    raw = script.text.raw(statement.end_lineno or statement.lineno).rstrip()
    indent = script.text.indent(statement.lineno)
    if len(raw) != statement.end_col_offset or len(indent) != statement.col_offset:
        return ()
    return (
        *script.replaced("write-then-rename", path, beside),
        *script.appended("write-then-rename", node, f"\n{indent}os.replace({beside}, {own})"),
    )


_NO_RESUME = re.compile(r"(?<![a-z])(best|eval|test|infer|predict|valid)")
_MOVES = re.compile(rb"os\.replace|os\.rename|os\.link|os\.fsync|shutil\.|\.rename\(|\.replace\(\w+\)|copyfile|"
                    rb"import (tempfile|subprocess|fsspec|boto3)|from (tempfile|subprocess|fsspec|google)")  # fmt: skip


@detector("source/pickle-trusted")
def pickle_trusted(trainings: Trainings) -> Iterator[Sighting]:
    """A file from outside this script is loaded with weights_only=False: code in it is run."""

    def find(training: Training) -> Facts:
        yield from _for_all(training)
        saves = training.of(events.Save)
        for call in training.of(events.LibraryCall):
            path = call.arguments[0] if call.arguments else call.keywords.get("f")
            trust = call.arguments[4] if len(call.arguments) > 4 else call.keywords.get("weights_only", True)
            if call.name == _BY_ADDRESS and truth(call.keywords.get("weights_only", False)) is False:
                if "weights_only" in call.keywords:
                    yield call.spot, "weights_only=False lets the file that is downloaded run any code as it is loaded"
                continue
            if call.name != "torch.load" or truth(trust) is not False or _is_written(path, saves):
                continue
            giver = _giver(training, path, call.spot)
            giver = giver or ("a download" if training.names(_DOWNLOADING) and not training.mentions(_SAVES) else None)
            is_foreign = giver in ("a download", "a request") or _FOREIGN.search(training.code(call.spot).lower())
            if giver is not None and (is_foreign or not training.mentions(_SAVES)):
                yield (
                    call.spot,
                    f"its path comes from {giver}, and weights_only=False lets that file run any code as it is loaded",
                )

    yield from certain(trainings, find, where_reached=True)


_BY_ADDRESS = "torch.hub.load_state_dict_from_url"
_DOWNLOADING = re.compile(r"^(urlretrieve|download_url_to_file|hf_hub_download|snapshot_download)$")
"""Functions that bring a file whose path the program then makes itself."""
_SAVES = re.compile(rb"torch\.save\(|save_pretrained\(|save_checkpoint")
_FOREIGN = re.compile(
    r"pretrain|teacher|download|hub|url|backbone|init_from|external|third|finetun|fine_tun|[._]init\b"
)
"""How weights of others are called, where a script writes files of its own as well."""


def _for_all(training: Training) -> Facts:
    """What turns weights_only off for every load of the process: torch.load = …, an environment variable."""
    for setting in training.of(events.Setting):
        is_replaced = setting.name == "torch.load" and _makes_trusting(setting.value)
        is_asked = setting.name == f"os.environ.{_SWITCH}" and str(setting.value).lower() in ("1", "y", "yes", "true")
        if is_replaced or is_asked:
            yield setting.spot, "from here on every torch.load of the process runs the code in its file"


_SWITCH = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"


def _makes_trusting(value: Value) -> bool:
    """Whether what is put in the place of torch.load gives weights_only=False: a partial, a lambda, a function."""
    if isinstance(value, Partial):
        return value.keywords.get("weights_only") is False
    for each in ast.walk(value.node) if isinstance(value, Function) else ():
        match each:
            case ast.keyword(arg="weights_only", value=ast.Constant(value=False)):
                return True
            case ast.Call(args=[ast.Constant(value="weights_only"), ast.Constant(value=False)]):
                return True
            case ast.Assign(
                targets=[ast.Subscript(slice=ast.Constant(value="weights_only"))], value=ast.Constant(value=False)
            ):
                return True
    return False


def _is_written(path: Value, saves: list[events.Save]) -> bool:
    """Whether the script writes the file PATH itself."""
    return any(is_same_file(path, each.path) or is_same_path(path_of_file(path), each.path) for each in saves)


def _giver(training: Training, path: Value, spot: Spot) -> str | None:
    """Who decides what PATH is: the command line, the environment, a download, a caller; None for this file itself."""
    found: set[str | None] = set()
    value, deep = path, 0
    while isinstance(value, Unknown) and deep < _DEEP:
        found.add(_says_who(value))
        inner = value.receiver if isinstance(value, Member) else value.source
        is_made = not isinstance(value, Member) or value.name == "open" or value.why == "text"
        if not is_made and isinstance(inner, Unknown) and inner.is_given:  # args.data: what was asked for
            break
        value, deep = inner, deep + 1
    if isinstance(path, str) and _OPTIONS.search(training.line(spot)):
        found.add("the command line")
    return next((each for each in _GIVERS if each in found), None)


def _says_who(value: Unknown) -> str | None:
    if value.why in _DOWNLOADS:
        return "a download"
    if value.why.startswith(_RECEIVED):
        return "a request"
    if value.why in ("sys.argv", "builtins.input") or value.why.startswith("--"):
        return "the command line"
    if value.why in _CONFIGS:
        return "a configuration file"
    return "the environment" if value.why == "a variable" else "a caller" if value.is_given else None


_DEEP = 12
_GIVERS = ("a download", "a request", "the command line", "the environment", "a configuration file", "a caller")
_OPTIONS = re.compile(r"\b(args|opts?|hparams|flags)\.\w+", re.IGNORECASE)
_CONFIGS = ("yaml.safe_load", "yaml.load", "json.load", "tomllib.load", "omegaconf.OmegaConf.load", "toml.load")
_RECEIVED = ("flask.request.", "bottle.request.", "streamlit.file_uploader", "gradio.")
_DOWNLOADS = frozenset(
    {"huggingface_hub.hf_hub_download", "huggingface_hub.snapshot_download", "urllib.request.urlretrieve"}
    | {"urllib.request.urlopen", "gdown.download", "wget.download", "requests.get", "torch.hub.download_url_to_file"}
    | {"huggingface_hub.cached_download", "boto3.client", "requests.post", "httpx.get"}
)
