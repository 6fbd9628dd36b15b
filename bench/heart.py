"""Heart disease at three places in common columns: Cleveland, Hungary, and Statlog's part."""

from pathlib import Path

import pandas as pd

SHARED = Path(__file__).parents[1].resolve().parent / "shared" / "data" / "mixed"
NAMES = ["age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak"]
LEVELS = {
    "sex": {"0": "female", "1": "male"},
    "cp": {"1": "typ_angina", "2": "atyp_angina", "3": "non_anginal", "4": "asympt"},
    "fbs": {"0": "f", "1": "t"},
    "restecg": {"0": "normal", "1": "st_t_wave_abnormality", "2": "left_vent_hyper"},
    "exang": {"0": "no", "1": "yes"},
}
ILL = {"present", ">50_1", "1", "2", "3", "4"}


def place(name: str, folder: Path = SHARED) -> tuple[pd.DataFrame, pd.Series]:
    """The features and the outcome, yes or no, of ``"cleveland"``, ``"hungarian"`` or ``"statlog"``."""
    table = pd.read_csv(folder / f"heart-{name}.csv", dtype=str)
    X = table.iloc[:, :10].set_axis(NAMES, axis=1)
    for column in NAMES:
        if column in LEVELS:
            X[column] = X[column].str.replace(".0", "").replace(LEVELS[column]).astype("category")
        else:
            X[column] = X[column].astype(float)
    y = table["class"].isin(ILL).map({True: "yes", False: "no"})
    return X, y
