"""Data in memory: columns and classes, samples, transforms and folds."""
