"""Tables of the floors, and of what the policies of the zoo leave between their scores and them."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.blocks import fill_blocks, markdown_table
from cagepool import runs
from cagepool.policy.load import zoo_folder, zoo_names
from cagepool.runs.schema import EvaluationFile, Settings
from cagepool.sim.names import EDITIONS, OFFICIAL_REDS, red_class_names
from research.bounds.floors import SUM
from research.bounds.meander import best_run
from research.bounds.solve import LENGTHS

Result = Mapping[str, Any]
"""Content of research/bounds/bounds.json."""
B_LINE, MEANDER, _ = OFFICIAL_REDS
INFORMATION = {"full": "full information", "observation": "observation"}
NOTHING = "\N{EN DASH}"


def write_tables(result: Result, documents: Iterable[Path]) -> list[Path]:
    """Rewrite the generated blocks of documents; returns the documents that changed."""
    changed = []
    for path in documents:
        text = path.read_text()
        new = replace_blocks(text, result)
        if new != text:
            path.write_text(new)
            changed.append(path)
    return changed


def replace_blocks(text: str, result: Result) -> str:
    """Fill every block `<!-- bounds: NAME -->` … `<!-- end -->` with the table of that name."""
    return fill_blocks(text, "bounds", lambda name: TABLES[name](result))


def floor_table(result: Result) -> str:
    """Floors against B_line by edition, information and length."""
    rows = [["edition", "blue knows", *map(str, LENGTHS), "sum, one policy", "user host known"]]
    for edition in EDITIONS:
        for information, label in INFORMATION.items():
            found = result["b_line"][edition][information]
            cells = [_figure(found["floor"][name]) for name in _objectives()]
            known = _figure(found["user_known_from_start"][SUM])
            rows.append([edition, label, *cells, known])
    return markdown_table(rows[0], rows[1:])


def meander_table(result: Result) -> str:
    """Estimates against Meander."""
    rows = [["edition", *map(str, LENGTHS), "sum, one policy", "seed", "episodes", "games"]]
    for edition, runs_of_edition in result["meander"].items():
        for run in runs_of_edition:
            cells = [
                f"{run['score'][name]:.2f} ± {run['standard_error'][name]:.2f}"
                for name in _objectives()
            ]
            counts = [str(run["seed"]), f"{run['episodes']:,}", f"{run['games']:,}"]
            rows.append([edition, *cells, *counts])
    return markdown_table(rows[0], rows[1:])


def check_table(result: Result) -> str:
    """Checks of the model and of its optimal policies, and the zoo's policies."""
    checks = result["checks"]
    rows = [["check", "edition", "blue knows", "games or transitions", "result"]]
    for edition in EDITIONS:
        for information, label in INFORMATION.items():
            found = checks["transitions"][edition][information]
            text = f"largest z {found['largest_z']} in {found['outcome_classes']} classes"
            text += f", mean square {found['mean_z_squared']}"
            rows.append(["transitions", edition, label, f"{found['transitions']:,}", text])
    for edition in EDITIONS:
        for information, label in INFORMATION.items():
            found = checks["optimal_policy"][edition][information]
            text = _score_text(found) + f", value {_figure(found['floor'])}"
            rows.append(["optimal policy", edition, label, f"{found['games']:,}", text])
    for name, found in checks["zoo"].items():
        rows.append([f"`{name}`", found["edition"], "", f"{found['games']:,}", _score_text(found)])
    return markdown_table(rows[0], rows[1:])


def _score_text(found: Mapping[str, Any]) -> str:
    score = f"{found['score']:.2f} ± {found['standard_error']:.2f}"
    return f"{score}: {found['above_floor_in_errors']:+.1f} standard errors"


def gap_table(result: Result) -> str:
    """Scores of the zoo's policies for all reds, and what is left to floor and estimate."""
    rows = [["policy", "red", "", *map(str, LENGTHS), "sum"]]
    for name in zoo_names():
        run = runs.open_run(zoo_folder(name))
        evaluation = run.evaluation()
        if evaluation is not None and _plays_all_reds(run.settings):
            rows += gap_rows(name, evaluation, result)
    return markdown_table(rows[0], rows[1:])


def gap_rows(name: str, evaluation: EvaluationFile, result: Result) -> list[list[str]]:
    """Rows of one policy: score, bound and what is left, per red."""
    rows = []
    for red in (B_LINE, MEANDER):
        bound, scores = bounds_of(red, evaluation.edition, result), _scores(evaluation, red)
        left = {key: abs(scores[key] - value) for key, value in bound.items()}
        label = "floor" if red == B_LINE else "estimate"
        for index, (row, figures) in enumerate(
            {"score": scores, label: bound, "left": left}.items()
        ):
            first = [f"`{name}`, {evaluation.edition}", red] if index == 0 else ["", ""]
            rows.append([*first, row, *(_figure(figures.get(key)) for key in _objectives())])
    return rows


def bounds_of(red: str, edition: str, result: Result) -> dict[str, float]:
    """Floor against B_line (observation), estimate against Meander; by length and `sum`."""
    if red == B_LINE:
        return dict(result["b_line"][edition]["observation"]["floor"])
    runs_of_edition = result.get("meander", {}).get(edition)
    return dict(best_run(runs_of_edition)["score"]) if runs_of_edition else {}


def _scores(evaluation: EvaluationFile, red: str) -> dict[str, float]:
    cells = {str(cell.length): cell.mean for cell in evaluation.scores if cell.red == red}
    return {**cells, SUM: sum(cells.values())}


def _plays_all_reds(settings: Settings) -> bool:
    return set(red_class_names(settings["env"]["red_agent"])) == set(OFFICIAL_REDS)


def _objectives() -> list[str]:
    return [*map(str, LENGTHS), SUM]


def _figure(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


TABLES = {
    "floors": floor_table,
    "meander": meander_table,
    "checks": check_table,
    "gap": gap_table,
}
