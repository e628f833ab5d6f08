"""Run folders of the trainings of an experiment: open them, or create them."""

from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from cagepool import runs
from cagepool.runs.schema import Settings


@dataclass(frozen=True, kw_only=True)
class Training:
    """One training of an experiment."""

    name: str  # in messages
    experiment: Path
    run: str  # run folder, relative to the experiment's
    settings: Settings = field(compare=False, repr=False)

    @property
    def path(self) -> Path:
        """Run folder."""
        return self.experiment / self.run

    @property
    def episodes(self) -> int:
        """Episodes of the whole training."""
        return int(self.settings["run"]["total_episodes"])

    def existing_run(self) -> runs.Run | None:
        """Open the run folder; none: there is no run yet."""
        folder = self.experiment
        for part in Path(self.run).parts:
            folder /= part
            if folder.is_symlink():
                raise runs.RunFileError(f"{folder} must be a folder, it is a link")
        if not runs.is_run(self.path):
            return None
        run = runs.open_run(self.path)
        if run.settings != self.settings:
            raise runs.RunFileError(
                f"{self.path} must hold the training {self.name!r} of its experiment, "
                "it holds a run with other settings"
            )
        return run

    def open_or_create(self) -> runs.Run:
        """Open the run folder, or create it."""
        return self.existing_run() or runs.create(self.path, self.settings, version("cagepool"))
