"""The report of an evaluation: one self-contained HTML page."""

from cgnlearn.reporting.page import write_report

__all__ = ["write_report"]
