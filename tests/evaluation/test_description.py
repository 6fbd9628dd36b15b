"""Descriptions of models: equal in every process, different for different models."""

import re
import subprocess
import sys

import numpy as np
from sklearn.preprocessing import FunctionTransformer

from cgnlearn import Band, CGNClassifier, CGNClassifierCV, Prior
from cgnlearn.cli.models import compared
from cgnlearn.evaluation.description import description

EVERY = """
from cgnlearn.cli.models import compared
from cgnlearn.evaluation.description import description
print({name: description(model) for name, model in compared((), (), seed=0, ordered=False).items()})
"""


def test_the_default_models_are_described_alike_in_every_process():
    own = {name: description(model) for name, model in compared((), (), seed=0, ordered=False).items()}
    other = subprocess.run([sys.executable, "-c", EVERY], capture_output=True, text=True, check=True).stdout
    assert other.strip() == str(own)
    assert not re.search(r"0x[0-9a-f]{6}|\.\.\.", str(own))  # no address, nothing shortened


def test_every_parameter_counts():
    different = [
        CGNClassifier(),
        CGNClassifier(Band(2)),
        CGNClassifier(Band(3)),
        CGNClassifier(prior=Prior(location="cell")),
        CGNClassifierCV(),
        CGNClassifierCV(candidates=["naive_bayes"]),
        FunctionTransformer(np.log1p),
        FunctionTransformer(np.exp),
        FunctionTransformer(sorted, kw_args={"key": len}),
        FunctionTransformer(sorted, kw_args={"key": abs}),
        np.arange(3),
        np.arange(3.0),
        np.random.RandomState(0),
        np.random.RandomState(1),
        *compared((), (), seed=1, ordered=False).values(),
    ]
    told = [description(model) for model in different]
    assert len(set(told)) == len(told) == len(different)
    assert told == [description(model) for model in different]
