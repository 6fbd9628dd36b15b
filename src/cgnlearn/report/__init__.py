"""One self-contained HTML page that says what an evaluation found."""

from cgnlearn.report.page import write_report

__all__ = ["write_report"]
