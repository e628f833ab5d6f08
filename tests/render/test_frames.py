"""Games as frames: `render_mode="rgb_array"` in every environment that plays native games."""

import subprocess
import sys
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordVideo, RenderCollection
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import cagepool
from cagepool.envs import Cage2Env
from cagepool.integrations import sb3
from cagepool.render import plan as layout
from cagepool.render.drawing import FRAME_SIZE, MARGIN, PANEL_HEIGHT
from cagepool.sim.names import HOSTS, action_index, red_action_index
from cagepool.types import Bytes

ENV_ID = "cagepool/CAGE2-v0"
SHAPE = (*reversed(FRAME_SIZE), 3)


def given_red(**settings: Any) -> Cage2Env:
    env = Cage2Env(red="given", green=False, render_mode="rgb_array", **settings)
    env.reset(seed=1)
    return env


def play(env: Cage2Env, *moves: tuple[str, str]) -> Bytes:
    for blue, red in moves:
        env.step(action_index(blue), red_action_index(red))
    frame = env.render()
    assert isinstance(frame, np.ndarray)
    return frame


def pixel(frame: Bytes, x: float, y: float) -> str:
    """Color at a place of the network."""
    top = 2 * MARGIN + PANEL_HEIGHT
    return "#" + bytes(frame[round(y) + top, round(x) + MARGIN]).hex()


def cell_colors(frame: Bytes, host: str) -> tuple[str, str]:
    """Colors of the truth and of blue's belief on the card of a host, right of their texts."""
    x, y = layout.wide_layout().hosts[host]
    card, cell = layout.CARD, layout.CELL
    y += cell["y"] + 4
    left = x + card["padding"] + cell["width"] - 4
    right = x + card["width"] - card["padding"] - 4
    return pixel(frame, left, y), pixel(frame, right, y)


def light(name: str) -> str:
    return layout.COLORS[name][0]


def test_a_frame_shows_true_access_beside_blues_belief() -> None:
    env = given_red()
    before = play(env)
    assert cell_colors(before, "User0")[0] == light("privileged")
    assert cell_colors(before, "User1") == (light("soft"), light("soft"))
    after = play(
        env,
        ("Sleep", "DiscoverRemoteSystems User"),
        ("Sleep", "DiscoverNetworkServices User1"),
        ("Sleep", "ExploitRemoteService User1"),
        ("Sleep", "PrivilegeEscalate User1"),
    )
    state = env.true_state()
    assert state["access"][HOSTS.index("User1")] == 2
    assert state["compromised"][HOSTS.index("User1")] == 2
    assert cell_colors(after, "User1") == (light("privileged"), light("user"))


def test_the_last_moves_frame_their_targets() -> None:
    frame = play(
        given_red(),
        ("Sleep", "DiscoverRemoteSystems User"),
        ("Restore Op_Host1", "DiscoverNetworkServices User1"),
    )
    hosts = layout.wide_layout().hosts
    middle = layout.CARD["height"] / 2
    assert pixel(frame, hosts["Op_Host1"][0], hosts["Op_Host1"][1] + middle) == light("blue")
    assert pixel(frame, hosts["User1"][0], hosts["User1"][1] + middle) == light("red")


def test_a_stopped_service_is_seen_on_its_host() -> None:
    env = given_red()
    hosts = layout.wide_layout().hosts
    x, y = hosts["Op_Server0"]
    corner = (x + layout.CARD["width"] - 6, y + layout.CARD["height"] - 6)
    assert pixel(play(env), *corner) == light("surface")
    blob = stopped_game()
    env.restore(blob)
    assert pixel(play(env), *corner) == light("red-soft")


def stopped_game() -> bytes:
    """A game against B_line, which stops OTService if blue sleeps."""
    env = Cage2Env(red="B_lineAgent")
    env.reset(seed=3)
    for _ in range(100):
        env.step(0)
        if not env.true_state()["ot_running"].any():
            return env.save()
    pytest.fail("B_line never stopped the service")


def test_after_a_reset_the_moves_of_the_last_episode_are_gone() -> None:
    env = given_red()
    first = play(env)
    played = play(env, ("Restore User2", "DiscoverRemoteSystems User"))
    assert (played != first).any()
    env.reset(seed=1)
    assert (play(env) == first).all()


@pytest.mark.parametrize("red", ["B_lineAgent", "mix"])
def test_gymnasiums_checker_is_content_with_frames(red: str) -> None:
    check_env(gym.make(ENV_ID, red=red, render_mode="rgb_array").unwrapped)


@pytest.mark.parametrize("backend", ["native", "sync", "workers"])
def test_a_vector_environment_renders_one_frame_per_game(backend: Any) -> None:
    envs = cagepool.make_vec(3, backend=backend, red="mix", render_mode="rgb_array")
    envs.reset(seed=5)
    for _ in range(12):
        envs.step(np.zeros(3, np.int64))
    frames = envs.render()
    envs.close()
    assert frames is not None
    assert len(frames) == 3
    single = gym.make(ENV_ID, red="mix", render_mode="rgb_array")
    for game, frame in enumerate(frames):
        single.reset(seed=5 + game)
        for _ in range(12):
            single.step(0)
        assert (np.asarray(frame) == single.render()).all()


def test_stable_baselines3_makes_the_environment_by_its_id() -> None:
    envs = make_vec_env(ENV_ID, 2, seed=1)
    envs.reset()
    envs.step(np.zeros(2, np.int64))
    frames = envs.get_images()
    assert [frame is not None and frame.shape for frame in frames] == [SHAPE] * 2
    envs.close()
    PPO("MlpPolicy", ENV_ID, n_steps=8, batch_size=8, n_epochs=1, device="cpu").learn(8)


def test_a_vec_env_of_stable_baselines3_renders_each_game_once() -> None:
    envs = sb3.make(2, render_mode="rgb_array")
    envs.reset()
    images = envs.get_images()
    assert [image is not None and image.shape for image in images] == [SHAPE] * 2
    envs.close()


def test_record_video_writes_the_frames_of_an_episode(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clips: list[tuple[list[Bytes], float]] = []

    class Clip:  # in the place of moviepy, which needs an older Pillow
        def __init__(self, frames: list[Bytes], fps: float) -> None:
            clips.append((frames, fps))

        def write_videofile(self, path: str, **_: object) -> None:
            assert path.endswith(".mp4")

    modules = ("moviepy", "moviepy.video", "moviepy.video.io", "moviepy.video.io.ImageSequenceClip")
    for name in modules:
        monkeypatch.setitem(sys.modules, name, type(sys)(name))
    vars(sys.modules[modules[-1]])["ImageSequenceClip"] = Clip

    env = RecordVideo(
        gym.make(ENV_ID, max_steps=4, render_mode="rgb_array"), str(tmp_path / "videos")
    )
    env.reset(seed=1)
    for _ in range(4):
        env.step(0)
    env.close()  # type: ignore[no-untyped-call]
    ((frames, fps),) = clips
    assert fps == Cage2Env.metadata["render_fps"]
    assert [frame.shape for frame in frames] == [SHAPE] * 5


def test_a_collection_of_frames_owns_each_of_them() -> None:
    env = RenderCollection(gym.make(ENV_ID, render_mode="rgb_array"))
    env.reset(seed=1)
    for action in range(2, 8):
        env.step(action)
    frames = env.render()
    assert isinstance(frames, list)
    assert len({np.asarray(frame).tobytes() for frame in frames}) == 7


NO_PILLOW = """
import sys
sys.modules["PIL"] = None
import gymnasium as gym, importlib.util, cagepool
find = importlib.util.find_spec
import cagepool._optional as optional
optional.find_spec = lambda name: None if name == "PIL" else find(name)
env = gym.make("cagepool/CAGE2-v0", render_mode="rgb_array")
env.reset(seed=1)
env.step(0)
try:
    env.render()
except ImportError as error:
    print(error)
"""


def test_only_rendering_needs_pillow() -> None:
    run = subprocess.run(
        [sys.executable, "-c", NO_PILLOW], check=True, capture_output=True, text=True
    )
    assert "render_mode='rgb_array' needs pillow" in run.stdout
    assert "extra `render`" in run.stdout
