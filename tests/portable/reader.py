"""A reader of portable model files that shares no code with the package: docs/portable.md, taken literally."""

import re
from itertools import chain, product
from math import lgamma, log, log1p, pi

import numpy as np

FARTHEST = 1e140  # in standard units: greater distances count as this one
TRUTHS = {spell(str(truth)): str(int(truth)) for truth in (False, True) for spell in (str.lower, str.upper, str.title)}


def canonical(level):
    """What the spellings of one level have in common."""
    text = TRUTHS.get(str(level), str(level))
    whole = re.fullmatch(r"(-?(?:0|[1-9][0-9]{0,99}))(?:\.0*)?", text)
    return str(int(whole[1])) if whole else text


def log_sum(terms):
    return np.logaddexp.reduce(np.array(terms), axis=0)


def numbers(values):
    """Null is minus infinity."""
    return np.array([-np.inf if value is None else value for value in values], float)


class Reader:
    def __init__(self, document):
        assert document["format"] == "cgnlearn-portable"
        assert document["version"] == 1
        self.document, self.columns = document, document["columns"]
        self.n_classes, self.prior = len(document["classes"]), np.array(document["class_log_prior"])
        self.continuous = [i for i, column in enumerate(self.columns) if column["kind"] == "continuous"]

    def read(self, row):
        """A number for each column: its value, or the position of its level; NaN if it is missing or unknown."""
        found = []
        for column, cell in zip(self.columns, row, strict=True):
            missing = cell is None or cell != cell
            if column.get("fixed"):
                found.append(0.0)
            elif column["kind"] == "continuous":
                found.append(np.nan if missing else float(cell))
            else:
                levels = [canonical(level) for level in column["levels"]]
                known = not missing and canonical(cell) in levels
                assert known or missing or self.document["handle_unknown"] == "missing", "unknown level"
                found.append(float(levels.index(canonical(cell))) if known else np.nan)
        return np.array(found)

    def log_proba(self, row):
        x, found = self.read(row), []
        for member in self.document["members"]:
            if not any(self.refuses(each["models"], x) for each in member["likelihoods"]):
                parts = [
                    np.array(each["powers"]) @ self.log_likelihood(each["models"], x) for each in member["likelihoods"]
                ]
                joint = sum(parts, self.prior)
                found.append(log(member["weight"]) + joint - log_sum(joint))
        power = self.document["power"]
        raised = power * (log_sum(found) - log_sum(log_sum(found))) + (1 - power) * self.prior
        return raised - log_sum(raised)

    def log_density(self, row):
        x, found = self.read(row), []
        for each in self.document["density"]:
            if not self.refuses(each["models"], x):
                jacobian = self.transformed(x, self.document["models"][each["models"][0]]["transform"])[1]
                found += list(np.log(each["weights"])[:, None] + jacobian + self.log_likelihood(each["models"], x))
        return log_sum(log_sum(found) + self.prior)

    def typicality(self, row):
        table = self.document["typicality"]
        return float(np.interp(self.log_density(row), table["log_density"], table["typicality"]))

    def refuses(self, which, x):
        return np.isnan(x).any() and any(self.document["models"][i].get("needs_complete") for i in which)

    def log_likelihood(self, which, x):
        """ln p(x | class), up to a constant of the sample: (settings, classes)."""
        models = [self.document["models"][i] for i in which]
        return sum(getattr(self, model["kind"])(model, self.transformed(x, model["transform"])[0]) for model in models)

    def transformed(self, x, name):
        """The sample, and the log Jacobian."""
        transform, x, log_jacobian = self.document["transforms"][name], x.copy(), 0.0
        for i, column in enumerate(self.continuous):
            if "edges" in transform and not np.isnan(x[column]):
                x[column] = sum(edge <= x[column] for edge in transform["edges"][i])
            elif "power" in transform and not np.isnan(x[column]):
                unit, power = transform["unit"][i], transform["power"][i]
                away = np.clip((x[column] - transform["origin"][i]) / unit, -FARTHEST, FARTHEST)
                length = log1p(abs(away))
                log_jacobian += (power - 1) * np.sign(away) * length - log(unit)
                power = power if away >= 0 else 2 - power
                moved = length if abs(power) < 1e-8 else np.expm1(min(power * length, 300.0)) / power
                x[column] = moved if away >= 0 else -moved
        return x, log_jacobian

    # ---- models, each (settings, classes)

    def network(self, model, x):
        return np.array([Network(model, setting, x, self.columns).log_likelihood() for setting in model["settings"]])

    def selection(self, model, x):
        found = np.zeros((len(model["log_in"]), self.n_classes))
        for i in range(len(found)):
            parts = [
                Network(model[kind], model[kind]["settings"][i], x, self.columns).families() for kind in ("own", "free")
            ]
            for (column, _, own), (_, _, free) in zip(*parts, strict=True):
                log_in, log_out = (numbers(model[kind][i])[column] for kind in ("log_in", "log_out"))
                found[i] += np.logaddexp(log_in + own, log_out + free)
        return found

    def forests(self, model, x):
        setting = model["given"]["settings"][0]
        given, alone = (Network(model[kind], setting, x, self.columns).families() for kind in ("given", "alone"))
        alone, place = {v: log_density for v, _, log_density in alone}, {v: i for i, v in enumerate(model["nodes"])}
        weights = np.array([numbers(line) for line in model["log_weights"]])
        ratios = np.zeros((*weights.shape, self.n_classes))
        for v, (u,), log_density in given:
            if v in place and u in place:
                ratios[1 + place[u], place[v]] = log_density - alone[v]
                if u in self.continuous:
                    ratios[1 + place[v], place[u]] = ratios[1 + place[u], place[v]]
        sums = [forest_sum(weights + ratios[..., label]) - forest_sum(weights) for label in range(self.n_classes)]
        return np.array([sums]) + sum(alone.values())

    def orders(self, model, x):
        kinds = [(model["free"], 0.0), (model["own"], 1.0), (model["own"], 0.0)]
        groups, total = [Group(group, sharing, True) for group, sharing in kinds], np.zeros(self.n_classes)
        for v in range(len(model["own"]["columns"])):
            terms = []
            for group, log_weight in zip(groups, model["log_weight"], strict=True):
                for order, weight in enumerate(log_weight[v]):
                    if weight is not None:
                        given = [u for u in range(v - order, v) if u not in model["absent"]]
                        terms.append(weight + np.zeros(self.n_classes) + group.density(0, v, given, x))
            total += log_sum(terms) if v not in model["absent"] else 0.0
        return total[None]

    def rotation(self, model, x):
        basis, cell = np.array(model["basis"]), configuration(model["parents"], x, self.columns)
        away = np.clip((x[model["columns"]] - model["origin"]) / model["unit"], -FARTHEST, FARTHEST)
        inside, size = basis.T @ away, len(basis)
        outside, found = np.square(away - basis @ inside).sum(), []
        for setting in model["settings"]:
            found.append([])
            for label in range(self.n_classes):
                scale = unpacked(setting["scale"][cell][label], basis.shape[1], {"reach": basis.shape[1] - 1})
                residual = inside - setting["origin"] - setting["centre"][cell][label]
                shape, least = setting["shape"][cell][label], setting["leverage"][cell][label]
                whole = least + outside / setting["multiple"] + residual @ np.linalg.solve(scale, residual)
                log_det = np.linalg.slogdet(scale)[1] + (size - len(scale)) * log(setting["multiple"])
                log_det += 2 * np.log(model["unit"]).sum()
                constant = lgamma(shape + size / 2) - lgamma(shape) - size / 2 * log(pi) - log_det / 2
                found[-1].append(constant + shape * log(least) - (shape + size / 2) * log(whole))
        return np.array(found)

    def regression(self, model, x):
        factors = []
        for column, kind, *rest in model["factors"]:
            if kind == "value":
                least, most = -FARTHEST if rest[2] is None else rest[2], FARTHEST if rest[3] is None else rest[3]
                factors.append(np.clip((x[column] - rest[0]) / rest[1], least, most))
            else:
                holds = x[column] == rest[0] if kind == "level" else x[column] >= rest[0]
                factors.append(np.nan if np.isnan(x[column]) else float(holds))
        terms = np.array([np.prod([factors[i] for i in term]) for term in model["terms"]])
        centred = np.nan_to_num(terms - model["centre"]) if len(terms) else np.zeros(0)
        return (centred @ np.array(model["slopes"]).reshape(-1, self.n_classes) + model["intercept"])[None]

    def aode(self, model, x):
        starts, n = np.cumsum([0, *model["levels"]]), sum(model["levels"])
        observed = np.flatnonzero(~np.isnan(x))
        at, found = [int(starts[v] + x[v]) for v in observed], np.zeros((len(model["settings"]), self.n_classes))
        for label, packed in enumerate(model["counts"]):
            counts = np.zeros((n, n))
            counts[np.triu_indices(n)] = packed
            counts = np.maximum(counts, counts.T)
            for i, setting in enumerate(model["settings"]):
                backoff, dirichlet, terms = setting["backoff"], setting["dirichlet"], []
                own = [np.diag(counts)[starts[v] : starts[v + 1]] + dirichlet for v in observed]
                alone = [part[int(x[v])] / part.sum() for v, part in zip(observed, own, strict=True)]
                for j, parent in enumerate(at):
                    total = log(alone[j])
                    for k, v in enumerate(observed):
                        if k != j:
                            together = counts[parent, starts[v] : starts[v + 1]].sum()
                            total += log((counts[parent, at[k]] + backoff * alone[k]) / (together + backoff))
                    terms.append(total)
                found[i, label] = log_sum(terms) - log(len(terms)) if terms else 0.0
        return found

    def indicators(self, model, x):
        total = np.zeros(self.n_classes)
        for column, counts in zip(model["columns"], model["counts"], strict=True):
            mass = np.array(counts) + model["dirichlet"]
            total += np.log(mass[:, int(np.isnan(x[column]))] / mass.sum(axis=1))
        return total[None]


def forest_sum(log_weights):
    """ln of the sum over all forests: parents are rows, the first of which stands for no parent."""
    weights, total = log_weights.copy(), 0.0
    for v in range(weights.shape[1] - 1, -1, -1):
        into = log_sum([weights[u, v] for u in range(v + 1)])
        for a in range(v):
            for u in range(v + 1):
                if u != a + 1:
                    weights[u, a] = np.logaddexp(weights[u, a], weights[u, v] + weights[v + 1, a] - into)
        total += into
    return total


def configuration(parents, codes, columns):
    """The number of a combination of levels, the last of which varies fastest."""
    number = 0
    for parent in parents:
        number = number * max(1, len(columns[parent]["levels"])) + int(codes[parent])
    return number


def unpacked(packed, n, group):
    """A symmetric matrix from its diagonal and the listed pairs; others are not needed."""
    first, second = group.get("pairs") or np.triu_indices(n, 1)
    if "reach" in group:
        near = second - first <= group["reach"]
        first, second = first[near], second[near]
    matrix = np.diag(packed[:n]).astype(float)
    matrix[first, second] = matrix[second, first] = packed[n:]
    return matrix


class Group:
    """Continuous features with the same discrete parents, under a sharing."""

    def __init__(self, group, sharing, averages):
        self.group, self.averages, n = group, averages, len(group["columns"])
        self.centre, self.leverage = (np.array(group[name]) for name in ("centre", "leverage"))
        self.shift = np.array(group["shift"]) if "shift" in group else np.zeros(self.centre.shape)
        packed, shape = np.array(group["scale"]), np.array(group["shape"])
        own_spread = np.array(group["own_spread"]) if "shift" in group else np.zeros(self.centre.shape)
        prior_scale = np.zeros(packed.shape[-1])
        prior_scale[:n] = group.get("prior_scale", 0.0)
        self.packed, self.shape, self.own_spread = (
            own + sharing * ((own - prior).sum(axis=1, keepdims=True) - (own - prior))
            for own, prior in ((packed, prior_scale), (shape, group.get("prior_shape", 0.0)), (own_spread, 0.0))
        )
        self.separate = shape.ndim == 3

    def scale(self, cell, label, members):
        return unpacked(self.packed[cell, label], len(self.group["columns"]), self.group)[np.ix_(members, members)]

    def of_cell(self, part, cell, own):
        return part[cell][:, own] if self.separate else part[cell]

    def standard(self, x, members):
        group = self.group
        values = [(x[group["columns"][i]] - group["origin"][i]) / group["unit"][i] for i in members]
        return np.clip(np.array(values), -FARTHEST, FARTHEST)

    def density(self, cell, own, given, x):
        """ln p(own | given) in each class."""
        found, away = [], self.standard(x, [*given, own])
        for label, centre in enumerate(self.centre[cell]):
            scale, residual = self.scale(cell, label, [*given, own]), away - centre[[*given, own]]
            parts = conditional(scale, residual)
            found.append(self.log_density(cell, label, own, *parts, len(given), 1.0))
        return np.array(found)

    def log_density(self, cell, label, own, residual, spread, distance, n_given, behind):
        """Of a residual; spread and squared distance of the parents are per unit of ``behind``."""
        unit = self.group["unit"][own]
        residual, spread = residual + self.shift[cell, label, own], spread * behind + self.own_spread[cell, label, own]
        if not self.averages:
            return -0.5 * (log(2 * pi * spread) + residual**2 / spread) - log(unit)
        shape = self.of_cell(self.shape, cell, own)[label] + n_given / 2
        spread = spread * (self.of_cell(self.leverage, cell, own)[label] + distance / behind)
        constant = lgamma(shape + 0.5) - lgamma(shape) - 0.5 * log(pi * spread)
        return constant - (shape + 0.5) * log1p(residual**2 / spread) - log(unit)


def conditional(scale, residual):
    """Residual and spread of the last member given the others, and the squared distance of these."""
    if len(residual) == 1:
        return residual[0], scale[0, 0], 0.0
    slopes = np.linalg.solve(scale[:-1, :-1], scale[:-1, -1])
    distance = residual[:-1] @ np.linalg.solve(scale[:-1, :-1], residual[:-1])
    return residual[-1] - slopes @ residual[:-1], scale[-1, -1] - slopes @ scale[:-1, -1], distance


class Network:
    """One setting of a network, and a sample."""

    def __init__(self, model, setting, x, columns):
        self.model, self.setting, self.x, self.columns = model, setting, x, columns
        averages = model["estimation"] == "bayes"
        self.groups = [Group(group, setting["sharing"], averages) for group in model["groups"]]
        self.nodes = {node["column"]: node for node in model["continuous"]}
        self.parents = {v: [self.columns_of(node)[i] for i in node["given"]] for v, node in self.nodes.items()}

    def columns_of(self, node):
        return self.model["groups"][node["group"]]["columns"]

    def categorical(self, family, codes):
        mass = np.array(family["counts"])[:, configuration(family["parents"], codes, self.columns)]
        mass = mass + self.setting["dirichlet"]
        with np.errstate(divide="ignore"):
            return np.log(mass[:, int(codes[family["column"]])] / mass.sum(axis=1))

    def families(self):
        """Each family whose columns are observed: the column, its parents and its log densities."""
        for family in self.model["discrete"]:
            if not np.isnan(self.x[[family["column"], *family["parents"]]]).any():
                yield family["column"], family["parents"], self.categorical(family, self.x)
        for node in self.model["continuous"]:
            given, cells = self.parents_of(node)
            if not np.isnan(self.x[[node["column"], *given, *cells]]).any():
                yield node["column"], [*cells, *given], self.direct(node, self.x)

    def parents_of(self, node):
        return [self.columns_of(node)[i] for i in node["given"]], self.model["groups"][node["group"]]["parents"]

    def direct(self, node, codes):
        group = self.groups[node["group"]]
        return group.density(self.cell(node, codes), node["own"], node["given"], self.x)

    def cell(self, node, codes):
        return configuration(self.model["groups"][node["group"]]["parents"], codes, self.columns)

    # ---- missing values

    def log_likelihood(self):
        """Sum over the levels of missing discrete features; continuous ones are integrated out."""
        discrete, needed = self.model["discrete"], set(np.flatnonzero(~np.isnan(self.x)))
        parents = {family["column"]: family["parents"] for family in discrete}
        parents |= {node["column"]: [*chain(*self.parents_of(node))] for node in self.model["continuous"]}
        for column in reversed(parents):  # children before parents
            needed |= set(parents[column]) if column in needed else set()
        families = [family for family in discrete if family["column"] in needed]
        nodes = [column for column in self.nodes if column in needed]
        summed = [family["column"] for family in families if np.isnan(self.x[family["column"]])]
        n_classes = len(discrete[0]["counts"]) if discrete else len(self.groups[0].centre[0]) if self.groups else 1
        terms = []
        for at in product(*(range(max(1, len(self.columns[v]["levels"]))) for v in summed)):
            codes = self.x.copy()
            codes[summed] = at
            parts = [self.categorical(family, codes) for family in families]
            terms.append(np.zeros(n_classes) + sum(parts) + self.integrated(nodes, codes))
        return log_sum(terms)

    def integrated(self, cluster, codes):
        """Densities of the observed ones of these features, parents first, given a level of every discrete parent."""
        seen = [v for v in cluster if not np.isnan(self.x[v])]
        whole = [v for v in seen if not np.isnan(self.x[self.parents[v]]).any()]
        total = sum((self.direct(self.nodes[v], codes) for v in whole), 0.0)
        if len(whole) == len(seen):
            return total
        given = {v: set(parents) for v, parents in self.parents.items() if v in cluster}
        for u in (u for u in reversed(cluster) if u not in seen):  # reverse arcs until it has no children
            gained = set(given[u])
            for v in cluster:
                if v in seen and u in given[v]:
                    own = given[v] - {u}
                    given[v] = own | gained
                    gained |= own | {v}
        mean, scale = self.implied(cluster, codes)
        place = {v: i for i, v in enumerate(cluster)}
        for v in (v for v in seen if v not in whole):
            node, found = self.nodes[v], []
            group, cell = self.groups[node["group"]], self.cell(node, codes)
            members = [u for u in cluster if u in given[v]] + [v]
            at = [place[u] for u in members]
            for label in range(len(mean)):
                away = np.array([self.standard(u) for u in members]) - mean[label, at]
                parts = conditional(scale[label][np.ix_(at, at)], away)
                behind = 2 * group.of_cell(group.shape, cell, node["own"])[label] if group.averages else 1.0
                found.append(group.log_density(cell, label, node["own"], *parts, len(given[v]), behind))
            total = total + np.array(found)
        return total

    def standard(self, v):
        return self.groups[self.nodes[v]["group"]].standard(self.x, [self.nodes[v]["own"]])[0]

    def units(self, v):
        group = self.model["groups"][self.nodes[v]["group"]]
        return group["origin"][self.nodes[v]["own"]], group["unit"][self.nodes[v]["own"]]

    def implied(self, cluster, codes):
        """Mean and scale of all features, each in its own units, from the regressions on their parents."""
        n_classes, place = len(self.groups[0].centre[0]), {v: i for i, v in enumerate(cluster)}
        mean, joint = np.zeros((n_classes, len(cluster))), np.zeros((n_classes, len(cluster), len(cluster)))
        for i, v in enumerate(cluster):
            node = self.nodes[v]
            group, cell, own, given = self.groups[node["group"]], self.cell(node, codes), node["own"], node["given"]
            before = [place[u] for u in self.parents[v]]
            origin, unit = np.array([self.units(u) for u in self.parents[v]]).reshape(-1, 2).T
            theirs = np.array(group.group["unit"])[given]
            for label in range(n_classes):
                scale, centre = group.scale(cell, label, [*given, own]), group.centre[cell, label]
                behind = 2 * group.of_cell(group.shape, cell, own)[label] if group.averages else 1.0
                slopes = np.linalg.solve(scale[:-1, :-1], scale[:-1, -1]) * unit / theirs
                spread = conditional(scale, np.zeros(len(scale)))[1]
                centred = (centre[given] * theirs + np.array(group.group["origin"])[given] - origin) / unit
                mean[label, i] = centre[own] + slopes @ (mean[label, before] - centred)
                joint[label, i, :i] = joint[label, :i, i] = slopes @ joint[label][before, :i]
                joint[label, i, i] = spread / behind + slopes @ joint[label][before, i]
        return mean, joint
