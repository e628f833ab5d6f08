"""Read run folders, write one page about them; never train, never simulate."""

from cagepool.report.page import write_report

__all__ = ["write_report"]
