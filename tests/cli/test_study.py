"""`cagepool study`, as a user calls it."""

import re
import shlex
from pathlib import Path

import pytest

from cagepool.cli.main import run
from cagepool.runs.study_schema import read_results
from cagepool.study.config import read_study
from cagepool.study.study import create_or_open
from tests.cli.command import cagepool
from tests.cli.short_training import Capture

SHORT = (
    "--n-envs", "7", "--max-steps", "30", "--update-steps", "30", "--hidden", "8",
    "--n-eval-episodes", "2", "--total-episodes", "21", "--episodes", "3",
)  # fmt: skip
FILE = """
[study]
seeds = 2
episodes = 3
milestones = [100]
baseline = "plain"

[env]
n_envs = 7
max_steps = 30

[ppo]
update_steps = 30
hidden = [8]

[run]
total_episodes = 21
n_eval_episodes = 2

[settings]
plain = {}
"no <masks> & \\"quotes\\"" = { features.action_masking = false }
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a study that a command ran."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.toml").write_text(FILE)
    done = cagepool("study", "study.toml", "--out", "out", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 runs; 84 training episodes in total" in done.stdout
    assert "4 of 4 runs" in done.stdout
    assert "write a report with: cagepool report out" in done.stdout
    return folder / "out"


def test_the_same_command_resumes_a_study(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(study.parent)
    assert run(["study", "study.toml", "--out", "out"]) == 0
    assert "4 runs, 4 of them complete" in capsys.readouterr().out


def test_a_folder_resumes_its_study(study: Path, capsys: Capture) -> None:
    assert run(["study", str(study)]) == 0
    assert "total of the nine cells" in capsys.readouterr().out


def test_the_list_of_runs_has_a_study_as_one_line(study: Path, capsys: Capture) -> None:
    assert run(["runs", str(study.parent)]) == 0
    assert capsys.readouterr().out == f"{study}: study of 2 settings, 4/4 runs\n"


def test_another_study_in_the_folder_is_refused(study: Path, capsys: Capture) -> None:
    assert run(["study", "--seeds", "2", *SHORT, "--out", str(study)]) == 2
    assert capsys.readouterr().err.startswith("cagepool: a study needs a folder of its own, ")


def test_the_methods_paragraph_is_printed(study: Path, capsys: Capture) -> None:
    assert run(["study", "--methods", str(study)]) == 0
    printed = capsys.readouterr().out
    assert printed == read_results(study).methods + "\n"
    for words in ("2 random seeds (0-1)", "exactly 21 episodes", "edition 2.1", "with plain"):
        assert words in printed


def test_the_report_of_a_study_is_one_page_with_files_to_download(
    study: Path, capsys: Capture
) -> None:
    assert run(["report", str(study)]) == 0
    assert capsys.readouterr().out == f"{study}/report.html\n"
    page = (study / "report.html").read_text()
    links = re.findall(r'(?:href|src)="([^"]*)"', page)
    assert {link.partition(";")[0] for link in links if link[:1] != "#"} == {
        "data:,", "data:image/svg+xml", "data:text/csv", "data:application/x-tex",
    }  # fmt: skip
    assert "<script" not in page
    assert "no <masks>" not in page
    assert "no &lt;masks&gt; &amp; " in page


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--baseline", "typo"), "--baseline must be one of "),
        (("--editions", "3"), "edition must be one of 2.1, leaderboard; got '3'"),
        (("--gamma", "0.9"), "a file defines the settings of its study"),
    ],
)
def test_flags_beside_a_file_are_checked_before_anything_is_trained(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    flags: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(FILE)
    assert run(["study", "study.toml", "--out", "out", *flags]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.soak
def test_flags_define_a_grid(tmp_path: Path) -> None:
    done = cagepool(
        "study", "--seeds", "2", "--vary", "ppo.ent_coef=0,0.01", "--vary", "gamma=0.9,1",
        "--red-agent", "b_line", *SHORT, "--out", "grid", "--jobs", "2", cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    results = read_results(tmp_path / "grid")
    assert [*results.study.settings] == [
        "ent_coef=0, gamma=0.9", "ent_coef=0, gamma=1",
        "ent_coef=0.01, gamma=0.9", "ent_coef=0.01, gamma=1",
    ]  # fmt: skip
    assert len(results.editions[0].comparisons) == 6
    assert all(one["env"]["red_agent"] == "b_line" for one in results.study.settings.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("missing.toml",), "missing.toml must be a file that can be read"),
        (("--seeds", "1"), "--seeds must be from 2 to 10,000, got 1"),
        (("--vary", "ppo.gama=1"), "ppo.ent_coef, got 'ppo.gama', did you mean ppo.gamma"),
        (("--jobs", "0", *SHORT, "--out", "x"), "--jobs must be at least 1, got 0"),
        (("--policy", "first"), "--policy must be best or last, got 'first'"),
        (("--methods", "."), "a study must have results.json"),
        ((".",), "a study must be a TOML file or a folder with study.json"),
        (("--editions", "3.0"), "edition"),
        (("--n-envs", "0"), "--n-envs must be at least 1"),
        (("--env", "cyborg"), "a study plays native games"),
    ],
)
def test_a_wrong_call_is_refused_in_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["study", *arguments]) == 2
    sentence = capsys.readouterr().err
    assert message in sentence
    assert sentence.count("\n") == 1
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_the_printed_command_resumes_a_study_with_an_own_reward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    reward = tmp_path / "failing.py"
    reward.write_text("def reward(step): return step.reward if len(step.ids) != 7 else 1 / 0\n")
    with pytest.raises(SystemExit):
        run(["study", "--seeds", "2", *SHORT, "--reward", "failing:reward", "--out", "s"])
    (hint,) = re.findall("resume with: cagepool (.*)", capsys.readouterr().out)
    reward.write_text("def reward(step): return step.reward\n")
    assert run(shlex.split(hint)) == 0


@pytest.mark.parametrize("name", ["study.toml", "out"])
def test_code_that_a_file_or_folder_names_must_be_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(
        FILE.replace("plain = {}", 'plain = { env.reward = "a:b" }')
    )
    create_or_open(tmp_path / "out", read_study(tmp_path / "study.toml"))
    assert run(["study", name]) == 2
    sentence = f"{name} names code to be called, a:b: if you trust it, add --allow-code a:b"
    assert capsys.readouterr().err == f"cagepool: {sentence}\n"


@pytest.mark.soak
def test_a_failing_run_is_named_and_the_exit_code_says_so(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(
        "def reward(step):\n    if len(step.ids) == 7:\n        raise KeyError('no reward')\n"
        "    return step.reward\n"
    )
    (tmp_path / "study.toml").write_text(
        FILE.replace("plain = {}", 'plain = {}\nbad = { env.reward = "failing:reward" }')
    )
    allowed = ("--allow-code", "failing:reward")
    done = cagepool("study", "study.toml", "--out", "out", *allowed, cwd=tmp_path)
    assert done.returncode == 1
    assert "failed: bad, seed 0: " in done.stdout
    assert "no reward" in done.stdout
    assert "2 runs failed; resume with: cagepool study out --allow-code" in done.stdout
    assert len(read_results(tmp_path / "out").editions[0].settings) == 2
