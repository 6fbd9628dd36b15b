"""The report of an evaluation: one self-contained HTML page."""

from cgnlearn.reporting.page import write_report
from cgnlearn.reporting.report import report

__all__ = ["report", "write_report"]
