"""Writes docs/reference/cli.md from the parsers of the commands: `make pages`."""

import re
import warnings
from argparse import SUPPRESS, Action, ArgumentParser
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from tyro.extras import get_parser

from cagepool.cli import args
from cagepool.cli.main import load_commands
from cagepool.cli.profile import Step

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
HEAD = """\
# Command line

<!-- `make pages` writes this page from the docstrings in src/cagepool/cli; a test compares. -->

`cagepool COMMAND --help` prints the flags below; `python -m cagepool` is the same as `cagepool`.
`--red` and `--red-agent` are the same everywhere. An error is one sentence on standard error.

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | the command failed: a file cannot be written, `parity` found a mismatch, … |
| 2 | wrong call: an unknown flag, a value that is not allowed |
| 130 | stopped by Ctrl-C |

| command | |
|---|---|
"""


def page() -> str:
    """The whole page."""
    commands: dict[str, type[Any]] = {name: flags for name, (flags, _) in load_commands().items()}
    sections = {f"cagepool {name}": flags for name, flags in commands.items()}
    overview = [
        f"| [`{name}`](#cagepool-{name}) | {_summary(flags)} |" for name, flags in commands.items()
    ]
    shown: dict[str, str] = {}
    for prog, flags in (sections | {"cagepool profile -- step": Step}).items():
        shown[prog] = _section(prog, flags, shown.get("cagepool train", ""))
    return HEAD + "\n".join(overview) + "\n\n" + "\n".join(shown.values())


def _summary(flags: type[Any]) -> str:
    return _cell((flags.__doc__ or "").partition("\n\n")[0])


def _section(prog: str, flags: type[Any], train: str) -> str:
    """The section of a command; flags in groups that `train` shows are not repeated."""
    parser = _parser(prog, flags)
    lines = [f"## {prog}", "", _text(parser.description or ""), ""]
    for title, description, actions in _groups(parser):
        rows = {_row(action): action for action in actions}
        same = [action for row, action in rows.items() if title and row in train]
        others = [row for row, action in rows.items() if action not in same]
        if title:
            lines += [f"### {prog}: {title}", "", _text(description), ""]
        if same:
            names = ", ".join(f"`{action.option_strings[0]}`" for action in same)
            lines += [f"As in [cagepool train](#cagepool-train-{title}): {names}.", ""]
        if others:
            lines += ["| flag | default | meaning |", "|---|---|---|", *others, ""]
    return "\n".join(lines)


def _parser(prog: str, flags: type[Any]) -> Any:
    has_groups = any(is_dataclass(field.default_factory) for field in fields(flags))
    settings: dict[str, Any] = (
        {"default": flags(), "config": args.NESTED_FLAGS} if has_groups else {"config": args.FLAGS}
    )
    with warnings.catch_warnings():  # tyro has no other public view of a parser
        warnings.simplefilter("ignore", DeprecationWarning)
        return get_parser(flags, prog=prog, registry=args.choices_registry(), **settings)


def _groups(parser: ArgumentParser) -> Iterator[tuple[str, str, list[Action]]]:
    """Title, description and flags of each group; the first one has no title."""
    plain: list[Action] = []
    named = []
    for group in parser._action_groups:  # noqa: SLF001 - argparse shows its groups nowhere else
        actions = [
            action
            for action in group._group_actions  # noqa: SLF001
            if action.help != SUPPRESS and "--help" not in action.option_strings
        ]
        if group.title in ("positional arguments", "options"):
            plain += actions
        elif actions:
            title = (group.title or "").removesuffix(" options")
            named.append((title, group.description or "", actions))
    if plain:
        yield "", "", plain
    yield from named


def _row(action: Action) -> str:
    help_text, _, default = (action.help or "").strip().rpartition("(default: ")
    if not help_text:
        help_text, default = (action.help or "").strip(), ""
    default = default.removesuffix(")")
    help_text = help_text.removesuffix("(required)")
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    names = [f"`{name}`" for name in action.option_strings] or [f"`{metavar}`"]
    value = f" `{metavar}`" if action.option_strings and metavar else ""
    is_switch = bool(action.option_strings) and not value
    if is_switch:
        default = "on" if default == "True" else "off"
    elif default:
        default = f"`{default}`"
    return f"| {_cell(', '.join(names) + value)} | {_cell(default)} | {_cell(help_text)} |"


def _text(text: str) -> str:
    """Text of a help as Markdown: paragraphs, without the line breaks in them."""
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    return "\n\n".join(_escape(paragraph) for paragraph in paragraphs)


def _cell(text: str) -> str:
    return _escape(" ".join(text.split())).replace("|", "\\|")


def _escape(text: str) -> str:
    """Escape what Markdown would interpret, except code, and link pages of the manual."""
    parts = re.split(r"(`[^`]*`)", text)
    escaped = "".join(
        part if part.startswith("`") else re.sub(r"([<>_*\[\]])", r"\\\1", part) for part in parts
    )
    return re.sub(r"docs/([\w-]+)\.md", r"[\1](../\1.md)", escaped)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
