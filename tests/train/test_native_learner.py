"""Native learner: gradients by hand and by autograd, Adam, threads, checkpoints and bad input."""

import numpy as np
import pytest
import torch

from cagepool import _core
from cagepool.train.config import PpoConfig
from cagepool.train.learner import LossCoefficients, Transitions
from cagepool.train.loss import LossTargets, ppo_loss
from cagepool.train.native_learner import NativeActor, NativeLearner
from cagepool.train.rollout import Rollout, RolloutShape
from cagepool.types import Arrays, Float32s

COEFFICIENTS = LossCoefficients(clip_range=0.2, clip_range_vf=0.3, ent_coef=0.01)
CASES = [((8,), "tanh"), ((20, 33, 17), "relu"), ((64, 64), "tanh")]


def random_transitions(shape: RolloutShape, rows: int, seed: int = 0) -> Transitions:
    """Transitions with sparse features, as those of the game."""
    rng = np.random.default_rng(seed)

    def features(columns: int) -> Float32s:
        values = rng.standard_normal((rows, columns))
        return (values * (rng.random((rows, columns)) < 0.3)).astype(np.float32)

    def normal() -> Float32s:
        return rng.standard_normal(rows).astype(np.float32)

    actions = rng.integers(shape.actions, size=rows)
    masks = (rng.random((rows, shape.actions)) < 0.5).astype(np.uint8)
    masks[np.arange(rows), actions] = 1
    return Transitions(
        features=features(shape.features),
        critic_features=features(shape.critic_features) if shape.critic_features else None,
        action_masks=masks if shape.masked else None,
        actions=actions,
        log_probs=normal() - np.float32(2),
        advantages=normal(),
        values=normal(),
        returns=normal(),
    )


def learner_of(shape: RolloutShape, **settings: object) -> NativeLearner:
    return NativeLearner(PpoConfig(**settings), shape, seed=3)  # type: ignore[arg-type]


def rollout_shape(*, masked: bool = True, critic_features: int = 0) -> RolloutShape:
    return RolloutShape(4, 5, 30, 7, masked, critic_features)


def outputs_by_torch(
    weights: dict[str, torch.Tensor], network: str, rows: torch.Tensor, activation: str
) -> torch.Tensor:
    numbers = sorted({int(name.split(".")[1]) for name in weights if name.startswith(network)})
    for number in numbers:
        rows = rows @ weights[f"{network}.{number}.weight"].T + weights[f"{network}.{number}.bias"]
        if number != numbers[-1]:
            rows = torch.tanh(rows) if activation == "tanh" else torch.relu(rows)
    return rows


def gradient_by_autograd(
    arrays: Arrays, transitions: Transitions, rows: np.ndarray, activation: str
) -> Arrays:
    """Gradient in double precision."""
    weights = {
        name: torch.tensor(array, dtype=torch.float64, requires_grad=True)
        for name, array in arrays.items()
    }
    critic_features = transitions.critic_features
    features, critic_inputs = (
        torch.from_numpy(array[rows]).double()
        for array in (
            transitions.features,
            transitions.features if critic_features is None else critic_features,
        )
    )
    targets = LossTargets.from_transitions(transitions, torch.device("cpu"))
    loss, _ = ppo_loss(
        outputs_by_torch(weights, "actor", features, activation),
        outputs_by_torch(weights, "critic", critic_inputs, activation)[:, 0],
        targets.rows(torch.from_numpy(rows)),
        COEFFICIENTS,
    )
    loss.backward()  # type: ignore[no-untyped-call] # of torch
    return {
        name: tensor.grad.numpy() for name, tensor in weights.items() if tensor.grad is not None
    }


@pytest.mark.parametrize(("hidden", "activation"), CASES)
@pytest.mark.parametrize("critic_features", [0, 11])
@pytest.mark.parametrize("masked", [False, True])
def test_the_gradient_equals_autograd(
    hidden: tuple[int, ...], activation: str, critic_features: int, masked: bool
) -> None:
    shape = rollout_shape(masked=masked, critic_features=critic_features)
    learner = learner_of(shape, hidden=hidden, activation=activation)
    transitions = random_transitions(shape, 700)
    rows = np.random.default_rng(5).permutation(700)[:601]  # several parts, the last ones uneven

    _, gradient = learner.gradient(transitions, rows, COEFFICIENTS)

    expected = gradient_by_autograd(learner.weights(), transitions, rows, activation)
    assert gradient.keys() == expected.keys()
    for name, array in gradient.items():
        error = np.linalg.norm(array - expected[name])
        assert error <= 2e-6 * np.linalg.norm(expected[name]), name  # single precision


def test_the_gradient_equals_a_calculation_by_hand() -> None:
    # One hidden unit, h = tanh(2 * 0.5) in both networks; logits (h, -h), value 3 h.
    shape = RolloutShape(1, 1, 1, 2, masked=False)
    learner = learner_of(shape, hidden=(1,))
    weights = {
        "actor.0.weight": [[2.0]],
        "actor.0.bias": [0.0],
        "actor.2.weight": [[1.0], [-1.0]],
        "actor.2.bias": [0.0, 0.0],
        "critic.0.weight": [[2.0]],
        "critic.0.bias": [0.0],
        "critic.2.weight": [[3.0]],
        "critic.2.bias": [0.0],
    }
    load_weights(learner, {name: np.array(rows, np.float32) for name, rows in weights.items()})
    h = np.tanh(1.0)
    p = 1 / (1 + np.exp(-2 * h))  # probability of the first action
    one = np.ones(1, np.float32)
    transitions = Transitions(
        features=np.array([[0.5]], np.float32),
        action_masks=None,
        actions=np.zeros(1, np.int64),
        log_probs=np.float32(np.log(p)) * one,  # the ratio is 1
        advantages=2 * one,
        values=0 * one,
        returns=one,
    )
    coefficients = LossCoefficients(clip_range=0.2, clip_range_vf=0.0, ent_coef=0.0)
    _, gradient = learner.gradient(transitions, np.zeros(1, np.int64), coefficients)

    # Loss: -2 p / p_old + (v - 1)^2 / 2. By the logits: -2 (1 - p), 2 (1 - p).
    slope = -2 * (1 - p)
    expected = {
        "actor.2.bias": [slope, -slope],
        "actor.2.weight": [[slope * h], [-slope * h]],
        "actor.0.bias": [2 * slope * (1 - h * h)],
        "actor.0.weight": [[slope * (1 - h * h)]],
        "critic.2.bias": [3 * h - 1],
        "critic.2.weight": [[(3 * h - 1) * h]],
        "critic.0.bias": [(3 * h - 1) * 3 * (1 - h * h)],
        "critic.0.weight": [[(3 * h - 1) * 1.5 * (1 - h * h)]],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(gradient[name], values, rtol=2e-6)  # single precision


def load_weights(learner: NativeLearner, weights: Arrays) -> None:
    learner.load_arrays(learner.arrays() | weights)


@pytest.mark.parametrize("max_grad_norm", [1e-2, 1e6])
def test_steps_equal_those_of_torch(max_grad_norm: float) -> None:
    shape = rollout_shape()
    learner = learner_of(shape, max_grad_norm=max_grad_norm, hidden=(16,))
    transitions = random_transitions(shape, 300)
    tensors = {
        name: torch.from_numpy(array).requires_grad_() for name, array in learner.weights().items()
    }
    networks = [
        [tensor for name, tensor in tensors.items() if name.startswith(network)]
        for network in ("actor", "critic")
    ]
    optimizer = torch.optim.Adam(tensors.values())
    rng = np.random.default_rng(1)
    for learning_rate in (1e-2, 3e-3, 1e-3):
        rows = rng.permutation(300)[:200]
        _, gradient = learner.gradient(transitions, rows, COEFFICIENTS)
        for name, tensor in tensors.items():
            tensor.grad = torch.from_numpy(gradient[name])
        norms = [torch.nn.utils.clip_grad_norm_(network, max_grad_norm) for network in networks]
        optimizer.param_groups[0]["lr"] = learning_rate
        optimizer.step()

        _, norm = learner.step(transitions, rows, COEFFICIENTS, learning_rate)

        assert norm == pytest.approx(norms[0].item(), rel=1e-5)
        for name, array in learner.weights().items():
            # Single precision; torch divides the norm by itself plus 1e-6 when it clips.
            np.testing.assert_allclose(array, tensors[name].detach(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("threads", [2, 3, 20])
def test_no_result_depends_on_the_number_of_threads(threads: int) -> None:
    shape = rollout_shape()
    transitions = random_transitions(shape, 5000)

    def results(count: int) -> Arrays:
        learner = learner_of(shape, threads=count)
        rng = np.random.default_rng(1)
        for _ in range(3):
            learner.step(transitions, rng.permutation(5000)[:4500], COEFFICIENTS, 1e-2)
        return learner.arrays()

    expected = results(1)
    for name, array in results(threads).items():
        np.testing.assert_array_equal(array, expected[name])


def test_a_row_does_not_depend_on_its_neighbors() -> None:
    shape = rollout_shape()
    learner = learner_of(shape)
    actor = NativeActor(PpoConfig(), shape)
    actor.load_weights(learner.weights())
    features = random_transitions(shape, 200).features
    logits = actor.logits(features)
    for rows in (slice(3, 4), slice(0, 65), slice(50, 200)):
        np.testing.assert_array_equal(actor.logits(features[rows].copy()), logits[rows])


def test_values_and_logits_equal_those_of_torch() -> None:
    shape = rollout_shape(critic_features=11)
    learner = learner_of(shape)
    actor = NativeActor(PpoConfig(), shape)
    actor.load_weights(learner.weights())
    weights = {name: torch.from_numpy(array) for name, array in learner.weights().items()}
    rollout = Rollout(shape)
    rng = np.random.default_rng(2)
    assert rollout.critic_features is not None
    rollout.critic_features[:] = rng.standard_normal(rollout.critic_features.shape)
    rollout.features[:] = rng.standard_normal(rollout.features.shape)
    rollout.steps = shape.steps

    values = learner.values(rollout).states
    logits = actor.logits(rollout.features[0])

    expected = outputs_by_torch(
        weights, "critic", torch.from_numpy(rollout.critic_features), "tanh"
    )[..., 0]
    np.testing.assert_allclose(values, expected, atol=2e-6)  # single precision
    rows = torch.from_numpy(rollout.features[0])
    np.testing.assert_allclose(logits, outputs_by_torch(weights, "actor", rows, "tanh"), atol=2e-6)


def test_an_actor_samples_as_the_sampler_does_from_its_logits() -> None:
    shape = rollout_shape()
    actor = NativeActor(PpoConfig(), shape)
    actor.load_weights(learner_of(shape).weights())
    transitions = random_transitions(shape, 150)
    uniforms = np.random.default_rng(4).random(150, np.float32)
    found, expected = ((np.zeros(150, np.int64), np.zeros(150, np.float32)) for _ in range(2))
    actor.sample(transitions.features, transitions.action_masks, uniforms, *found)
    logits = actor.logits(transitions.features)
    _core.sample_choices(logits, transitions.action_masks, uniforms, *expected)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


def test_a_restored_learner_continues_bit_for_bit() -> None:
    shape = rollout_shape()
    transitions = random_transitions(shape, 500)
    first, second = learner_of(shape), learner_of(shape, threads=1)
    rows = np.arange(500)
    first.step(transitions, rows, COEFFICIENTS, 1e-2)
    second.load_arrays(first.arrays())
    for learner in (first, second):
        learner.step(transitions, rows, COEFFICIENTS, 1e-3)
    expected = first.arrays()
    for name, array in second.arrays().items():
        np.testing.assert_array_equal(array, expected[name])


def test_initial_weights_are_orthogonal_and_the_policy_almost_uniform() -> None:
    shape = rollout_shape()
    weights = learner_of(shape, hidden=(64, 16)).weights()
    assert [*weights] == [
        f"{network}.{number}.{kind}"
        for network in ("actor", "critic")
        for number in (0, 2, 4)
        for kind in ("weight", "bias")
    ]
    for name, gain in (("actor.0", 2), ("actor.2", 2), ("actor.4", 1e-4), ("critic.4", 1)):
        matrix = weights[f"{name}.weight"].astype(np.float64)
        outputs, inputs = matrix.shape
        products = matrix @ matrix.T if outputs <= inputs else matrix.T @ matrix
        np.testing.assert_allclose(products, gain * np.eye(len(products)), atol=1e-6 * gain)
        assert not weights[f"{name}.bias"].any()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"actor.0.weight": np.zeros((3, 3))}, r"actor.0.weight must have shape \(64, 30\), got"),
        ({"critic.4.bias": np.array([np.nan])}, "critic.4.bias must be finite numbers"),
        ({"adam.exp_avg.actor.0.bias": np.zeros(1)}, "adam.exp_avg.actor.0.bias must have shape"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: Arrays, sentence: str) -> None:
    learner = learner_of(rollout_shape())
    before = learner.weights()
    with pytest.raises(ValueError, match=sentence):
        learner.load_arrays(learner.arrays() | change)
    for name, array in learner.weights().items():
        np.testing.assert_array_equal(array, before[name])


def test_a_closed_learner_refuses_steps() -> None:
    shape = rollout_shape()
    learner = learner_of(shape)
    learner.close()
    learner.close()
    with pytest.raises(RuntimeError, match="must be open"):
        learner.step(random_transitions(shape, 5), np.arange(5), COEFFICIENTS, 1e-3)


def test_rows_and_choices_outside_of_their_range_are_refused() -> None:
    shape = rollout_shape()
    learner = learner_of(shape)
    transitions = random_transitions(shape, 5)
    with pytest.raises(IndexError, match="a row must be one of the rollout"):
        learner.step(transitions, np.array([5]), COEFFICIENTS, 1e-3)
    transitions.actions[2] = 7
    with pytest.raises(IndexError, match="a choice must be an output of the actor"):
        learner.step(transitions, np.arange(5), COEFFICIENTS, 1e-3)
    with pytest.raises(ValueError, match="a minibatch must have rows"):
        learner.step(transitions, np.arange(0), COEFFICIENTS, 1e-3)


def test_an_actor_with_nan_weights_says_so() -> None:
    shape = rollout_shape()
    actor = NativeActor(PpoConfig(), shape)
    weights = learner_of(shape).weights()
    weights["actor.4.bias"][:] = np.nan
    with pytest.raises(ValueError, match=r"actor\.4\.bias must be finite numbers"):
        actor.load_weights(weights)


@pytest.mark.parametrize(
    ("widths", "sentence"), [([3], "inputs and outputs"), ([3, 0, 2], "at least 1, got 0")]
)
def test_impossible_networks_are_refused(widths: list[int], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        _core.MlpActor(widths=widths, activation=_core.Activation.TANH, threads=1)
