"""Tables: what the columns are, and how samples are divided."""
