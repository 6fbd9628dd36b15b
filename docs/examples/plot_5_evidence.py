"""
Comparing structures by evidence
================================

The evidence is the probability of the training data with all parameters integrated out: it rewards fit and penalises needless parameters, without held-out samples.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from cgnlearn import Band, CGNClassifier
from cgnlearn.datasets import make_waveform

X, y = make_waveform(400, random_state=0)
structures = {
    "naive Bayes": "naive_bayes",
    "TAN": "tan",
    "2-BAND": Band(2),
    "5-BAND": Band(5),
    "complete": "complete",
}
scores = {}
for name, structure in structures.items():
    for sharing in (0, 1):
        model = CGNClassifier(structure, sharing=sharing).fit(X, y)
        held_out = model.leave_one_out_log_proba(X, y) if structure != "tan" else None
        log_loss = np.nan if held_out is None else -held_out[np.arange(len(y)), y].mean()
        scores[name, sharing] = model.log_evidence_, log_loss
        print(f"{name:12} sharing {sharing}: log evidence {model.log_evidence_:9.1f}, log loss {log_loss:.3f}")

# %%
# Differences are log Bayes factors. Evidence measures the fit of features and class together, leave-one-out that of the class alone, so their order may differ: waveforms are
# smooth curves whose neighbours are correlated, and the evidence rewards this whether or not it helps to separate the classes.
best = max(evidence for evidence, _ in scores.values())
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
for offset, sharing in ((-0.2, 0), (0.2, 1)):
    values = [scores[name, sharing][0] - best for name in structures]
    axes.barh(np.arange(len(structures)) + offset, values, 0.38, label=f"sharing {sharing}")
axes.set_yticks(range(len(structures)), structures)
axes.set_xlabel("log evidence below the best")
axes.legend()
