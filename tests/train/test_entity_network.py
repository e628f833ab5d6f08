"""Laws of the entity network: hosts are exchangeable, and padding changes nothing."""

import pytest
import torch

from cagepool.policy.networks import NetworkInputs, NetworkSpec, make_network
from cagepool.types import HostBlocks

BLOCKS = HostBlocks(shared=5, features=9, plain_kinds=("Sleep",), host_kinds=("Remove", "Restore"))
ROWS = 4


def spec_of(hosts: int, activation: str = "relu") -> NetworkSpec:
    features = BLOCKS.shared + hosts * BLOCKS.features
    actions = len(BLOCKS.plain_kinds) + hosts * len(BLOCKS.host_kinds)
    return NetworkSpec(
        features,
        features,
        actions,
        hidden=(12, 8),
        critic_hidden=(8,),
        activation=activation,
        hosts=BLOCKS,
    )


def random_hosts(hosts: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Shared features, and those of hosts in three subnets."""
    rng = torch.Generator().manual_seed(0)
    shared = torch.randn(1, ROWS, BLOCKS.shared, generator=rng)
    blocks = torch.randn(1, ROWS, hosts, BLOCKS.features, generator=rng)
    blocks[..., 0] = 1
    blocks[..., 1] = torch.randint(3, (1, ROWS, hosts), generator=rng) / 16
    return shared, blocks


def outputs_of(
    network: torch.nn.Module, shared: torch.Tensor, blocks: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits without a host, logits by kind and host, and values."""
    features = torch.cat([shared, blocks.flatten(-2)], -1)
    with torch.no_grad():
        logits, values, _ = network(NetworkInputs(features, features, None, torch.zeros(ROWS, 0)))
    plain = len(BLOCKS.plain_kinds)
    by_host = logits[..., plain:].reshape(1, ROWS, len(BLOCKS.host_kinds), -1)
    return logits[..., :plain], by_host, values


def trained(network: torch.nn.Module) -> torch.nn.Module:
    """The network with weights that are large everywhere, as after training."""
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weights in network.parameters():
            weights.copy_(torch.randn(weights.shape, generator=rng) / 2)
    return network


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_permuting_the_hosts_permutes_the_logits(activation: str) -> None:
    network = trained(make_network("entity", spec_of(6, activation)))
    shared, blocks = random_hosts(6)
    order = torch.randperm(6, generator=torch.Generator().manual_seed(2))
    plain, by_host, values = outputs_of(network, shared, blocks)
    permuted = outputs_of(network, shared, blocks[:, :, order])

    torch.testing.assert_close(permuted[0], plain)
    torch.testing.assert_close(permuted[1], by_host[..., order])
    torch.testing.assert_close(permuted[2], values)
    assert by_host.std(-1).min() > 0.01  # hosts differ


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_padding_changes_neither_logits_nor_values(activation: str) -> None:
    network = trained(make_network("entity", spec_of(6, activation)))
    shared, blocks = random_hosts(6)
    padding = torch.zeros(1, ROWS, 3, BLOCKS.features)
    plain, by_host, values = outputs_of(network, shared, blocks)
    padded = outputs_of(network, shared, torch.cat([blocks, padding], 2))

    torch.testing.assert_close(padded[0], plain)
    torch.testing.assert_close(padded[1][..., :6], by_host)
    torch.testing.assert_close(padded[2], values)


def test_a_host_is_moved_by_its_subnet_more_than_by_another() -> None:
    network = trained(make_network("entity", spec_of(4)))
    shared, blocks = random_hosts(4)
    blocks[..., 1] = torch.tensor([0, 0, 1, 1]) / 16
    _, before, _ = outputs_of(network, shared, blocks)
    blocks[:, :, 0, 2:] += 3
    _, after, _ = outputs_of(network, shared, blocks)
    change = (after - before).abs().mean((0, 1, 2))

    torch.testing.assert_close(change[2:] > 0, torch.tensor([True, True]))
    assert not torch.allclose(change[1], change[2])


def test_features_without_hosts_are_refused() -> None:
    with pytest.raises(ValueError, match="network entity needs features that are made of hosts"):
        make_network("entity", NetworkSpec(10, 10, 3))


def test_the_weights_do_not_depend_on_the_number_of_hosts() -> None:
    shapes = [
        {
            name: tuple(array.shape)
            for name, array in make_network("entity", spec).state_dict().items()
        }
        for spec in (spec_of(3), spec_of(40))
    ]
    assert shapes[0] == shapes[1]
    assert shapes[0]["kind_biases"] == (3,)
