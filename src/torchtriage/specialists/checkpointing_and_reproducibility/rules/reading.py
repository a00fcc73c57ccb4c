"""What the source alone shows about files that are read: whom they are trusted to come from, and where they go."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.loaded import expanded
from torchtriage.examine.source.script import Script
from torchtriage.specialists.checkpointing_and_reproducibility.rules.places import (
    comes_from,
    holds,
    is_false,
    is_passing,
    same_path,
    saves,
)

_DOWNLOADS = frozenset(
    {"huggingface_hub.hf_hub_download", "huggingface_hub.snapshot_download", "urllib.request.urlretrieve"}
    | {"urllib.request.urlopen", "gdown.download", "wget.download", "requests.get", "torch.hub.download_url_to_file"}
    | {"huggingface_hub.cached_download", "boto3.client", "urllib.request.urlopen", "requests.post", "httpx.get"}
)
_RECEIVED = ("flask.request.", "bottle.request.", "streamlit.file_uploader", "gradio.")
_CONFIGS = ("yaml.safe_load", "yaml.load", "json.load", "tomllib.load", "omegaconf.OmegaConf.load", "toml.load")
_GIVERS = ("a download", "a request", "the command line", "the environment", "a configuration file", "a caller")
_READS = ("open", "read", "getvalue", "resolve", "expanduser", "joinpath", "format", "iter_content")
_SEVERAL = ("builtins.sorted", "builtins.list", "builtins.max", "glob.glob", "glob.iglob")
_PARSERS = ("parse_args", "parse_known_args")
_FOREIGN = re.compile(
    r"pretrain|teacher|download|hub|url|backbone|init_from|external|third|finetun|fine_tun|[._]init\b"
)
_ASKS_RANK = re.compile(r"rank|is_main|is_master|main_process|master")


@detector("source/pickle-trusted")
def pickle_trusted(script: Script) -> Iterator[Sighting]:
    """A file from outside this script is loaded with weights_only=False: code in it is run."""
    writes = any(saves(script))
    loads = list(script.named("torch.load"))
    trusting = [call for call in loads if _is_trusting(script, call)]
    for call in (*trusting, *_by_partials(script)):
        path = call.argument("f", 0)
        if path is None or _is_own(script, call):
            continue
        giver = _giver(script, path, call.scope)
        if giver is None or (
            writes and giver not in ("a download", "a request") and not _FOREIGN.search(_words(script, call))
        ):
            continue
        yield script.seen(
            call.node,
            f"{script.source(path)} comes from {giver}, and weights_only=False lets that file run any code when it "
            "is loaded",
        )
    yield from _for_all(script)


def _by_partials(script: Script) -> Iterator[Call]:
    """The calls of load = functools.partial(torch.load, weights_only=False)."""
    for made in script.named("functools.partial"):
        target = made.statement.targets[0] if isinstance(made.statement, ast.Assign) else None
        loads = bool(made.node.args) and script.names.resolve(made.node.args[0], made.scope) == "torch.load"
        if not loads or not isinstance(target, ast.Name) or not is_false(made.argument("weights_only")):
            continue
        for call in script.calls(target.id):
            stores = script.names.stores(target.id, call.scope) if call.receiver is None else []
            if len(stores) == 1 and stores[0].value is made.node and call.argument("weights_only") is None:
                yield call


def _for_all(script: Script) -> Iterator[Sighting]:
    """Places that turn weights_only off for every load of the process: torch.load = …, an environment variable."""
    scopes = [scope for scope in script.facts.scopes if "torch.load" in scope.stores]
    for store in (store for scope in scopes for store in scope.stores["torch.load"] if store.value is not None):
        if script.names.resolve(ast.Name("torch"), store.scope) == "torch" and _makes_trusting(script, store):
            yield script.seen(store.node, "from here on every torch.load of the process runs the code in its file")
    for scope in script.facts.scopes if "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD" in script.aside else ():
        for store in scope.stores.get("os.environ.TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", ()):
            if isinstance(store.value, ast.Constant) and str(store.value.value).lower() in ("1", "y", "yes", "true"):
                yield script.seen(store.node, "from here on every torch.load of the process runs the code in its file")


def _makes_trusting(script: Script, store: Store) -> bool:
    """Whether what is put in the place of torch.load gives weights_only=False: a partial, a lambda, a function."""
    value = store.value
    own = script.trace.definition(value, store.scope) if value is not None else None
    node = own.node if own is not None else value
    for each in ast.walk(node) if node is not None else ():
        match each:
            case ast.keyword(arg="weights_only", value=ast.Constant(value=False)):
                return True
            case ast.Call(
                func=ast.Attribute(attr="setdefault"),
                args=[ast.Constant(value="weights_only"), ast.Constant(value=False)],
            ):
                return True
            case ast.Assign(
                targets=[ast.Subscript(slice=ast.Constant(value="weights_only"))], value=ast.Constant(value=False)
            ):
                return True
    return False


def _is_trusting(script: Script, load: Call) -> bool:
    """Whether weights_only=False is given, by the call or by **options that are spelled out in this file."""
    given = load.argument("weights_only", 4)
    return is_false(given if given is not None else expanded(script, load).get("weights_only", (None,))[0])


def _is_own(script: Script, load: Call) -> bool:
    """Whether the file is one that this script writes itself."""
    path = (load.argument("f", 0), load.scope)
    return any(holds(script, save, path) for save in saves(script))


def _words(script: Script, call: Call) -> str:
    return f"{call.scope.name} {script.source(call.statement)}".lower()


def _giver(script: Script, path: ast.expr, scope: Scope, deep: int = 0) -> str | None:
    """Who decides what PATH is: the command line, the environment, a download, a caller; None for this file itself."""
    found = set()
    for origin in script.trace.origins(path, scope):
        node = origin.node
        if origin.is_parameter:
            found.add(_caller(origin.scope))
        elif isinstance(node, ast.Attribute | ast.Subscript):
            found.add(_option(script, node, origin.scope))
            if isinstance(node, ast.Subscript) and deep < 4:  # the newest of several
                found |= {
                    _called(script, end.node, end.scope, deep + 1)
                    for end in script.trace.origins(node.value, origin.scope)
                    if isinstance(end.node, ast.Call) and script.names.resolve(end.node.func, end.scope) in _SEVERAL
                }
        elif isinstance(node, ast.Call):
            found.add(_called(script, node, origin.scope, deep))
        elif isinstance(node, ast.JoinedStr | ast.BinOp) and deep < 4:
            names = (each for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute))
            found |= {_giver(script, each, origin.scope, deep + 1) for each in names}
    return next((each for each in _GIVERS if each in found), None)


def _caller(function: Scope) -> str | None:
    """A public function that nothing in this file calls is called by somebody else."""
    return None if function.name.startswith(("_", "test")) or function.kind == "lambda" else "a caller"


def _option(script: Script, node: ast.Attribute | ast.Subscript, scope: Scope) -> str | None:
    for origin in script.trace.origins(node.value, scope):
        if origin.call is not None and script.names.resolve(origin.call.func, origin.scope) in _DOWNLOADS:
            return "a download"
        if origin.call is not None and dotted(origin.call.func).rpartition(".")[2] in _PARSERS:
            return "the command line"
        if origin.call is not None and script.names.resolve(origin.call.func, origin.scope) in _CONFIGS:
            return "a configuration file"
    base = script.names.resolve(node.value if isinstance(node, ast.Subscript) else node, scope)
    if f"{base}.".startswith(_RECEIVED):
        return "a request"
    return {"sys.argv": "the command line", "os.environ": "the environment"}.get(base)


def _called(script: Script, node: ast.Call, scope: Scope, deep: int) -> str | None:
    name = script.names.resolve(node.func, scope)
    if name in _DOWNLOADS:
        return "a download"
    if name.startswith(_RECEIVED):
        return "a request"
    if name == "builtins.input":
        return "the command line"
    if name in ("os.environ.get", "os.getenv"):
        return "the environment"
    given = [*node.args]
    reads = isinstance(node.func, ast.Attribute) and node.func.attr in _READS
    if reads and isinstance(node.func, ast.Attribute):
        given.append(node.func.value)
    passes = name.startswith(("os.path.", "pathlib.", "io.")) or name in ("builtins.str", "builtins.open", *_SEVERAL)
    if deep > 4 or not (passes or reads):
        return None
    found = {_giver(script, each, scope, deep + 1) for each in given}
    return next((each for each in found if each), None)


@detector("source/loads-to-saved-device")
def loads_to_saved_device(script: Script) -> Iterator[Sighting]:
    """Every rank loads the checkpoint to the device that it was saved from."""
    if (
        script.names.framework()
        or not any(script.named("torch.distributed.init_process_group"))
        or not _uses_cuda(script)
    ):
        return
    loads = list(script.named("torch.load"))
    if any(script.named("torch.set_default_device")):
        return
    for call in loads:
        if _is_placed(call) or _is_for_one_rank(script, call) or not _is_state(script, call):
            continue
        if is_passing(script, call.argument("f", 0), call.scope):
            continue
        path = (call.argument("f", 0), call.scope)
        if _lies_on_cpu(script, path):
            continue
        others = (each for each in loads if each.scope is call.scope and _is_placed(each))
        if any(same_path(script, path, (each.argument("f", 0), each.scope)) for each in others):
            continue
        yield script.seen(
            call.node,
            "without map_location every rank puts a copy of the tensors on the device that rank 0 saved them from, "
            "usually GPU 0",
        )


def _lies_on_cpu(script: Script, path: tuple[ast.expr | None, Scope]) -> bool:
    """Whether what is in the file was brought to the CPU before it was saved."""
    if path[0] is not None and "cpu" in script.source(path[0]).lower():
        return True
    own = [save for save in saves(script) if holds(script, save, path)]
    ends = (end.node for save in own for end in script.trace.origins(save.argument("obj", 0), save.scope))
    given = (each for end in ends if end is not None for each in ast.walk(end))
    return any(isinstance(each, ast.Call) and _is_to_cpu(each) for each in given)


def _is_to_cpu(call: ast.Call) -> bool:
    match call:
        case ast.Call(func=ast.Attribute(attr="cpu")):
            return True
        case ast.Call(func=ast.Attribute(attr="to"), args=[ast.Constant(value="cpu")]):
            return True
    return False


def _uses_cuda(script: Script) -> bool:
    told = {word for word in script.aside if "cuda" in word or word == "nccl"}
    return bool(told) or any(script.calls("cuda"))


def _is_placed(call: Call) -> bool:
    return call.argument("map_location", 1) is not None or any(each.arg is None for each in call.node.keywords)


def _is_for_one_rank(script: Script, call: Call) -> bool:
    tests = (block.owner.test for block in call.path if isinstance(block.owner, ast.If))
    return any(_ASKS_RANK.search(script.source(test).lower()) for test in tests)


def _is_state(script: Script, load: Call) -> bool:
    """Whether it is given to load_state_dict, and not data of another kind."""
    return any(
        comes_from(script, call.argument("state_dict", 0), call.scope, load) for call in script.calls("load_state_dict")
    )
