"""A red agent of CybORG that plays the actions of a caller."""

from typing import Any

from cagepool.cyborg import locate

GIVEN = "given"
"""Red setting with which the caller plays red."""

_HOST_BY_ADDRESS = ("DiscoverNetworkServices", "ExploitRemoteService")


class GivenRed:
    """Plays the CybORG action in `action`; has the methods of CybORG's `BaseAgent`."""

    action: Any = None  # set before each step

    def get_action(self, observation: Any, action_space: Any) -> Any:  # noqa: ARG002 - CybORG's signature
        """Return the action of the caller, whatever red sees."""
        return self.action

    def train(self, results: Any) -> None:
        """Do nothing."""

    def end_episode(self) -> None:
        """Do nothing."""

    def set_initial_values(self, action_space: Any, observation: Any) -> None:
        """Do nothing."""


def make_red_action(controller: Any, name: str) -> Any:
    """CybORG's object of a red action such as `ExploitRemoteService User1`.

    The action may be about a host or subnet that red does not know; CybORG then plays an
    `InvalidAction` in its place.
    """
    verb, _, target = name.partition(" ")
    make_action = locate.import_object(f"Shared.Actions.{verb}")
    if not target:
        return make_action()
    settings = {"session": 0, "agent": "Red"}
    if verb == "DiscoverRemoteSystems":
        return make_action(subnet=controller.subnet_cidr_map[target], **settings)
    if verb in _HOST_BY_ADDRESS:
        return make_action(ip_address=controller.hostname_ip_map[target], **settings)
    return make_action(hostname=target, **settings)
