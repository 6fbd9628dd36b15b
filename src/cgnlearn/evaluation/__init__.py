"""How well classifiers do: folds, what predictions are worth, runs that go on after an interruption, and studies."""
