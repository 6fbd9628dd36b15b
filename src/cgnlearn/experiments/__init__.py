"""The experiments of the paper, with its published results."""
