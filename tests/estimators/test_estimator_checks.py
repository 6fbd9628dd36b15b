"""scikit-learn's own contract."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cgnlearn import Band, Box, CGNClassifier

FOLDS = "a sample repeated may fall into two folds, a sample of weight 2 may not"
NO_VARIANCE = "the check's data have a class without variance in some column: maximum likelihood does not exist"
WEIGHT_TWO = "a sample repeated is held out once at a time, a sample of weight 2 with all its weight"

HAS_MISSING = "several k at once take the same samples: no missing values, which this check puts in"


def expected_failures(model):
    if model.likelihood_power == "cv":
        return {"check_sample_weight_equivalence_on_dense_data": FOLDS, "check_estimators_pickle": HAS_MISSING}
    if model.estimation == "discriminative":
        return {"check_sample_weight_equivalence_on_dense_data": WEIGHT_TWO}
    if model.estimation != "ml":
        return {}
    return dict.fromkeys(
        [
            "check_sample_weights_shape",
            "check_sample_weights_not_overwritten",
            "check_sample_weight_equivalence_on_dense_data",
        ],
        NO_VARIANCE,
    )


@parametrize_with_checks(
    [CGNClassifier(), CGNClassifier(Band("cv", k_max=4), likelihood_power="cv", random_state=0)],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        CGNClassifier("complete"),
        CGNClassifier(Box(2)),
        CGNClassifier(Band(3)),
        CGNClassifier("tan"),
        CGNClassifier(sharing=0.3),
        CGNClassifier(sharing=1.0),
        CGNClassifier(estimation="ml"),
        CGNClassifier(estimation="discriminative"),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_contract_of_others(estimator, check):
    check(estimator)
