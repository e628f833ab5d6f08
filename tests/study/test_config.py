"""Settings of studies, from flags and from TOML files."""

from pathlib import Path
from typing import Any

import pytest

from cagepool.runs.study_schema import StudyFile, StudyProtocol
from cagepool.study.config import (
    StudyTraining,
    is_same,
    list_trainings,
    make_study,
    parse_vary,
    read_study,
)
from cagepool.study.study import create_or_open, read_study_file
from cagepool.train.config import TrainConfig

STUDIES = Path(__file__).parents[2] / "benchmarks" / "studies"
PROTOCOL = StudyProtocol(seeds=[0, 1])


def training(study: StudyFile, setting: str, seed: int) -> StudyTraining:
    """The training of a setting from a seed."""
    everything = list_trainings(Path(), study)
    return next(one for one in everything if (one.setting, one.seed) == (setting, seed))


def training_config(study: StudyFile, setting: str, seed: int) -> TrainConfig:
    return TrainConfig.from_dict(training(study, setting, seed).settings)


def test_values_are_combined_to_a_grid() -> None:
    vary = parse_vary(["ppo.ent_coef=0,0.01", "features.scan_memory=true,false"])
    study = make_study({}, PROTOCOL, vary=vary)
    assert [*study.settings] == [
        "ent_coef=0, scan_memory=true",
        "ent_coef=0, scan_memory=false",
        "ent_coef=0.01, scan_memory=true",
        "ent_coef=0.01, scan_memory=false",
    ]
    config = training_config(study, "ent_coef=0.01, scan_memory=false", 1)
    assert (config.ppo.ent_coef, config.features.scan_memory, config.run.seed) == (0.01, False, 1)


def test_values_have_the_types_of_their_settings() -> None:
    texts = [
        "hidden=64x64,8",
        "env.red_agent=b_line+meander,mix",
        "order.order=none,critical_first",
        "n_envs=5",
    ]
    assert parse_vary(texts) == {
        "ppo.hidden": [[64, 64], [8]],
        "env.red_agent": ["b_line+meander", "mix"],
        "order.order": [None, "critical_first"],
        "env.n_envs": [5],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ent_coef", "vary must be NAME=VALUE"),
        ("entropy=1", "a setting must have a name such as ppo.ent_coef, got 'entropy'"),
        ("n_envs=many", "n_envs must be a whole number, got 'many'"),
        ("scan_memory=yes", "scan_memory must be true or false, got 'yes'"),
    ],
)
def test_wrong_values_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_vary([text])


def test_every_training_of_a_study_has_one_thread() -> None:
    study = make_study({"ppo": {"threads": 4}}, PROTOCOL)
    assert training_config(study, "base", 0).ppo.threads == 1


def test_named_settings_and_a_grid_are_multiplied(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        """
        preset = "minutes"
        [study]
        seeds = [3, 5]
        baseline = "short, gamma=1"
        [run]
        n_evals = 0
        [vary]
        ppo.gamma = [1.0, 0.99]
        [settings.short]
        run.total_episodes = 100
        [settings.wide]
        "ppo.hidden" = [128]
        """
    )
    study = read_study(path)
    assert [*study.settings] == [
        "short, gamma=1", "short, gamma=0.99", "wide, gamma=1", "wide, gamma=0.99",
    ]  # fmt: skip
    assert study.protocol.seeds == [3, 5]
    config = training_config(study, "wide, gamma=0.99", 5)
    assert (config.ppo.hidden, config.ppo.gamma, config.run.n_evals) == ((128,), 0.99, 0)
    assert config.features.belief
    assert training(study, "wide, gamma=1", 3).run == "03-wide-gamma-1/seed-3"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[study", "must be a TOML file"),
        ("[study]\nseeds = 1", "seeds must be from 2 to 10,000, got 1"),
        ("study = 3", "study must be a table, got 3"),
        ("gamma = 0.9", "gamma must be a table, got 0.9"),
        ("[settings]\na = 3", "settings.a must be a table, got 3"),
        ("[vary]\nppo.gamma = [0.99, 0.99]", "different names, got 'gamma=0.99' twice"),
        ("[vary]\nenv.green = [true, false]", "env.green differs"),
        ('[vary]\nenv.edition = ["2.1", "leaderboard"]', "name the editions of the evaluation"),
        ("[run]\neval_patience = 3", "a study plays the same budget in all runs"),
        ("[study]\nseeds = [1, 1]", "seeds must be two or more different numbers"),
        ("[study]\nseed = 4", "settings of study must be among seeds, .* got seed"),
        ("[study]\nmilestones = [50, 10]", "milestones must be ascending"),
        ('[study]\nbaseline = "x"', "baseline must be one of base; got 'x'"),
        ('[study]\neditions = ["3"]', "edition"),
        ("[ppo]\nn_epochs = 0", "setting 'base': ppo.n_epochs must be at least 1"),
        ("[settings.a]\n[settings.b]", "settings must differ, 'b' and 'a' are equal"),
        ('[env]\nid = "cyborg"', "a study plays native games"),
        ('[env]\nscenario = "cage2/users:train"', "a study scores games of CAGE-2"),
        ("[vary]\nppo.gama = [1]", "a setting must have a name such as ppo.ent_coef"),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "study.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        read_study(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["ablation", "attackers", "diversity"])
def test_the_committed_studies_can_be_read(name: str) -> None:
    study = read_study(STUDIES / f"{name}.toml")
    assert len(study.settings) >= 4
    assert all(config["run"]["total_episodes"] == 15_000 for config in study.settings.values())


def test_a_study_is_equal_to_itself_after_json(tmp_path: Path) -> None:
    settings: Any = {"ppo": {"hidden": [8, 8], "learning_rate": 1e-3}}
    study = make_study(settings, PROTOCOL)
    create_or_open(tmp_path / "study", study)
    assert is_same(study, read_study_file(tmp_path / "study"))
