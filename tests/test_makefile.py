"""`make train` installs what a training needs and no more."""

import re
from pathlib import Path

from tests.test_layers import declared_dependencies

MAKEFILE = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")


def test_the_extras_of_a_training_need_no_other_trainers_and_no_tools() -> None:
    (extras,) = re.findall(r"^TRAIN_EXTRAS := (.*)$", MAKEFILE, re.MULTILINE)
    needed = declared_dependencies(tuple(extras.split(",")))

    assert needed >= {"torch", "tyro", "matplotlib", "numpy"}
    others = {"ray", "torchrl", "stable-baselines3", "sb3-contrib", "scikit-learn", "pettingzoo"}
    assert not needed & (others | {"ruff", "mypy", "pytest", "playwright", "clang-tidy"})


def test_make_test_installs_no_system_package() -> None:
    assert not re.search(r"\b(apt|apt-get|dnf|apk|brew|sudo)\b", MAKEFILE)
