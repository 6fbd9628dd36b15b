"""The paper's experiments, whole, with its published results beside ours."""
