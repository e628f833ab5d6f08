"""Objects that a user names as `module:attribute`, and the sentences when one is missing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cagepool._lookup import is_reference, load_module, load_object, suggestion

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Write:
    """Writes a module on the module search path and returns its name."""
    monkeypatch.syspath_prepend(tmp_path)
    name = f"lookup_{abs(hash(request.node.nodeid))}"

    def write_module(source: str) -> str:
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
        return name

    return write_module


def test_a_reference_is_loaded_with_dotted_attributes(write: Write) -> None:
    module = write("class Outer:\n    inner = 7\n")

    assert load_object(f"{module}:Outer.inner", "env") == 7
    assert load_module(module, "env").Outer.inner == 7


def test_a_missing_module_is_named() -> None:
    with pytest.raises(ValueError, match=r"^env names the module 'nowhere', which does not exist$"):
        load_object("nowhere:make", "env")
    with pytest.raises(ValueError, match=r"^env names the module 'json.nowhere', which does not"):
        load_object("json.nowhere:make", "env")


def test_a_missing_attribute_is_named_with_the_nearest_one(write: Write) -> None:
    module = write("def make(): ...\n")

    with pytest.raises(
        ValueError,
        match=rf"^reward names 'mak', which the module '{module}' does not have, did you mean make",
    ):
        load_object(f"{module}:mak", "reward")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            "\nimport not_there\n",
            "ModuleNotFoundError: No module named 'not_there' ({}.py, line 2)",
        ),
        ("1 / 0\n", "ZeroDivisionError: division by zero ({}.py, line 1)"),
        ("raise SystemExit\n", "SystemExit ({}.py, line 1)"),
        ("def make(:\n", "SyntaxError: invalid syntax ({}.py, line 1)"),
    ],
)
def test_a_module_that_raises_shows_its_error_and_line(
    write: Write, source: str, reason: str
) -> None:
    module = write(source)

    with pytest.raises(ValueError, match="which raises") as caught:
        load_object(f"{module}:make", "env")

    sentence = f"env names the module '{module}', which raises {reason.format(module)}"
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shaped:make", True),
        ("my.module:Class.method", True),
        ("shaped", False),
        (":make", False),
        ("shaped:", False),
        ("shaped.py:", False),
        ("folder/shaped:make", False),
        ("module:Env-v0", False),
        ("cagepool/CAGE2-v0", False),
    ],
)
def test_references_are_told_from_other_names(name: str, expected: bool) -> None:
    assert is_reference(name) == expected
    if not expected:
        with pytest.raises(ValueError, match=r"^env must be module:attribute, got"):
            load_object(name, "env")


def test_the_nearest_choice_is_suggested() -> None:
    assert suggestion("evalute", ["train", "evaluate"]) == ", did you mean evaluate?"
    assert suggestion("x", ["train", "evaluate"]) == ""
