"""Training episodes that a search may still play."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """Episodes in all, and those already spent."""

    total: int
    spent: int

    @property
    def left(self) -> int:
        """Episodes that may still be played."""
        return self.total - self.spent

    def allowance(self, most: int, least: int) -> int:
        """Episodes for one more training; 0: too few are left for a single batch of `least`."""
        allowed = min(most, self.left)
        return allowed if allowed >= min(least, most) else 0
