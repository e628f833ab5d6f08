"""HTML reports: read run folders or results of benches, write one page.

This package reads files only: it never trains, simulates or measures.
"""

from cagepool.report.page import write_bench_report, write_report

__all__ = ["write_bench_report", "write_report"]
