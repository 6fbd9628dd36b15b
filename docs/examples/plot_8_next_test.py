"""
Which test next?
================

A patient walks in; nothing is known yet. Each test has a price. The model says which one is expected to tell most for its price, and when to stop.
"""

# %%
# Patients: a questionnaire, an ECG and a scan, of which the scan is best and dearest.
import numpy as np
import pandas as pd

from cgnlearn import CGNClassifier

random = np.random.default_rng(0)
n = 300
ill = random.random(n) < 0.3
patients = pd.DataFrame(
    {
        "pain": np.where(random.random(n) < 0.2 + 0.5 * ill, "yes", "no"),
        "ecg": random.normal(0, 1, n) + 1.2 * ill,
        "pulse": random.normal(72, 9, n) + 5 * ill,
        "scan": random.normal(0, 1, n) + 2.5 * ill,
    }
).astype({"pain": "category"})
diagnosis = np.where(ill, "ill", "healthy")
model = CGNClassifier("tan").fit(patients, diagnosis)

# %%
# Costs of the tests, and of the decisions in the same units: to send an ill patient home costs 40, to treat a healthy one 20.
costs = {"pain": 0.1, "pulse": 0.2, "ecg": 0.5, "scan": 3.0}
decisions = np.array([[0.0, 40.0], [20.0, 0.0]])  # home, treat; columns: healthy, ill

# %%
# Test after test, until none is worth its price.
truth = patients[(diagnosis == "ill")].iloc[[5]]
patient = truth.copy()
for column in patient:
    patient[column] = pd.Series([None], index=patient.index, dtype=patients[column].dtype)
while True:
    found = model.next_measurement(patient, costs, decision_costs=decisions)
    probability = model.predict_proba(patient)[0, 1]
    print(f"probability of being ill {probability:.2f}, expected cost {found.risk[0]:.1f}")
    if found.feature[0] < 0:
        break
    test = patients.columns[found.feature[0]]
    print(f"  next: {test}, which is expected to save {found.fall[0, found.feature[0]]:.1f}")
    patient[test] = truth[test]

# %%
# Why this prediction: from the class prior to the patient, in no order.
from cgnlearn.plots import ContributionsDisplay, EffectDisplay

ContributionsDisplay.from_estimator(model, patient, method="shapley", of="ill", against="healthy")

# %%
# The effect of each feature alone, the most important first.
_ = EffectDisplay.panel(model, patients, diagnosis, of="ill")
