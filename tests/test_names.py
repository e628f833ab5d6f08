"""Names of modules and words of the former private vocabulary are gone."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "cagepool"

# Refused as the name of a module or package anywhere below src/.
REFUSED_MODULES = re.compile(
    "accounts|alone|appraisal|awaiting|benched|benches|block|blue|budget|catalogue|changes|check"
    "|choice|cluster|collect|colours|crew|drawing|elsewhere|endings|events|extras|files|flags"
    "|free|games|gate|gathering|holder|hosts|inputs|instruments|judge|kept|layout|learning|line"
    "|live|makers|messages|neighbours|official|order|overview|pages|picture|places|probes"
    "|proposal|published|reach|record|recorded|red_sight|reds|remembering|replay|routes|searched"
    "|searching|session|shapes|shares|sight|slices|station|stepper|tally|traffic"
    "|trainings|transcript|trees|turns|twin|ucb|update|vectors|watching|wire|written"
)
# Refused in one package only: the name means something else in another.
REFUSED_PATHS = (
    *("evaluate/contenders.py", "evaluate/loss.py", "report/folder.py", "search/folder.py"),
    *("cli/progress.py", "sim/actions.py", "train/cluster", "bench/probes", "bench/profile"),
    *("envs/cyborg", "envs/settings.py", "parity", "cyborg.py", "runs.py"),
)
REFUSED_SOURCES = ("job", "choose", "waiter", "step_loop", "memory")
# Not "stationary", and not the key of run folders of format 1, which are still read.
REFUSED_WORDS = re.compile(
    r"luck|crew|station(?!ary)|appraisal(?!_episodes\": \(\"order\")", re.IGNORECASE
)
SUFFIXES = (".py", ".pyi", ".cpp", ".hpp", ".md", ".html", ".js", ".css", ".json", ".svg")
TEXTS = [
    path
    for folder in ("src", "cpp", "docs")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in SUFFIXES and "zoo" not in path.parts  # runs of format 1
]


def test_no_module_has_a_name_of_the_former_vocabulary() -> None:
    modules = [path for path in PACKAGE.rglob("*") if path.suffix == ".py" or path.is_dir()]
    assert [str(path) for path in modules if REFUSED_MODULES.fullmatch(path.stem)] == []
    assert [path for path in REFUSED_PATHS if (PACKAGE / path).exists()] == []
    sources = (ROOT / "cpp").rglob("*.?pp")
    assert [str(path) for path in sources if path.stem in REFUSED_SOURCES] == []


def test_no_text_uses_the_former_vocabulary() -> None:
    lines = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in TEXTS
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if REFUSED_WORDS.search(line)
    ]
    assert lines == []
