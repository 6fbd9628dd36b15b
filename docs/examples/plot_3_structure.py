"""
A structure you know
====================

Somebody who knows the subject draws the graph; the columns are named, the class is everybody's parent and is not written.
"""

# %%
from sklearn.datasets import load_wine

from cgnlearn import CGNClassifier

wine = load_wine(as_frame=True)
X, y = wine.data, wine.target_names[wine.target]
graph = {
    "alcohol": [],
    "color_intensity": ["alcohol"],
    "hue": ["color_intensity"],
    "total_phenols": [],
    "flavanoids": ["total_phenols"],
    "od280/od315_of_diluted_wines": ["flavanoids"],
    "proline": ["alcohol"],
}
known = CGNClassifier(graph).fit(X, y)
naive = CGNClassifier({name: [] for name in graph}).fit(X, y)
print(f"log evidence: {known.log_evidence_:.0f} with the graph, {naive.log_evidence_:.0f} without")

# %%
# Columns left out of the graph are not in the model. What was drawn:
from cgnlearn.plots import StructureDisplay

StructureDisplay.from_estimator(known)

# %%
# What each feature said of one wine, given those it depends on:
from cgnlearn.plots import ContributionsDisplay

ContributionsDisplay.from_estimator(known, X, row=83)
