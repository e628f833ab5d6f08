"""Read run folders and results of benches, write one page; never train, simulate or measure."""

from cagepool.report.page import write_benches, write_report

__all__ = ["write_benches", "write_report"]
