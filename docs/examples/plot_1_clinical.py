"""
A clinical table with missing values
====================================

A few hundred patients, numeric and categorical features, missing values: no encoding, no imputation, one line to fit.
"""

# %%
# The data. Blood pressure rises with age, the disease raises a marker, and one value in ten is missing.
import numpy as np
import pandas as pd

from cgnlearn import CGNClassifierCV

random = np.random.default_rng(0)
n = 240
ill = random.random(n) < 0.4
age = random.normal(55, 12, n) + 6 * ill
marker = np.exp(random.normal(1.0, 0.4, n) + 0.5 * ill)
pressure = 90 + 0.8 * age + random.normal(0, 12, n)
smoker = np.where(random.random(n) < 0.25 + 0.25 * ill, "yes", "no")
patients = pd.DataFrame({"age": age, "marker": marker, "pressure": pressure, "smoker": smoker})
patients = patients.mask(random.random(patients.shape) < 0.1).astype({"smoker": "category"})
diagnosis = np.where(ill, "ill", "healthy")
patients.head()

# %%
# Every other patient is for training, the rest for testing.
model = CGNClassifierCV().fit(patients[::2], diagnosis[::2])
print(f"accuracy {model.score(patients[1::2], diagnosis[1::2]):.2f}")

# %%
# The contributions of the features for one patient, as log odds of being ill. A missing value contributes 0.
patient = patients.iloc[[1]]
contributions = model.contributions(patient)[0]
print(patient.T.iloc[:, 0].to_string())
print(dict(zip(patients.columns, (contributions[:, 1] - contributions[:, 0]).round(2).tolist(), strict=True)))
print("probability of being ill:", model.predict_proba(patient)[0, 1].round(2))

# %%
# In the clinic four patients in ten are ill; in a screening it is one in a hundred. Only the class prior changes.
screening = model.with_class_prior([0.99, 0.01])
print("in a screening:", screening.predict_proba(patient)[0, 1].round(3))

# %%
# Are the probabilities right?
from cgnlearn.plots import ReliabilityDisplay

ReliabilityDisplay.from_predictions(
    diagnosis[1::2], {"mixture": model.predict_proba(patients[1::2])}, classes=model.classes_
)
