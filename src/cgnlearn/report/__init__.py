"""One self-contained HTML page that says what an evaluation found."""

from cgnlearn.report.page import write_report
from cgnlearn.report.study import Study

__all__ = ["Study", "write_report"]
