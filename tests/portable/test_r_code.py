import shutil
import subprocess

import numpy as np
import pytest

from cgnlearn import CGNClassifier
from cgnlearn.portable.document import description
from cgnlearn.portable.r_code import as_r, r_code
from tests.portable.cases import CASES, cells, fitted, samples, table

HOSTILE = "a \"b\" \\ 'c' <script> %d\n, 😀 # }"
FEW = ["naive Bayes, indicators", "TAN, counted separately", "complete, paper", "selective naive Bayes"]


def in_r(tmp_path, script):
    found = shutil.which("Rscript")
    if found is None:
        pytest.skip("there is no Rscript: install r-base-core")
    (tmp_path / "run.R").write_text(script)
    run = subprocess.run(
        [found, "--vanilla", "-e", 'source("run.R")'],
        cwd=tmp_path, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-2000:]
    return run.stdout


def frame(X):
    """A data frame as R code, with levels as factors or text and None as NA."""
    columns = [
        f"c({', '.join('NA' if cell is None else as_r(cell) for cell in column)})"
        for column in zip(*cells(X), strict=True)
    ]
    return f"setNames(data.frame({', '.join(columns)}), c({', '.join(map(as_r, X.columns))}))"


def predicted(tmp_path, models, frames, call="predict_cgn(X)"):
    """Predictions by R, one matrix for each model."""
    script = ""
    for i, (model, X) in enumerate(zip(models, frames, strict=True)):
        (tmp_path / f"m{i}.R").write_text(r_code(description(model, title=HOSTILE)))
        script += f'source("m{i}.R")\nX <- {frame(X)}\n'
        told = f'format({call}, digits = 17), "p{i}.txt", quote = FALSE, row.names = FALSE, col.names = FALSE'
        script += f"write.table({told})\n"
    in_r(tmp_path, script)
    return [np.loadtxt(tmp_path / f"p{i}.txt", ndmin=2) for i in range(len(models))]


@pytest.mark.filterwarnings("ignore:.*unknown from training", "ignore:.*is observed in")
@pytest.mark.parametrize("names", [FEW, pytest.param([*CASES], marks=pytest.mark.slow)], ids=["quick", "every"])
def test_r_predicts_the_same(names, tmp_path):
    frames = [samples(name, 4) for name in names]
    found = predicted(tmp_path, [fitted(name) for name in names], frames)
    for name, X, proba in zip(names, frames, found, strict=True):
        np.testing.assert_allclose(proba, fitted(name).predict_proba(X), atol=1e-9, rtol=0, err_msg=name)


@pytest.mark.slow
def test_more_columns_than_samples(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 310)), np.arange(30) % 2
    model = CGNClassifier("complete").fit(X[:24], y[:24])
    (tmp_path / "m.R").write_text(r_code(description(model)))
    np.savetxt(tmp_path / "X.txt", X[24:])
    script = 'source("m.R")\nX <- as.matrix(read.table("X.txt"))\ncat(format(predict_cgn(unname(X))[, 1], digits = 17))'
    found = np.array(in_r(tmp_path, script).split(), float)
    np.testing.assert_allclose(found, model.predict_proba(X[24:])[:, 0], atol=1e-9)


def test_another_prevalence_and_names_that_are_code(tmp_path):
    X, y = table(60, 0, numeric=True)
    X = X.rename(columns={"d": HOSTILE})
    model = CGNClassifier().fit(X, np.where(y == "other", HOSTILE, y))
    prior = [0.7, 0.2, 0.1]
    (found,) = predicted(tmp_path, [model], [X[:5].iloc[:, ::-1]], "predict_cgn(X, prior = c(7, 2, 1))")
    np.testing.assert_allclose(found, model.with_class_prior(prior).predict_proba(X[:5]), atol=1e-9)
    script = f'source("m0.R")\ncat(identical(colnames(predict_cgn({frame(X[:1])}))[1], {as_r(HOSTILE)}))'
    assert in_r(tmp_path, script) == "TRUE"


def test_bad_input_is_told(tmp_path):
    model = fitted("TAN average")
    (tmp_path / "m.R").write_text(r_code(description(model)))
    script = 'source("m.R")\ntold <- function(call) cat(tryCatch(call, error = conditionMessage), "\\n")\n'
    script += "told(predict_cgn(data.frame(a = 1)))\n"
    script += f"X <- {frame(samples('TAN average', 2))}\nX[[1]][1] <- NA\ntold(predict_cgn(X))\n"
    script += 'X[[1]] <- c("a", "b")\ntold(predict_cgn(X))\ntold(predict_cgn(X, prior = 1))'
    found = in_r(tmp_path, script).splitlines()
    assert found[0].startswith("newdata must have the columns age (years)")
    assert found[1].strip() == "this model needs a value for every feature"
    assert found[2].strip() == "age (years) must hold numbers"
    assert found[3].startswith("prior must have a probability for each of 3 classes")
