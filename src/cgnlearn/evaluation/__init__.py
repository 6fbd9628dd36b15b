"""Evaluation of classifiers: resumable runs of cross-validations, metrics, comparisons and decisions."""
