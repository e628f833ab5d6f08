"""Write the games that the self-check of an installation replays.

They are a selection of the golden traces: `python -m tests.golden.ship`.
"""

from pathlib import Path

import numpy as np

from cagepool.types import Arrays

GOLDEN = Path(__file__).parent
SHIPPED = GOLDEN.parents[1] / "src" / "cagepool" / "sim" / "golden"
FILES = {"traces_dev": "edition-2.1", "traces_dev_leaderboard": "edition-leaderboard"}


def selection(name: str) -> Arrays:
    """The episode of each red, without and with green, in which blue used most actions."""
    with np.load(GOLDEN / f"{name}.npz") as file:
        trace = dict(file)
    variety = np.array([len(np.unique(actions)) for actions in trace["blue_action"]])
    picked = []
    for red in np.unique(trace["ep_red"]):
        for green in (0, 1):
            candidates = (trace["ep_red"] == red) & (trace["ep_green"] == green)
            if candidates.any():
                picked.append(np.argmax(np.where(candidates, variety, -1)))
    return {name: field if name == "meta" else field[picked] for name, field in trace.items()}


def main() -> None:
    """Write all files."""
    SHIPPED.mkdir(exist_ok=True)
    for name, shipped in FILES.items():
        np.savez_compressed(SHIPPED / f"{shipped}.npz", **selection(name))  # type: ignore[arg-type] # stubs of NumPy


if __name__ == "__main__":
    main()
