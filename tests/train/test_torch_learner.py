"""Torch learner: gradients by hand and of the native learner, sequences, devices, bad input."""

from collections.abc import Iterator
from dataclasses import replace
from math import log

import numpy as np
import pytest
import torch
from torch import nn

from cagepool.policy.networks import NetworkInputs, NetworkOutputs, NetworkSpec, make_network
from cagepool.train.config import PpoConfig, TrainConfig
from cagepool.train.learner import LossCoefficients, LossTerms, Transitions
from cagepool.train.native_learner import NativeLearner
from cagepool.train.ppo import Trainer
from cagepool.train.rollout import Rollout, RolloutShape
from cagepool.train.torch_learner import TorchLearner, find_device
from cagepool.types import Arrays

COEFFICIENTS = LossCoefficients(clip_range=0.2, clip_range_vf=0.5, ent_coef=0.1)
HERE = "tests.train.test_torch_learner"


class Table(nn.Module):
    """Logits and a value per feature, for features that are one-hot."""

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__()
        self.policy = nn.Parameter(torch.zeros(spec.features, spec.actions))
        self.critic = nn.Parameter(torch.zeros(spec.features))

    def forward(self, inputs: NetworkInputs) -> NetworkOutputs:
        features = inputs.features
        return NetworkOutputs(features @ self.policy, features @ self.critic, inputs.state)


class Counter(nn.Module):
    """Recurrent: its state is the sum of the first feature since the start of the episode."""

    state_size = 1

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__()
        self.actor = nn.Linear(1, spec.actions)
        self.critic = nn.Linear(1, 1)

    def forward(self, inputs: NetworkInputs) -> NetworkOutputs:
        sums = inputs.state + inputs.features[..., :1].cumsum(0)
        return NetworkOutputs(self.actor(sums), sums[..., 0], sums[-1])


class Scalar(Table):
    """Returns one value for all rows."""

    def forward(self, inputs: NetworkInputs) -> NetworkOutputs:
        return super().forward(inputs)._replace(values=inputs.features.sum())


class Raising(Table):
    """Raises in the forward pass."""

    def forward(self, _inputs: NetworkInputs) -> NetworkOutputs:
        raise RuntimeError("no idea")


class Double(Table):
    """Weights in double precision."""

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        self.double()


def not_a_module(_spec: NetworkSpec) -> str:
    return "a string"


def two_transitions() -> Transitions:
    """Probability ratios of 1 and 2 if the policy chooses with probabilities 1/4 and 3/4."""
    return Transitions(
        features=np.eye(2, dtype=np.float32),
        action_masks=None,
        actions=np.array([1, 0]),
        log_probs=np.array([log(3 / 4), log(1 / 8)], np.float32),
        advantages=np.array([2, 1], np.float32),
        values=np.array([2, 2], np.float32),
        returns=np.array([1, 1], np.float32),
    )


def test_the_gradient_equals_a_calculation_by_hand() -> None:
    shape = RolloutShape(2, 1, features=2, actions=2, masked=False)
    learner = TorchLearner(PpoConfig(network=f"{HERE}:Table"), shape, seed=0)
    weights = {
        "policy": np.array([[0, log(3)], [0, log(3)]], np.float32),
        "critic": np.array([3, 1], np.float32),
    }
    learner.load_arrays(learner.arrays() | weights)

    terms, gradient = learner.gradient(two_transitions(), np.arange(2), COEFFICIENTS)

    # As in test_loss.py: the features are one-hot, so the gradient by the weights is the gradient
    # by the outputs. Policy: -2 (-1/4, 1/4) in the first row; the second is clipped. Entropy:
    # d(-H)/dlogit_k = p_k (ln p_k + H) = (-3/16 ln 3, 3/16 ln 3). Divided by the rows.
    entropy = 0.1 * 3 / 16 * log(3)
    expected = np.array([[0.5 - entropy, -0.5 + entropy], [-entropy, entropy]]) / 2
    np.testing.assert_allclose(gradient["policy"], expected, rtol=1e-5)
    np.testing.assert_allclose(gradient["critic"], [2 / 2, 0])
    assert terms.clip_fraction == 1 / 2


def test_actor_and_critic_are_clipped_separately_by_the_names_of_their_parameters() -> None:
    shape = RolloutShape(2, 1, features=2, actions=2, masked=False)
    config = PpoConfig(network=f"{HERE}:Table", max_grad_norm=0.1)
    learner = TorchLearner(config, shape, seed=0)

    _, gradient = learner.gradient(two_transitions(), np.arange(2), COEFFICIENTS)
    _, norm = learner.step(two_transitions(), np.arange(2), COEFFICIENTS, 1e-3)

    assert norm == pytest.approx(float(np.linalg.norm(gradient["policy"])))
    moments = learner.arrays()
    for name in ("policy", "critic"):
        clipped = 0.1 * gradient[name] / np.linalg.norm(gradient[name])
        first = 0.1 * clipped  # (1 - beta1) of the gradient
        np.testing.assert_allclose(moments[f"adam.exp_avg.{name}"], first, rtol=1e-5, atol=1e-9)


def relative_difference(found: Arrays, expected: Arrays) -> float:
    names = [name for name in expected if not name.startswith("adam.")]
    difference = sum(((found[name] - expected[name]) ** 2).sum() for name in names)
    return float(np.sqrt(difference / sum((expected[name] ** 2).sum() for name in names)))


def test_native_and_torch_learners_agree_at_50_points_of_a_run() -> None:
    config = TrainConfig.from_flat(n_envs=10, max_steps=20, update_steps=20, total_episodes=500)
    torch_config = config.with_settings(learner="torch", threads=1).ppo
    gradients, weights = [], []
    with Trainer(config) as trainer:
        other = TorchLearner(torch_config, trainer.collector.shape, seed=0)
        assert isinstance(trainer.learner, NativeLearner)
        for _ in range(50):
            rollout = trainer.collect().rollout
            transitions, _ = trainer.ppo.transitions(rollout)
            rows = np.arange(0, len(transitions.actions), 2)
            other.load_arrays(trainer.learner.arrays())
            _, native = trainer.learner.gradient(transitions, rows, COEFFICIENTS)
            _, autograd = other.gradient(transitions, rows, COEFFICIENTS)
            gradients.append(relative_difference(native, autograd))
            for half in (rows, rows + 1):
                native_terms, native_norm = trainer.learner.step(
                    transitions, half, COEFFICIENTS, 2e-3
                )
                terms, norm = other.step(transitions, half, COEFFICIENTS, 2e-3)
                assert native_terms == pytest.approx(terms, rel=1e-4, abs=1e-6)
                assert native_norm == pytest.approx(norm, rel=1e-4)
            weights.append(relative_difference(trainer.learner.weights(), other.weights()))

    assert max(gradients) < 1e-5
    # Adam divides by the size of a gradient: where it is almost 0, rounding decides.
    assert max(weights) < 1e-5


def test_both_learners_start_from_the_same_weights() -> None:
    shape = RolloutShape(2, 1, features=9, actions=4, masked=False, critic_features=11)
    native, other = (
        make(PpoConfig(), shape, 3).weights() for make in (NativeLearner, TorchLearner)
    )
    assert native.keys() == other.keys()
    assert all(np.array_equal(native[name], other[name]) for name in native)


def recurrent_config(**settings: object) -> TrainConfig:
    return TrainConfig.from_flat(
        env="tests.train.toy_envs:Counting",
        backend="sync",
        n_envs=6,
        total_episodes=120,
        update_steps=11,
        reward_scale=1e-3,
        hidden=(8,),
        n_epochs=1,
        n_minibatches=1,
        threads=1,
        **settings,
    )


@pytest.mark.parametrize("network", ["gru", f"{HERE}:Counter"], ids=["gru", "own"])
def test_a_sequence_gives_the_log_probabilities_of_its_rollout(network: str) -> None:
    # Episodes end anywhere in a rollout and go on in the next; only with the right state at the
    # start and after every end does the policy before the first step of an update equal the
    # one that collected: the KL divergence is 0, up to rounding.
    with Trainer(recurrent_config(network=network)) as trainer:
        updates = list(trainer.updates())
    assert len(updates) > 5
    assert max(abs(update.stats.loss.kl) for update in updates) < 1e-6
    assert max(update.stats.gradient_norm for update in updates) > 0


def test_values_of_a_recurrent_critic_use_the_state_of_their_episode() -> None:
    # The value of `Counter` is the sum of the first feature, the environment's number, since the
    # start of the episode, and so it is for the last states of truncated episodes.
    with Trainer(recurrent_config(network=f"{HERE}:Counter")) as trainer:
        trainer.collect()
        rollout = trainer.collect().rollout
        truncations = rollout.truncations
        halves = [  # as if two Ray actors had collected: both have truncations in the same steps
            replace(end, env_ids=end.env_ids[part], features=end.features[part])
            for part in (slice(0, 1), slice(1, None))
            for end in rollout.truncations
        ]
        values, truncated = trainer.learner.values(rollout)
        whole = np.concatenate(truncated)
        rollout.truncations = halves
        values_of_halves = trainer.learner.values(rollout).truncated
        assert sorted(np.concatenate(values_of_halves).tolist()) == sorted(whole.tolist())
        assert [len(found) for found in values_of_halves] == [len(end.env_ids) for end in halves]
        rollout.truncations = truncations
    assert rollout.initial_state is not None
    sums = rollout.initial_state[:, 0]
    ends = {end.step: found for end, found in zip(rollout.truncations, truncated, strict=True)}
    for step in range(rollout.steps + 1):
        sums = sums + rollout.features[step, :, 0]
        np.testing.assert_allclose(values[step], sums, rtol=1e-6)
        if step in ends:
            end = next(end for end in rollout.truncations if end.step == step)
            last = sums[end.env_ids] + end.features[:, 0]
            np.testing.assert_allclose(ends[step], last, rtol=1e-6)
        if step < rollout.steps:
            sums = np.where(rollout.dones[step], 0, sums)
    assert len(ends) > 1
    assert sums.any()


REMEMBER = TrainConfig.from_flat(
    env="tests.train.toy_envs:Remember",
    backend="sync",
    n_envs=32,
    total_episodes=4000,
    update_steps=8,
    learning_rate=0.02,
    n_minibatches=2,
    reward_scale=1.0,
    hidden=(16,),
    threads=1,
)


def last_returns(config: TrainConfig) -> float:
    with Trainer(config) as trainer:
        updates = list(trainer.updates())
    return float(np.mean([value for update in updates[-8:] for value in update.finished.returns]))


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 5))]
)
def test_a_task_that_needs_memory_is_solved_by_gru_and_not_by_mlp(seed: int) -> None:
    config = REMEMBER.with_settings(seed=seed)
    assert last_returns(config.with_settings(network="gru")) > 0.9
    assert last_returns(config) < 0.5  # chance is 1/3


@pytest.fixture
def default_device_is_meta() -> Iterator[None]:
    torch.set_default_device("meta")
    yield
    torch.set_default_device(None)


@pytest.mark.usefixtures("default_device_is_meta")
@pytest.mark.parametrize("network", ["mlp", "gru", f"{HERE}:Counter"])
def test_no_tensor_is_made_on_the_default_device(network: str) -> None:
    config = TrainConfig.from_flat(
        n_envs=3,
        total_episodes=6,
        max_steps=5,
        update_steps=7,
        hidden=(8,),
        threads=1,
        learner="torch",
        device="cpu",
        network=network,
    )
    with Trainer(config) as trainer:
        updates = list(trainer.updates())
        arrays, state = trainer.state()
    with Trainer(config) as resumed:
        resumed.restore(arrays, state)
    assert np.isfinite([update.stats.loss for update in updates]).all()


@pytest.mark.parametrize("settings", [{"learner": "torch"}, {"network": "gru"}], ids=str)
@pytest.mark.parametrize("overlap", [False, True], ids=["in turn", "async"])
def test_the_same_seed_gives_the_same_run(settings: dict[str, str], overlap: bool) -> None:
    config = TrainConfig.from_flat(
        n_envs=7, total_episodes=20, max_steps=9, update_steps=13, hidden=(8,), threads=1
    ).with_settings(overlap=overlap, **settings)

    def losses() -> list[LossTerms]:
        with Trainer(config) as trainer:
            return [update.stats.loss for update in trainer.updates()]

    assert losses() == losses()


def make_test_network(name: str) -> nn.Module:
    return make_network(f"{HERE}:{name}", NetworkSpec(4, 5, 3))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Scalar", r"Scalar: values must have shape \(2, 3\), got \(\)$"),
        ("Raising", r"Raising must take NetworkInputs with .* None: RuntimeError\('no idea'\)$"),
        ("Double", r"weights of network .*:Double must be float32, got torch.float64$"),
        ("not_a_module", r"not_a_module must be a torch.nn.Module, got str$"),
        ("Missing", r"network names 'Missing', which the module .* does not have"),
        ("two_transitions", r"two_transitions must be made of a NetworkSpec: TypeError"),
    ],
)
def test_a_network_that_does_not_follow_the_protocol_is_refused(name: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make_test_network(name)


@pytest.mark.parametrize("name", ["cuda:7", "meta", "nonsense"])
def test_a_device_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"^device {name} cannot be used here: [^\n]+$"):
        find_device(name)


def test_weights_that_are_not_finite_are_refused() -> None:
    learner = TorchLearner(PpoConfig(network="gru"), RolloutShape(2, 1, 4, 3, masked=False), 0)
    arrays = learner.arrays()
    arrays["actor.bias"] = np.full(3, np.nan, np.float32)
    with pytest.raises(ValueError, match=r"weights actor\.bias contain NaN"):
        learner.load_arrays(arrays)


def test_the_global_generator_of_torch_is_left_alone() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    shape = RolloutShape(1, 1, 4, 3, masked=False)
    first, second = (TorchLearner(PpoConfig(network="gru"), shape, 1).weights() for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert Rollout(shape).initial_state is None
