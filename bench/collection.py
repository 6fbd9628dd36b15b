"""The data sets of the comparison of classifiers, and their splits into training and test samples.

Text columns, and in ``mixed/`` those of at most four values, are categories, where a missing value is a separate level;
missing numbers stay missing; constant columns are dropped.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

UCI = "balance-scale haberman iris liver-disorders page-blocks pima-diabetes vehicle waveform wine"
MIXED = "credit-approval german-credit heart-cleveland heart-hungarian heart-statlog hepatitis hypothyroid new-thyroid"
# Without five of the thirty that are also among the data sets above.
CC18 = """
MiceProtein analcatdata_authorship analcatdata_dmft banknote-authentication blood-transfusion-service-center breast-w
car climate-model-simulation-crashes cmc cylinder-bands dresses-sales eucalyptus ilpd kc2 mfeat-fourier mfeat-karhunen
mfeat-morphological mfeat-zernike pc1 pc3 pc4 qsar-biodeg steel-plates-fault tic-tac-toe wdbc
"""
NARROW = {
    **{f"uci/{name}": f"uci/{name}.csv" for name in UCI.split()},
    **{f"mixed/{name}": f"mixed/{name}.csv" for name in MIXED.split()},
    **{f"cc18/{name}": f"cc18/{name}.npz" for name in CC18.split()},
}
WIDE = {
    "micro/colon": "micro/alon_colon_62x2000.csv.gz",
    "micro/srbct": "micro/khan_srbct_83x2308.csv.gz",
    "micro/leukemia": "micro/golub_leukemia_72x7129.csv.gz",
    "micro/prostate": "micro/singh_prostate_102x12600.csv.gz",
    "ms/ovarian": "ms/ovarian_216x4000.npz",
    "ms/arcene": "ms/arcene_200x10000.npz",
    "ms/imac": "ms/camassclass_imac.npz",
    "ms/fiedler": "ms/fiedler2009subset.npz",
}
SETS = {**NARROW, **WIDE}
ORDERED = ("ms/ovarian", "ms/imac", "ms/fiedler")  # with ordered columns
SIZES = ("50", "100", "half")
MOST_TRAINING, MOST_TEST, FEWEST_TEST = 1000, 1500, 20
FEW_VALUES = 4  # most values of a numeric column of ``mixed/`` that is a category


class Rows(NamedTuple):
    """A data set, the same for all models."""

    X: np.ndarray  # floats, NaN for missing numbers, codes of categories
    y: np.ndarray  # codes of the classes in sorted order
    categorical: list[int]  # columns of X
    groups: np.ndarray | None  # codes of the persons; None if each sample is a person


class Division(NamedTuple):
    train: np.ndarray
    test: np.ndarray


def checksum(name, data_dir):
    return hashlib.sha256((Path(data_dir) / SETS[name]).read_bytes()).hexdigest()


@lru_cache(maxsize=2)
def rows(name, data_dir):
    """Load a data set of `SETS`."""
    path, groups = Path(data_dir) / SETS[name], None
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as data:
            X, y = data["X"].astype(float), data["y"]
            categorical = data["cat"].tolist() if "cat" in data else []
            if "sample" in data:
                groups = np.unique(data["sample"], return_inverse=True)[1]
    else:
        table = pd.read_csv(path)
        y, features = table["class"].to_numpy(), table.drop(columns="class")
        few = FEW_VALUES if name.startswith("mixed/") else 0
        categorical = [
            i
            for i, (_, column) in enumerate(features.items())
            if not pd.api.types.is_numeric_dtype(column) or 1 < column.nunique() <= few
        ]
        coded = {i: pd.factorize(features.iloc[:, i], sort=True)[0] for i in categorical}
        X = np.column_stack([coded.get(i, features.iloc[:, i]) for i in range(features.shape[1])]).astype(float)
    for i in categorical:  # a missing category is a separate level
        codes = np.unique(np.nan_to_num(X[:, i], nan=-1.0), return_inverse=True)[1]
        X[:, i] = codes
    lowest, highest = (np.fmin.reduce(X), np.fmax.reduce(X))
    varying = np.flatnonzero(lowest < highest)
    position = {column: i for i, column in enumerate(varying.tolist())}
    kept = [position[i] for i in categorical if i in position]
    return Rows(X[:, varying], np.unique(y, return_inverse=True)[1], kept, groups)


def n_training(size, n_samples):
    return min(MOST_TRAINING, n_samples // 2) if size == "half" else int(size)


def division(data, size, seed):
    """Training and test samples, or None if too few test samples would remain."""
    n = len(data.y)
    n_train = n_training(size, n)
    if size != "half" and n - n_train < FEWEST_TEST:
        return None
    if data.groups is not None:  # the samples of a person stay together
        persons, first = np.unique(data.groups, return_index=True)
        share = n_train / n
        chosen, _ = train_test_split(persons, train_size=share, stratify=data.y[first], random_state=seed)
        inside = np.isin(data.groups, chosen)
        return Division(np.flatnonzero(inside), np.flatnonzero(~inside))
    train, test = train_test_split(np.arange(n), train_size=n_train, stratify=data.y, random_state=seed)
    for label in np.unique(data.y):  # at least two samples of each class
        if (data.y[train] == label).sum() < 2:
            more = test[data.y[test] == label][:2]
            train, test = np.concatenate([train, more]), np.setdiff1d(test, more, assume_unique=True)
    if len(test) > MOST_TEST:
        test = np.random.default_rng(seed).choice(test, MOST_TEST, replace=False)
    return Division(train, test)
