"""
A structure you know
====================

An expert draws the graph. Features are given by name; the class is a parent of every feature and is not written.
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
# Features that are not in the graph are not in the model. The graph:
from cgnlearn.plots import StructureDisplay

StructureDisplay.from_estimator(known)

# %%
# The contribution of each feature for one wine, given its parents:
from cgnlearn.plots import ContributionsDisplay

ContributionsDisplay.from_estimator(known, X, row=83)
