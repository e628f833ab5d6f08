"""Addresses, process ids and ports: labels that the rules do not need (docs/rules.md, 3.4)."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network
from random import Random

from cagepool.cyborg.dict_state.scenario import PROCESSES
from cagepool.sim.names import SUBNET_HOSTS

# Primes, so that every stride visits all numbers before one comes again.
_PIDS = 32719  # room for the 27 fixed ones below 32768
_FIXED_PIDS = {host: sorted(process.pid for process in PROCESSES[host]) for host in PROCESSES}
_PORTS = 10847
_FIRST_PORT = 49152


class Addresses:
    """The labels of one episode: drawn once, the same for as long as the episode lasts."""

    networks: dict[str, IPv4Network]  # by subnet
    hosts: dict[str, IPv4Address]

    def __init__(self, key: int) -> None:
        """Draw them from the key of the episode's random stream."""
        draw = Random(key)
        blocks = draw.sample(range(4096), len(SUBNET_HOSTS))
        self.networks, self.hosts = {}, {}
        for (subnet, members), block in zip(SUBNET_HOSTS.items(), blocks, strict=True):
            network = IPv4Network((int(IPv4Address("10.0.0.0")) + 16 * block, 28))
            self.networks[subnet] = network
            addresses = draw.sample(list(network.hosts()), len(members))
            self.hosts.update(zip(members, addresses, strict=True))
        self._pid_walks = {
            host: (draw.randrange(_PIDS), draw.randrange(1, _PIDS)) for host in PROCESSES
        }
        self._port_walk = draw.randrange(_PORTS), draw.randrange(1, _PORTS)

    def pid(self, host: str, place: int) -> int:
        """A process id that no other place on the host has, nor any of its fixed processes."""
        start, stride = self._pid_walks[host]
        pid = 1 + (start + stride * place) % _PIDS
        for fixed in _FIXED_PIDS[host]:
            pid += pid >= fixed
        return pid

    def port(self, session: int) -> int:
        """The ephemeral port of one of red's sessions."""
        start, stride = self._port_walk
        return _FIRST_PORT + (start + stride * session) % _PORTS


@lru_cache(maxsize=1024)
def of_episode(key: int) -> Addresses:
    """The labels of the episode whose random stream has that key."""
    return Addresses(key)
