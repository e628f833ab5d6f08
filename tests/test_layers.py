"""Imports: layers point down, no cycles, one home per heavy library, dynamic imports included."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
MODULES = sorted(path.relative_to(SOURCE) for path in (SOURCE / "cagepool").rglob("*.py"))

# A layer may import itself, those after it, and leaves; a leaf imports leaves only.
LAYERS = (
    ("cli",),
    ("share",),
    ("report",),
    ("bench",),
    ("search", "study"),
    ("train",),
    ("integrations", "compat"),
    ("cyborg.agent", "cyborg.engine", "cyborg.parity"),
    ("evaluate",),
    ("envs", "cyborg"),
    ("jax",),
    ("cyborg.dict_state",),
    ("sim",),
    ("scenarios",),
    ("_core",),
)
# Packages whose top only re-exports, on first use, names of the layers inside.
FACADES = {"cagepool": "cli", "cagepool.cyborg": "cyborg.agent"}
LEAVES = ("errors", "_lookup", "_machine", "_optional", "_stages", "networks", "runs", "types")
HOMES = {
    "gymnasium": (
        *("cagepool.envs", "cagepool.cyborg", "cagepool.integrations", "cagepool.share.dataset"),
        *("cagepool.bench.contenders", "cagepool.bench.profile"),
    ),
    "gymnax": ("cagepool.jax.spaces",),
    "jax": ("cagepool.jax", "cagepool.bench.jax"),
    "jinja2": ("cagepool.report",),
    "matplotlib": ("cagepool.report",),
    "h5py": ("cagepool.share.dataset",),
    "minari": ("cagepool.share.dataset",),
    "onnx": ("cagepool.share.onnx_export",),
    "onnxruntime": ("cagepool.evaluate.onnx_policy",),
    "pettingzoo": ("cagepool.integrations.pettingzoo",),
    "PIL": ("cagepool.sim.frames",),
    "psutil": ("cagepool.bench",),
    "ray": ("cagepool.train.ray", "cagepool.integrations.rllib", "cagepool.bench.contenders"),
    "rich": ("cagepool.cli",),
    "safetensors": ("cagepool.runs",),
    "sb3_contrib": ("cagepool.integrations.sb3", "cagepool.integrations.sb3_models"),
    "scipy": ("cagepool.bench", "cagepool.study"),
    "sklearn": ("cagepool.search",),
    "stable_baselines3": (
        *("cagepool.integrations.sb3", "cagepool.integrations.sb3_models"),
        *("cagepool.bench.contenders", "cagepool.bench.train"),
    ),
    "tensorboard": ("cagepool.train",),
    "torch": (
        *("cagepool.networks", "cagepool.evaluate", "cagepool.train"),
        *("cagepool.integrations", "cagepool.share.network_onnx"),
    ),
    "tyro": ("cagepool.cli",),
    "wandb": ("cagepool.train.tracking",),
    "yaml": ("cagepool.scenarios.yaml_reader", "cagepool.scenarios.file_writer"),
}


# Modules that import a module whose name is known only at run time: lazy re-exports, CybORG's
# modules, and objects of a user given as "module:attribute".
COMPUTED_IMPORTS = ("cagepool.cyborg", "cagepool.cyborg.locate", "cagepool._lookup")
# Libraries that are used where a user has them: CybORG is on no registry; gymnax pins Gymnasium.
NOT_DECLARED = ("CybORG", "gymnax")
MAX_MODULES = 240

# Extras whose libraries a package may import; a package without an entry needs none. A bench that
# compares with a library of another extra checks first that it is installed.
EXTRAS = {
    "bench": ("bench", "train", "sb3", "ray", "jax"),
    "cli": ("cli",),
    "evaluate.network_policy": ("train",),
    "evaluate.onnx_policy": ("onnx",),
    "integrations.pettingzoo": ("pettingzoo",),
    "integrations.rllib": ("ray",),
    "integrations.sb3": ("sb3",),
    "integrations.sb3_models": ("sb3",),
    "jax": ("jax",),
    "networks": ("train",),
    "report": ("report",),
    "sim.frames": ("render",),
    "search": ("search",),
    "study": ("study",),
    "share.dataset": ("minari",),
    "share.network_onnx": ("export",),
    "share.onnx_export": ("export",),
    "train": ("train",),
    "train.ray": ("ray",),
    "train.tracking": ("wandb",),
}
DISTRIBUTIONS = {
    "PIL": "pillow",
    "grpc": "grpcio",
    "sb3_contrib": "sb3-contrib",
    "sklearn": "scikit-learn",
    "stable_baselines3": "stable-baselines3",
    "tree": "dm-tree",
    "yaml": "pyyaml",
}
PROJECT = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]


# Modules that read files by themselves, and how: the reader of run folders, pipes and files of the
# package and the system. All others go through `cagepool.runs`.
FILE_READERS = {
    "cagepool.runs.file_access": ("open",),
    "cagepool.report.page": ("read_text",),  # its own templates
    "cagepool._machine": ("read_text",),  # /proc and /sys
    "cagepool.self_check": ("load",),  # recorded games of the package
    "cagepool.envs.workers.pool": ("read_bytes",),  # a pipe
    "cagepool.envs.workers.worker": ("read_bytes", "load"),  # a pipe, and a file of the parent
    "cagepool.integrations.rllib": ("read_bytes",),  # pickles, which need trust anyway
}
METHODS = {"read_text", "read_bytes"}  # of paths; `runs.read_bytes` is the reader
OPENERS = {"open", "fromfile", "loadtxt", "genfromtxt", "safe_open"}
LOADERS = {"json", "np", "numpy", "pickle", "torch", "cloudpickle"}  # modules with `load`


def module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read(path: Path) -> str:
    return (SOURCE / path).read_text(encoding="utf-8")


def imported_names(source: str) -> Iterator[str]:
    """Names of all imports of a module, `a.b` for `from a import b`, wherever they are.

    A dynamic import counts as an import of its argument; the argument counts as "?" if it is not
    a constant, and so does `import_module` under another name, whose calls are not found.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
            if node.module == "importlib" and any(alias.asname for alias in node.names):
                yield "?"
        elif isinstance(node, ast.Call) and is_dynamic_import(node.func):
            yield constant_text(node.args[0])


def opened_files(source: str) -> Iterator[str]:
    """Names of calls that open a file for reading, or read it whole."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
        module = owner.id if isinstance(owner, ast.Name) else ""
        is_method = owner is not None and module not in ("io", "os")
        if name == "load" and module in LOADERS:
            yield name
        elif name == "open" and is_method:
            mode = constant_text(node.args[0]) if node.args else "r"
            if "r" in mode:
                yield name
        elif (name in METHODS and owner is not None and module != "runs") or (
            name in OPENERS and module != "os"
        ):
            yield name


def is_dynamic_import(function: ast.expr) -> bool:
    names = ("import_module", "__import__", "importorskip")
    if isinstance(function, ast.Attribute):
        return function.attr in names
    return isinstance(function, ast.Name) and function.id in names


def constant_text(argument: ast.expr) -> str:
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return argument.value
    return "?"


def extras_of(name: str) -> tuple[str, ...]:
    inner = name.removeprefix("cagepool.")
    packages = [package for package in EXTRAS if f"{inner}.".startswith(f"{package}.")]
    return EXTRAS[max(packages, key=len)] if packages else ()


def declared_dependencies(extras: tuple[str, ...]) -> set[str]:
    """Names of the distributions that the package with these extras installs."""
    optional = PROJECT["optional-dependencies"]
    names: set[str] = set()
    for requirement in [
        *PROJECT["dependencies"],
        *(one for extra in extras for one in optional[extra]),
    ]:
        match = re.match(r"([\w.-]+)(?:\[([\w,]+)\])?", requirement)
        assert match is not None
        name, included = match.groups()
        is_own = name == "cagepool"
        names |= declared_dependencies(tuple(included.split(","))) if is_own else {name}
    return names


def import_graph() -> dict[str, set[str]]:
    """Modules of ours that each module of ours imports, inside of functions too."""
    modules = {"cagepool._core": "", **{module_name(path): read(path) for path in MODULES}}

    def owner(name: str) -> str:
        return name if name in modules else name.rpartition(".")[0]

    return {
        importer: {owner(name) for name in imported_names(source)} & modules.keys()
        for importer, source in modules.items()
    }


def layer_of(name: str) -> tuple[str, ...] | None:
    """Layer of a module of ours, found by its longest prefix; none for a leaf."""
    inner = FACADES.get(name, name.removeprefix("cagepool."))
    if inner.partition(".")[0] in LEAVES:
        return None
    parts = [part for layer in LAYERS for part in layer if f"{inner}.".startswith(f"{part}.")]
    longest = max(parts, key=len, default="cli")
    return next(layer for layer in LAYERS if longest in layer)


def may_import(importer: str, imported: str) -> bool:
    if imported.partition(".")[0] != "cagepool":
        return True
    upper, lower = layer_of(importer), layer_of(imported)
    if lower is None or upper is None:
        return lower is None
    return LAYERS.index(upper) <= LAYERS.index(lower)


def is_home(library: str, name: str) -> bool:
    return any(f"{name}.".startswith(f"{home}.") for home in HOMES[library])


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_point_down(path: Path) -> None:
    name = module_name(path)
    imported = imported_names(read(path))
    assert [other for other in imported if not may_import(name, other)] == []


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_a_heavy_library_is_imported_in_its_home_only(path: Path) -> None:
    imported = {other.partition(".")[0] for other in imported_names(read(path))}
    heavy = imported & HOMES.keys()
    assert [library for library in heavy if not is_home(library, module_name(path))] == []


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_dynamic_imports_name_their_module(path: Path) -> None:
    computed = "?" in imported_names(read(path))
    assert not computed or module_name(path) in COMPUTED_IMPORTS


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_every_imported_library_is_a_declared_dependency(path: Path) -> None:
    imported = {other.partition(".")[0] for other in imported_names(read(path))} - {"?"}
    libraries = imported - sys.stdlib_module_names - {"cagepool", *NOT_DECLARED}
    needed = {DISTRIBUTIONS.get(library, library) for library in libraries}
    assert needed - declared_dependencies(extras_of(module_name(path))) == set()


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_files_of_run_folders_are_opened_by_their_reader_only(path: Path) -> None:
    name = module_name(path)
    assert {*opened_files(read(path))} <= {*FILE_READERS.get(name, ())}


@pytest.mark.parametrize("name", FILE_READERS)
def test_a_module_that_may_open_files_does(name: str) -> None:
    (path,) = (path for path in MODULES if module_name(path) == name)
    assert {*opened_files(read(path))} == {*FILE_READERS[name]}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("open(x)", ["open"]),
        ("path.open('rb')", ["open"]),
        ("path.open()", ["open"]),
        ("path.open('xb', buffering=0)", []),
        ("engine.open(trial, red)", []),
        ("io.open(x)", ["open"]),
        ("path.read_text()", ["read_text"]),
        ("runs.read_bytes(path, 5)", []),
        ("reader.read_bytes()", ["read_bytes"]),
        ("json.load(file)", ["load"]),
        ("np.load(path)", ["load"]),
        ("load(run, which)", []),
        ("pickle.load(file)", ["load"]),
        ("numpy.fromfile(path)", ["fromfile"]),
        ("safe_open(path, 'np')", ["safe_open"]),
    ],
)
def test_openings_of_every_form_are_found(source: str, names: list[str]) -> None:
    assert [*opened_files(source)] == names


def test_an_extra_includes_the_extras_that_it_names() -> None:
    assert {"numpy", "tyro", "torch", "scikit-learn"} <= declared_dependencies(("search",))
    assert "torch" not in declared_dependencies(("cli",))


def test_modules_do_not_import_each_other_in_a_cycle() -> None:
    try:
        TopologicalSorter(import_graph()).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


def test_the_number_of_modules_is_limited() -> None:
    assert len(MODULES) <= MAX_MODULES


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import a.b, c", ["a.b", "c"]),
        ("from a import b as x", ["a.b"]),
        ("def f():\n    import_module('ray')", ["ray"]),
        ("importlib.import_module('stable_baselines3.ppo')", ["stable_baselines3.ppo"]),
        ("__import__('torch')", ["torch"]),
        ("import_module(name)", ["?"]),
        ("from importlib import import_module as load", ["importlib.import_module", "?"]),
        ("find_spec('ray')", []),
    ],
)
def test_imports_of_every_form_are_found(source: str, names: list[str]) -> None:
    assert [*imported_names(source)] == names


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("cagepool.envs.native", "cagepool.sim.batch", True),
        ("cagepool.sim.batch", "cagepool.envs.native", False),
        ("cagepool.sim.batch", "cagepool.sim", True),
        ("cagepool.sim.batch", "cagepool.errors.Damaged", True),
        ("cagepool.errors", "cagepool.sim", False),
        ("cagepool.envs.native", "cagepool.make_vec", False),
        ("cagepool", "cagepool.envs.make_vec", True),
        ("cagepool.sim.batch", "numpy.typing.NDArray", True),
    ],
)
def test_the_rule_tells_up_from_down(importer: str, imported: str, allowed: bool) -> None:
    assert may_import(importer, imported) == allowed


def test_importing_the_package_loads_no_heavy_library_but_gymnasium() -> None:
    program = "import sys, cagepool; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    # Gymnasium has no plugins: our environment is known to it only if importing us registers it.
    assert set(run.stdout.split()) & HOMES.keys() == {"gymnasium"}
