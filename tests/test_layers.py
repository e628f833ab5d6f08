"""Imports: layers point down, no cycles, one home per heavy library, dynamic imports included."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"

# A layer may import itself, those after it, and leaves; a leaf imports leaves only.
LAYERS = (
    ("cli",),
    ("share",),
    ("report",),
    ("bench",),
    ("search", "study"),
    ("experiments",),
    ("train",),
    ("integrations", "compat"),
    ("parity",),
    ("evaluate",),
    ("policy",),
    ("envs",),
    ("cyborg", "jax", "render"),
    ("sim",),
    ("scenarios",),
    ("_core",),
)
LEAVES = ("errors", "_lookup", "_machine", "_optional", "_stages", "runs", "types")
HOMES = {
    "gymnasium": (
        *("cagepool.envs", "cagepool.cyborg", "cagepool.integrations", "cagepool.share.dataset"),
        *("cagepool.bench.measure", "cagepool.bench.profile"),
    ),
    "gymnax": ("cagepool.jax.env",),
    "jax": ("cagepool.jax", "cagepool.bench.jax"),
    "jinja2": ("cagepool.report",),
    "matplotlib": ("cagepool.report",),
    "h5py": ("cagepool.share.dataset",),
    "minari": ("cagepool.share.dataset",),
    "onnx": ("cagepool.policy.onnx",),
    "onnxruntime": ("cagepool.policy.onnx",),
    "pettingzoo": ("cagepool.integrations.pettingzoo",),
    "PIL": ("cagepool.render.pillow",),
    "psutil": ("cagepool.bench",),
    "ray": ("cagepool.train.ray", "cagepool.integrations.rllib", "cagepool.bench.measure"),
    "rich": ("cagepool.cli",),
    "safetensors": ("cagepool.runs",),
    "sb3_contrib": ("cagepool.integrations.sb3", "cagepool.integrations.sb3_models"),
    "scipy": ("cagepool.bench", "cagepool.study"),
    "sklearn": ("cagepool.search",),
    "stable_baselines3": (
        *("cagepool.integrations.sb3", "cagepool.integrations.sb3_models"),
        *("cagepool.bench.measure", "cagepool.bench.train"),
    ),
    "tensorboard": ("cagepool.train",),
    "torch": (
        *("cagepool.policy.networks", "cagepool.policy.onnx"),
        *("cagepool.train", "cagepool.integrations"),
    ),
    "tyro": ("cagepool.cli",),
    "wandb": ("cagepool.train.tracking",),
    "yaml": ("cagepool.scenarios.yaml_reader", "cagepool.scenarios.file_format"),
}


# Modules that import a module whose name is known only at run time: CybORG's modules, and objects
# of a user given as "module:attribute".
COMPUTED_IMPORTS = ("cagepool.cyborg.locate", "cagepool._lookup", "cagepool.policy.load")
# Libraries that are used where a user has them: CybORG is on no registry; gymnax pins Gymnasium.
NOT_DECLARED = ("CybORG", "gymnax")

# Extras whose libraries a package may import; a package without an entry needs none. A bench that
# compares with a library of another extra checks first that it is installed.
EXTRAS = {
    "bench": ("bench", "train", "sb3", "ray", "jax"),
    "cli": ("cli",),
    "integrations.pettingzoo": ("pettingzoo",),
    "integrations.rllib": ("ray",),
    "integrations.sb3": ("sb3",),
    "integrations.sb3_models": ("sb3",),
    "jax": ("jax",),
    "policy.networks": ("train",),
    "policy.onnx": ("export", "onnx"),
    "report": ("report",),
    "render.pillow": ("render",),
    "search": ("search",),
    "study": ("study",),
    "share.dataset": ("minari",),
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
    "cagepool.train.ray.watchdog": ("read_text",),  # /proc
    "cagepool.integrations.rllib": ("read_bytes",),  # pickles, which need trust anyway
}
METHODS = {"read_text", "read_bytes"}  # of paths; `runs.read_bytes` is the reader
OPENERS = {"open", "fromfile", "loadtxt", "genfromtxt", "safe_open"}
LOADERS = {"json", "np", "numpy", "pickle", "torch", "cloudpickle"}  # modules with `load`


def module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {
    module_name(path.relative_to(SOURCE)): path.read_text(encoding="utf-8")
    for path in sorted((SOURCE / "cagepool").rglob("*.py"))
}


@cache
def imported_names(source: str) -> tuple[str, ...]:
    """Names of all imports of a module, `a.b` for `from a import b`, wherever they are.

    A dynamic import counts as an import of its argument; the argument counts as "?" if it is not
    a constant, and so does `import_module` under another name, whose calls are not found.
    """
    return tuple(_imports(source))


def _imports(source: str) -> Iterator[str]:
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
    modules = {"cagepool._core": "", **SOURCES}

    def owner(name: str) -> str:
        return name if name in modules else name.rpartition(".")[0]

    return {
        importer: {owner(name) for name in imported_names(source)} & modules.keys()
        for importer, source in modules.items()
    }


def layer_of(name: str) -> tuple[str, ...] | None:
    """Layer of a module of ours, the top for one that is in no package; none for a leaf."""
    package = name.removeprefix("cagepool.").partition(".")[0]
    if package in LEAVES:
        return None
    return next((layer for layer in LAYERS if package in layer), LAYERS[0])


def may_import(importer: str, imported: str) -> bool:
    if imported.partition(".")[0] != "cagepool":
        return True
    upper, lower = layer_of(importer), layer_of(imported)
    if lower is None or upper is None:
        return lower is None
    return LAYERS.index(upper) <= LAYERS.index(lower)


def libraries_of(name: str) -> set[str]:
    return {other.partition(".")[0] for other in imported_names(SOURCES[name])} - {"?"}


def undeclared_libraries(name: str) -> set[str]:
    libraries = libraries_of(name) - sys.stdlib_module_names - {"cagepool", *NOT_DECLARED}
    needed = {DISTRIBUTIONS.get(library, library) for library in libraries}
    return needed - declared_dependencies(extras_of(name))


def is_home(library: str, name: str) -> bool:
    return any(f"{name}.".startswith(f"{home}.") for home in HOMES[library])


def test_imports_point_down_and_never_in_a_cycle() -> None:
    imports = [
        (name, other) for name, source in SOURCES.items() for other in imported_names(source)
    ]
    assert [
        f"{name} imports {other}" for name, other in imports if not may_import(name, other)
    ] == []
    try:
        TopologicalSorter(import_graph()).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


def test_a_heavy_library_is_imported_in_its_home_only() -> None:
    imports = [(name, library) for name in SOURCES for library in libraries_of(name) & HOMES.keys()]
    strays = [
        f"{name} imports {library}" for name, library in imports if not is_home(library, name)
    ]
    assert strays == []


def test_every_imported_library_is_a_declared_dependency() -> None:
    undeclared = {name: undeclared_libraries(name) for name in SOURCES}
    assert {name: libraries for name, libraries in undeclared.items() if libraries} == {}


def test_dynamic_imports_name_their_module() -> None:
    computed = {name for name, source in SOURCES.items() if "?" in imported_names(source)}
    assert computed == {*COMPUTED_IMPORTS}


def test_files_are_opened_by_their_readers_only() -> None:
    opened = {name: {*opened_files(source)} for name, source in SOURCES.items()}
    readers = {name: {*calls} for name, calls in FILE_READERS.items()}
    assert {name: calls for name, calls in opened.items() if calls} == readers


def test_openings_of_every_form_are_found() -> None:
    forms: dict[str, list[str]] = {
        "open(x)": ["open"],
        "path.open('rb')": ["open"],
        "path.open()": ["open"],
        "path.open('xb', buffering=0)": [],
        "engine.open(trial, red)": [],
        "io.open(x)": ["open"],
        "path.read_text()": ["read_text"],
        "runs.read_bytes(path, 5)": [],
        "reader.read_bytes()": ["read_bytes"],
        "json.load(file)": ["load"],
        "np.load(path)": ["load"],
        "load(run, which)": [],
        "pickle.load(file)": ["load"],
        "numpy.fromfile(path)": ["fromfile"],
        "safe_open(path, 'np')": ["safe_open"],
    }
    assert {source: [*opened_files(source)] for source in forms} == forms


def test_an_extra_includes_the_extras_that_it_names() -> None:
    assert {"numpy", "tyro", "torch", "scikit-learn"} <= declared_dependencies(("search",))
    assert "torch" not in declared_dependencies(("cli",))


def test_imports_of_every_form_are_found() -> None:
    forms: dict[str, list[str]] = {
        "import a.b, c": ["a.b", "c"],
        "from a import b as x": ["a.b"],
        "def f():\n    import_module('ray')": ["ray"],
        "importlib.import_module('stable_baselines3.ppo')": ["stable_baselines3.ppo"],
        "__import__('torch')": ["torch"],
        "import_module(name)": ["?"],
        "from importlib import import_module as load": ["importlib.import_module", "?"],
        "find_spec('ray')": [],
    }
    assert {source: [*imported_names(source)] for source in forms} == forms


def test_the_rule_tells_up_from_down() -> None:
    rules = {
        ("cagepool.envs.native", "cagepool.sim.batch"): True,
        ("cagepool.sim.batch", "cagepool.envs.native"): False,
        ("cagepool.sim.batch", "cagepool.sim"): True,
        ("cagepool.sim.batch", "cagepool.errors.Damaged"): True,
        ("cagepool.errors", "cagepool.sim"): False,
        ("cagepool.envs.native", "cagepool.make_vec"): False,
        ("cagepool", "cagepool.envs.make_vec"): True,
        ("cagepool.sim.batch", "numpy.typing.NDArray"): True,
    }
    assert {pair: may_import(*pair) for pair in rules} == rules


def test_importing_the_package_loads_no_heavy_library_but_gymnasium() -> None:
    program = "import sys, cagepool; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    # Gymnasium has no plugins: our environment is known to it only if importing us registers it.
    assert set(run.stdout.split()) & HOMES.keys() == {"gymnasium"}
