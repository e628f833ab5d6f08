"""Finding CybORG, and the errors where it is missing; these tests need no CybORG."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from cagepool.cyborg import CybORGEnv, CybORGNotFoundError, locate

NOT_FOUND = (
    "CybORG must be installed, or a checkout of CAGE Challenge 2 named by the environment "
    "variable CAGEPOOL_CYBORG; got neither"
)


@pytest.fixture(autouse=True)
def _no_cyborg(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Simulates a machine without CybORG, and unloads what a test loads in its place."""
    monkeypatch.delenv(locate.VARIABLE, raising=False)
    monkeypatch.setattr(locate, "find_spec", lambda _name: None)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in cyborg_modules():
        monkeypatch.delitem(sys.modules, name)
    yield
    for name in cyborg_modules():
        del sys.modules[name]


def cyborg_modules() -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] == "CybORG"]


def fake_checkout(root: Path, source: str) -> Path:
    """A folder that looks like CybORG's repository."""
    package = root / "CybORG" / "CybORG"
    (package / "Simulator").mkdir(parents=True)
    (package / "Simulator" / "State.py").touch()
    (package / "__init__.py").write_text(source)
    return root


def test_without_cyborg_the_error_says_what_to_do() -> None:
    with pytest.raises(CybORGNotFoundError, match=f"^{re.escape(NOT_FOUND)}$"):
        CybORGEnv()


def test_a_folder_without_cyborg_is_named(tmp_path: Path) -> None:
    sentence = f"a checkout of CAGE Challenge 2 must hold CybORG, got {tmp_path}"
    with pytest.raises(CybORGNotFoundError, match=f"^{re.escape(sentence)}$"):
        CybORGEnv(checkout=tmp_path)


def test_the_variable_names_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(locate.VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(CybORGNotFoundError, match=r"must hold CybORG, got .*nowhere$"):
        CybORGEnv()


@pytest.mark.parametrize("below", ["", "CybORG", "CybORG/CybORG"], ids=["root", "middle", "inmost"])
def test_any_folder_of_a_checkout_may_be_named(tmp_path: Path, below: str) -> None:
    fake_checkout(tmp_path, "ANSWER = 42")
    package = locate.load(tmp_path / below)
    assert package.ANSWER == 42
    assert locate.package_folder(package) == (tmp_path / "CybORG" / "CybORG").resolve()


def test_what_cyborg_lacks_is_named_with_the_remedy(tmp_path: Path) -> None:
    fake_checkout(tmp_path, "import no_such_library")
    with pytest.raises(
        CybORGNotFoundError, match=r"^CybORG cannot be imported: .*'no_such_library' \(pip install"
    ):
        CybORGEnv(checkout=tmp_path)


def test_a_second_cyborg_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_checkout(tmp_path, "")
    loaded = ModuleType("CybORG")
    loaded.__file__ = str(tmp_path / "other" / "__init__.py")
    monkeypatch.setitem(sys.modules, "CybORG", loaded)
    with pytest.raises(ValueError, match=r"^a process can hold one CybORG only: .*other is loaded"):
        locate.load(tmp_path)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"red": "mix"}, "red must be one of B_lineAgent, .*, sleep, given; got 'mix'"),
        ({"max_steps": 0}, "max_steps must be from 1 to 65535, got 0"),
    ],
    ids=["red", "max_steps"],
)
def test_a_wrong_setting_is_refused_before_cyborg_is_looked_for(
    settings: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ValueError, match=f"^{sentence}$"):
        CybORGEnv(**settings)  # type: ignore[arg-type]


def test_importing_the_package_imports_nothing_of_cyborg() -> None:
    program = (
        "import sys, cagepool.cyborg, cagepool.parity;print(*({'CybORG', 'gym'} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout == "\n"


def test_what_libraries_print_when_imported_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package = tmp_path / "CybORG"
    package.mkdir()
    (package / "__init__.py").touch()
    notice = "import sys\nprint('a notice', file=sys.stderr)\nAgent = 7\n"
    (package / "Noisy.py").write_text(notice, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "CybORG"]:
        monkeypatch.delitem(sys.modules, name)

    found = locate.import_object("Noisy.Agent")

    for name in ("CybORG", "CybORG.Noisy"):
        del sys.modules[name]
    assert found == 7
    assert capsys.readouterr().err == ""
