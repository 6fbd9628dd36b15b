"""The estimator that tunes itself: candidates, what they say of rows left out, and their mixture."""
