"""Conformal p-values of labels (Vovk, Gammerman and Shafer 2005).

The conformity of a sample with its label is p(label | x) by the model without the sample. A new sample is tried with
every label: if it has its true label, it is exchangeable with the training samples, and its conformity is among the
lowest share α of them with a chance of at most α, whatever the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cgnlearn.data.arrays import Floats
from cgnlearn.data.table import Table, concatenated
from cgnlearn.networks.densities import normalised, true_class_log_proba
from cgnlearn.networks.model import Model, NotExactError

EQUAL = 1e-12  # difference of conformities, relative, that rounding may cause between equal samples


def full_p_values(
    training: Table, new: Table, model_with: Callable[[Table], Model], power: float, per_class: bool
) -> Floats:
    """p-values of full conformal prediction: (new samples, classes).

    ``model_with`` returns the model of the training samples and of one more. Everything that it learns, prior
    included, is from all of them alike, and every sample is held out in the same way: that makes them exchangeable.
    """
    assert training.labels is not None
    n_classes = training.schema.n_classes
    found = np.empty((new.n_samples, n_classes))
    for row in range(new.n_samples):
        one = new.rows(np.array([row]))
        for label in range(n_classes):
            added = replace(one, labels=np.array([label]), weights=None)
            labels = np.append(training.labels, label)
            together = replace(concatenated([training, one]), labels=labels)
            conformity = true_class_log_proba(held_out(model_with(added), together, power), labels)
            counted = training.labels == label if per_class else slice(None)
            found[row, label] = p_value(conformity[:-1][counted], conformity[-1])
    return found


def held_out(model: Model, table: Table, power: float) -> Floats:
    """Log probabilities of the classes for the samples of a fit.

    By leave-one-out; where that has no closed form, by the model itself, which treats all samples alike as well.
    """
    try:
        log_likelihood, class_log_prior = model.leave_one_out(table)
    except NotExactError:
        log_likelihood, class_log_prior = model.log_likelihood(replace(table, labels=None)), model.class_log_prior
    return normalised(power * log_likelihood + class_log_prior)


def p_value(conformities: Floats, conformity: float) -> float:
    """Share of samples, the new one included, that conform no better than it.

    >>> p_value(np.array([-0.1, -0.2, -3.0]), -0.5)
    0.5
    """
    slack = EQUAL * max(1.0, abs(conformity)) if np.isfinite(conformity) else 0.0
    return float((np.count_nonzero(conformities <= conformity + slack) + 1) / (len(conformities) + 1))


def held_out_p_values(log_proba: Floats, labels: NDArray[np.intp], new: Floats, per_class: bool) -> Floats:
    """Approximate p-values, from held-out training samples and a model of all: (new samples, classes).

    ``log_proba`` are those of the training samples, ``new`` those of the new ones: (samples, classes).
    """
    conformity = true_class_log_proba(log_proba, labels)
    found = np.empty(new.shape)
    for label in range(new.shape[1]):
        counted = np.sort(conformity[labels == label] if per_class else conformity)
        found[:, label] = (np.searchsorted(counted, new[:, label], side="right") + 1) / (len(counted) + 1)
    return found
