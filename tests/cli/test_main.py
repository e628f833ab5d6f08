"""The `cagepool` command: help, misspelt arguments, exit codes, closed pipes."""

import os
import re
import signal
import subprocess
import sys
from importlib import metadata

import pytest

from cagepool.cli import EXIT_BROKEN_PIPE
from tests.cli.command import cagepool
from tests.environment import LIMIT_S


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "command must be one of train, study, search, play, .*; got none"),
        (("plai",), "command must be one of .*; got 'plai', did you mean play\\?"),
        (("--versoin",), "unknown flag --versoin, did you mean --version\\?"),
        (("play", "--epsodes", "3"), "unknown flag --epsodes, did you mean --episodes\\?"),
        (("train", "--n-env", "3"), "unknown flag --n-env, did you mean --n-envs\\?"),
        (("search", "--gp_bta=3"), "unknown flag --gp-bta, did you mean --gp-beta\\?"),
        (
            ("profile", "step", "--n-env", "3"),
            "unknown flag --n-env, did you mean --n-envs\\?",
        ),
        (("runs", "--zzz"), "unknown flag --zzz; cagepool runs --help lists the flags"),
        (("bench", "enginee"), "name must be one of .*; got 'enginee', did you mean engine\\?"),
        (
            ("train", "--backend", "natve"),
            "--backend must be one of auto, .*; got 'natve', did you mean native\\?",
        ),
        (
            ("evaluate", "sleep", "--which", "bset"),
            "--which must be one of best, last; got 'bset', did you mean best\\?",
        ),
    ],
    ids=" ".join,
)
def test_a_misspelt_argument_is_refused_with_the_nearest_one(
    arguments: tuple[str, ...], sentence: str
) -> None:
    done = cagepool(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(f"cagepool: {sentence}\n", done.stderr)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("play", "--episodes", "many"), "'many'"),
        (("play", "extra"), "extra"),
        (("evaluate",), "DEFENDER"),
    ],
    ids=["no number", "extra argument", "missing argument"],
)
def test_arguments_that_cannot_be_parsed_are_refused(
    arguments: tuple[str, ...], named: str
) -> None:
    done = cagepool(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr
    assert "Traceback" not in done.stderr


def test_help_names_the_commands_and_their_flags() -> None:
    overview, of_play = cagepool("--help"), cagepool("play", "--help")

    assert (overview.returncode, of_play.returncode) == (0, 0)
    assert "play" in overview.stdout
    flags = ("red", "blue", "episodes", "edition", "green", "seed", "max-steps", "json", "verbose")
    assert all(f"--{flag}" in of_play.stdout for flag in flags)
    assert all(f"{name}," in of_play.stdout for name in ("B_lineAgent", "sleep", "react-restore"))


def test_the_version_is_that_of_the_package() -> None:
    assert cagepool("--version").stdout == f"cagepool {metadata.version('cagepool')}\n"


@pytest.mark.parametrize(
    "arguments",
    [("--version",), ("train", "--help"), ("play", "--verbose"), ("play", "--json")],
    ids=" ".join,
)
@pytest.mark.parametrize("is_buffered", [True, False], ids=["buffered", "unbuffered"])
def test_a_closed_pipe_ends_the_command_quietly(
    arguments: tuple[str, ...], is_buffered: bool
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, *([] if is_buffered else ["-u"]), "-m", "cagepool", *arguments]
    environment = {name: os.environ[name] for name in os.environ if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        command,
        env=environment,
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
        timeout=LIMIT_S,
    )
    os.close(writer)

    assert (done.returncode, done.stderr) == (EXIT_BROKEN_PIPE, b"")
    assert EXIT_BROKEN_PIPE == 128 + signal.SIGPIPE
