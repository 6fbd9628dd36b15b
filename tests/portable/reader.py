"""A reader of portable model files that shares no code with the package: docs/portable.md, taken literally.

Arrays are (samples, classes) and more axes; models are functions of a description and numbers (samples, columns).
"""

import re
import string
from itertools import product

import numpy as np
from scipy.special import gammaln

FARTHEST = 1e140  # in standard units: greater distances count as this one
DIGITS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
TRUTHS = {spell(str(truth)): str(int(truth)) for truth in (False, True) for spell in (str.lower, str.upper, str.title)}


def canonical(level):
    """What the spellings of one level have in common."""
    text = TRUTHS.get(str(level), str(level))
    whole = re.fullmatch(r"(-?(?:0|[1-9][0-9]{0,99}))(?:\.0*)?", text)
    return str(int(whole[1])) if whole else text


def log_sum(terms, axis=0):
    return np.logaddexp.reduce(terms, axis=axis)


def logs(values):
    """Null is minus infinity."""
    return np.where(np.array(values, object) == None, -np.inf, np.array(values, float))  # noqa: E711


def whole(part, shared):
    """A document in which lists are in the place of packed ones, and parts that it holds once wherever they belong."""
    if isinstance(part, list):
        return [whole(each, shared) for each in part]
    if not isinstance(part, dict):
        return part
    if "shared" in part:
        return whole(shared[part["shared"]], shared)
    if "packed" in part:
        digits = np.array([DIGITS.index(sign) for sign in part["packed"]]).reshape(-1, part["digits"])
        numbers = part["least"] + part["step"] * (digits @ 64 ** np.arange(part["digits"])[::-1])
        return numbers.reshape(part["shape"]).tolist()
    return {key: whole(each, shared) for key, each in part.items()}


class Reader:
    def __init__(self, document):
        document = whole({key: part for key, part in document.items() if key != "shared"}, document.get("shared"))
        assert (document["format"], document["version"]) == ("cgnlearn-portable", 1)
        self.document, self.columns, self.models = document, document["columns"], document["models"]
        self.n_classes, self.prior = len(document["classes"]), np.array(document["class_log_prior"])
        self.continuous = [i for i, column in enumerate(self.columns) if column["kind"] == "continuous"]
        self.n_levels = [max(1, len(column.get("levels", ()))) for column in self.columns]

    def read(self, rows):
        """A number for each cell: its value, or the position of its level; NaN if it is missing or unknown."""
        return np.array([[self.number(*each) for each in zip(self.columns, row, strict=True)] for row in rows])

    def number(self, column, cell):
        if column.get("fixed"):
            return 0.0
        if cell is None or cell != cell:
            return np.nan
        if column["kind"] == "continuous":
            return float(cell)
        levels = [canonical(level) for level in column["levels"]]
        assert canonical(cell) in levels or self.document["handle_unknown"] == "missing", "unknown level"
        return float(levels.index(canonical(cell))) if canonical(cell) in levels else np.nan

    def log_proba(self, rows):
        x, found, power = self.read(rows), [], self.document["power"]
        for member in self.document["members"]:
            joint = np.full((len(x), self.n_classes), -np.inf)
            able = self.able(x, [i for each in member["likelihoods"] for i in each["models"]])
            parts = [np.tensordot(each["powers"], self.likelihood(each["models"], x[able]), 1)
                     for each in member["likelihoods"]]  # fmt: skip
            joint[able] = sum(parts, self.prior)
            joint[able] += np.log(member["weight"]) - log_sum(joint[able], 1)[:, None]
            found.append(joint)
        mixed = log_sum(found)
        raised = power * (mixed - log_sum(mixed, 1)[:, None]) + (1 - power) * self.prior
        return raised - log_sum(raised, 1)[:, None]

    def log_density(self, rows):
        x, found = self.read(rows), []
        for each in self.document["density"]:
            jacobian = self.transformed(x, self.models[each["models"][0]]["transform"])[1][:, None]
            found += list(np.log(each["weights"])[:, None, None] + jacobian + self.likelihood(each["models"], x))
        return log_sum(log_sum(found) + self.prior, 1)

    def typicality(self, rows):
        table = self.document["typicality"]
        return np.interp(self.log_density(rows), table["log_density"], table["typicality"])

    def able(self, x, which):
        return ~np.isnan(x).any(axis=1) | (not any(self.models[i].get("needs_complete") for i in which))

    def likelihood(self, which, x):
        """ln p(x | class), up to a constant of the sample: (settings, samples, classes)."""
        each = [self.models[i] for i in which]
        return sum(getattr(self, one["kind"])(one, self.transformed(x, one["transform"])[0]) for one in each)

    def transformed(self, x, name):
        """The samples, and their log Jacobians."""
        transform, at = self.document["transforms"][name], self.continuous
        x, values, jacobian = x.copy(), x[:, at], np.zeros(len(x))
        if "edges" in transform:
            bins = [(np.array(edges) <= values[:, [i]]).sum(axis=1) for i, edges in enumerate(transform["edges"])]
            x[:, at] = np.where(np.isnan(values), np.nan, np.array(bins, float).T)
        elif "power" in transform:
            unit, power = np.array(transform["unit"]), np.array(transform["power"])
            away = np.clip((values - transform["origin"]) / unit, -FARTHEST, FARTHEST)
            length, exponent = np.log1p(abs(away)), np.where(away >= 0, power, 2 - power)
            flat = abs(exponent) < 1e-8
            curved = np.expm1(np.minimum(exponent * length, 300.0)) / np.where(flat, 1.0, exponent)
            x[:, at] = np.sign(away) * np.where(flat, length, curved)
            jacobian = np.nansum((power - 1) * np.sign(away) * length - np.log(unit), axis=1)
        return x, jacobian

    def cell(self, parents, codes):
        """The number of a combination of levels, the last of which varies fastest."""
        number = np.zeros(len(codes), int)
        for v in parents:
            number = number * self.n_levels[v] + codes[:, v].astype(int)
        return number

    # ---- models: (settings, samples, classes)

    def network(self, model, x):
        return np.array([self.one_network(model, setting, x) for setting in model["settings"]])

    def selection(self, model, x):
        found = np.zeros((len(model["log_in"]), len(x), self.n_classes))
        for i, (log_in, log_out) in enumerate(zip(logs(model["log_in"]), logs(model["log_out"]), strict=True)):
            own, free = (self.families(model[kind], model[kind]["settings"][i], x) for kind in ("own", "free"))
            for (v, _, density), (_, _, common) in zip(own, free, strict=True):
                mixed = np.logaddexp(log_in[v] + density, log_out[v] + common)
                found[i] += np.where(np.isnan(x[:, [v]]), 0.0, mixed)
        return found

    def forests(self, model, x):
        given, alone = (self.families(model[k], model["given"]["settings"][0], x) for k in ("given", "alone"))
        alone, place = {v: density for v, _, density in alone}, {v: i for i, v in enumerate(model["nodes"])}
        weights = logs(model["log_weights"])[..., None, None] + np.zeros((len(x), self.n_classes))
        ratios = np.zeros(weights.shape)
        for v, (u,), density in given:
            if v in place and u in place:
                ratios[1 + place[u], place[v]] = density - alone[v]
                if u in self.continuous:
                    ratios[1 + place[v], place[u]] = density - alone[v]
        return (forest_sum(weights + ratios) - forest_sum(weights) + sum(alone.values()))[None]

    def orders(self, model, x):
        groups = [Group(model["free"], 0.0, True), Group(model["own"], 1.0, True), Group(model["own"], 0.0, True)]
        total, cell = np.zeros((len(x), self.n_classes)), np.zeros(len(x), int)
        for v in (v for v in range(len(model["own"]["columns"])) if v not in model["absent"]):
            before = [[u for u in range(v - j, v) if u not in model["absent"]] for j in range(v + 1)]
            terms = [
                weight + np.zeros(total.shape) + group.density(cell, v, before[j], x)
                for group, log_weight in zip(groups, model["log_weight"], strict=True)
                for j, weight in enumerate(log_weight[v])
                if weight is not None
            ]
            total += log_sum(terms)
        return total[None]

    def rotation(self, model, x):
        basis, cell, found = np.array(model["basis"]), self.cell(model["parents"], x), []
        size, rank = basis.shape
        away = np.clip((x[:, model["columns"]] - model["origin"]) / model["unit"], -FARTHEST, FARTHEST)
        inside = away @ basis
        outside = np.square(away - inside @ basis.T).sum(axis=1)[:, None]
        for setting in model["settings"]:
            shape, least, centre = (np.array(setting[name])[cell] for name in ("shape", "leverage", "centre"))
            scale = np.array(setting["scale"])[cell][..., places(rank, {"reach": rank - 1})]
            residual = (inside - setting["origin"])[:, None] - centre
            distance = np.einsum("nci,nci->nc", residual, np.linalg.solve(scale, residual[..., None])[..., 0])
            whole = least + outside / setting["multiple"] + distance
            log_det = np.linalg.slogdet(scale)[1] + (size - rank) * np.log(setting["multiple"])
            constant = gammaln(shape + size / 2) - gammaln(shape) - (size * np.log(np.pi) + log_det) / 2
            constant = constant - np.log(model["unit"]).sum()
            found.append(constant + shape * np.log(least) - (shape + size / 2) * np.log(whole))
        return np.array(found)

    def regression(self, model, x):
        factors = np.empty((len(x), len(model["factors"])))
        for i, (v, kind, first, *rest) in enumerate(model["factors"]):
            if kind == "value":
                least, most = -FARTHEST if rest[1] is None else rest[1], FARTHEST if rest[2] is None else rest[2]
                factors[:, i] = np.clip((x[:, v] - first) / rest[0], least, most)
            else:
                holds = x[:, v] == first if kind == "level" else x[:, v] >= first
                factors[:, i] = np.where(np.isnan(x[:, v]), np.nan, holds)
        terms = np.array([factors[:, term].prod(axis=1) for term in model["terms"]]).reshape(-1, len(x)).T
        centred = np.nan_to_num(terms - model["centre"])
        return (centred @ np.array(model["slopes"]).reshape(-1, self.n_classes) + model["intercept"])[None]

    def aode(self, model, x):
        starts, n = np.cumsum([0, *model["levels"]]), sum(model["levels"])
        counts = np.zeros((self.n_classes, n, n))
        counts[:, *np.triu_indices(n)] = model["counts"]
        counts = np.maximum(counts, counts.swapaxes(1, 2))
        owner, seen = np.repeat(np.arange(len(starts) - 1), model["levels"]), ~np.isnan(x)
        at, own = starts[:-1] + np.nan_to_num(x).astype(int), np.einsum("cii->ci", counts)
        together, total = np.add.reduceat(counts, starts[:-1], 2), np.add.reduceat(own, starts[:-1], 1)
        found = []
        for setting in model["settings"]:
            backoff, d = setting["backoff"], setting["dirichlet"]
            alone = (own + d) / (total + d * np.array(model["levels"]))[:, owner]
            given = np.log((counts + backoff * alone[:, None]) / (together + backoff)[:, :, owner])
            pairs = given[:, at[:, :, None], at[:, None]] * (seen[:, None] & ~np.eye(len(starts) - 1, dtype=bool))
            of_parents = np.where(seen, np.log(alone[:, at]) + pairs.sum(axis=3), -np.inf)
            mean = log_sum(of_parents, 2).T - np.log(np.maximum(seen.sum(axis=1), 1))[:, None]
            found.append(np.where(seen.any(axis=1)[:, None], mean, 0.0))
        return np.array(found)

    def indicators(self, model, x):
        mass = np.array(model["counts"]) + model["dirichlet"]  # (columns, classes, states)
        shares = np.log(mass / mass.sum(axis=2, keepdims=True))
        states = zip(shares, np.isnan(x[:, model["columns"]]).T.astype(int), strict=True)
        return sum((share[:, state].T for share, state in states), np.zeros((len(x), self.n_classes)))[None]

    # ---- networks

    def families(self, model, setting, x):
        """The column of each family, its parents and its log densities, which mean nothing where one is missing."""
        (groups, discrete), codes = self.parts(model, setting), np.nan_to_num(x)
        for family in discrete:
            yield family["column"], family["parents"], self.categorical(family, codes)
        for node in model["continuous"]:
            group = groups[node["group"]]
            density = group.density(self.cell(group.parents, codes), node["own"], node["given"], codes)
            yield node["column"], [*group.parents, *group.columns[node["given"]]], density

    def parts(self, model, setting):
        """Groups, and families of discrete features with pseudo-counts."""
        groups = [Group(group, setting["sharing"], model["estimation"] == "bayes") for group in model["groups"]]
        mass = (np.array(family["counts"]) + setting["dirichlet"] for family in model["discrete"])
        return groups, [family | {"mass": own} for family, own in zip(model["discrete"], mass, strict=True)]

    def categorical(self, family, codes):
        mass = family["mass"][:, self.cell(family["parents"], codes)]
        with np.errstate(divide="ignore"):
            shares = np.log(mass / mass.sum(axis=2, keepdims=True))
        return shares[:, np.arange(len(codes)), codes[:, family["column"]].astype(int)].T

    def one_network(self, model, setting, x):
        """Samples with the same missing values together."""
        found, parts = np.zeros((len(x), self.n_classes)), self.parts(model, setting)
        patterns, which = np.unique(np.isnan(x), axis=0, return_inverse=True)
        for i, missing in enumerate(patterns):
            found[which.ravel() == i] = self.summed(model, *parts, x[which.ravel() == i], missing)
        return found

    def summed(self, model, groups, discrete, x, missing):
        """Sum over the levels of missing discrete features; continuous ones are integrated out."""
        parents = {family["column"]: family["parents"] for family in discrete}
        for node in model["continuous"]:
            group = groups[node["group"]]
            parents[node["column"]] = [*group.parents, *group.columns[node["given"]]]
        needed = set(np.flatnonzero(~missing))
        for v in reversed(parents):  # children before parents
            needed |= set(parents[v]) if v in needed else set()
        families = [family for family in discrete if family["column"] in needed]
        nodes = {node["column"]: (node, groups[node["group"]]) for node in model["continuous"]}
        nodes = {v: own for v, own in nodes.items() if v in needed}
        summed, terms = [family["column"] for family in families if missing[family["column"]]], []
        for at in product(*(range(self.n_levels[v]) for v in summed)):
            codes = x.copy()
            codes[:, summed] = at
            parts = [self.categorical(family, codes) for family in families]
            terms.append(sum(parts, np.zeros((len(x), self.n_classes))) + self.integrated(nodes, codes, missing))
        return log_sum(terms)

    def integrated(self, nodes, codes, missing):
        """Densities of the observed ones of these features, parents first, given a level of every discrete parent."""
        given = {v: set(group.columns[node["given"]]) for v, (node, group) in nodes.items()}
        cells = {v: self.cell(group.parents, codes) for v, (_, group) in nodes.items()}
        seen = [v for v in nodes if not missing[v]]
        whole = [v for v in seen if not missing[[*given[v]]].any()]
        own = (nodes[v][1].density(cells[v], nodes[v][0]["own"], nodes[v][0]["given"], codes) for v in whole)
        total = sum(own, np.zeros((len(codes), self.n_classes)))
        if len(whole) == len(seen):
            return total
        for u in (u for u in reversed(nodes) if missing[u]):  # reverse arcs until it has no children
            gained = set(given[u])
            for v in (v for v in seen if u in given[v]):
                others = given[v] - {u}
                given[v] = others | gained
                gained |= others | {v}
        mean, joint, place = *self.implied(nodes, cells), {v: i for i, v in enumerate(nodes)}
        away = np.stack([group.standard(codes, node["own"]) for node, group in nodes.values()], axis=1)[:, None] - mean
        for v in (v for v in seen if v not in whole):
            (node, group), at = nodes[v], [*(place[u] for u in nodes if u in given[v]), place[v]]
            parts, behind = conditional(joint[..., at, :][..., at], away[..., at]), group.behind(cells[v], node["own"])
            total += group.log_density(cells[v], node["own"], *parts[:3], len(given[v]), behind)
        return total

    def implied(self, nodes, cells):
        """Mean and scale of all features, each in its own units, from the regressions on their parents."""
        n, m, place = len(next(iter(cells.values()))), len(nodes), {v: i for i, v in enumerate(nodes)}
        mean, joint = np.zeros((n, self.n_classes, m)), np.zeros((n, self.n_classes, m, m))
        for i, (v, (node, group)) in enumerate(nodes.items()):
            before, centre = [place[u] for u in group.columns[node["given"]]], group.centre[cells[v]][..., node["own"]]
            slopes, spread, moved = group.in_units_of(nodes, cells[v], node)
            mean[..., i] = centre + (slopes * (mean[..., before] - moved)).sum(axis=-1)
            joint[..., i, :i] = joint[..., :i, i] = (slopes[..., None] * joint[..., before, :i]).sum(axis=-2)
            joint[..., i, i] = spread / group.behind(cells[v], node["own"]) + (slopes * joint[..., i, before]).sum(
                axis=-1
            )
        return mean, joint


def forest_sum(log_weights):
    """ln of the sum over all forests: parents are rows, the first of which stands for no parent."""
    weights, total = log_weights.copy(), 0.0
    for v in range(weights.shape[1] - 1, -1, -1):
        into = log_sum(weights[: v + 1, v])
        for a, u in product(range(v), range(v + 1)):
            if u != a + 1:
                weights[u, a] = np.logaddexp(weights[u, a], weights[u, v] + weights[v + 1, a] - into)
        total = total + into
    return total


def places(n, group):
    """Where the entries of a symmetric matrix are listed; of pairs that are not, which are not needed, at 0."""
    first, second = group.get("pairs") or np.triu_indices(n, 1)
    if "reach" in group:
        first, second = (part[np.subtract(second, first) <= group["reach"]] for part in (first, second))
    found = np.diag(np.arange(n))
    found[first, second] = found[second, first] = n + np.arange(len(first))
    return found


def conditional(scale, residual):
    """Residual and spread of the last member given the others, the squared distance of these, and the slopes."""
    both = np.stack([scale[..., :-1, -1], residual[..., :-1]], axis=-1)
    slopes, white = np.moveaxis(np.linalg.solve(scale[..., :-1, :-1], both), -1, 0)
    spread = scale[..., -1, -1] - (slopes * scale[..., :-1, -1]).sum(axis=-1)
    distance = (white * residual[..., :-1]).sum(axis=-1)
    return residual[..., -1] - (slopes * residual[..., :-1]).sum(axis=-1), spread, distance, slopes


class Group:
    """Continuous features with the same discrete parents, under a sharing; ``cell`` has a number for each sample."""

    def __init__(self, group, sharing, averages):
        self.averages, self.parents, self.columns = averages, group["parents"], np.array(group["columns"], int)
        self.origin, self.unit, self.centre = (np.array(group[name]) for name in ("origin", "unit", "centre"))
        self.leverage, self.places = np.array(group["leverage"]), places(len(self.columns), group)
        none, packed = np.zeros(self.centre.shape), np.array(group["scale"])
        self.shift, own_spread = (np.array(group.get(name, none)) for name in ("shift", "own_spread"))
        prior_scale = np.zeros(packed.shape[-1])
        prior_scale[: len(self.columns)] = group.get("prior_scale", 0.0)
        self.packed, self.shape, self.own_spread = (
            own + sharing * ((own - prior).sum(axis=1, keepdims=True) - (own - prior))
            for own, prior in (
                (packed, prior_scale), (np.array(group["shape"]), group.get("prior_shape", 0.0)), (own_spread, 0.0),
            )
        )  # fmt: skip

    def of(self, part, cell, own):
        return part[cell][..., own] if part.ndim == 3 else part[cell]

    def behind(self, cell, own):
        return 2 * self.of(self.shape, cell, own) if self.averages else 1.0

    def standard(self, x, members):
        away = (x[:, self.columns[members]] - self.origin[members]) / self.unit[members]
        return np.clip(away, -FARTHEST, FARTHEST)

    def scale(self, cell, members):
        return self.packed[cell][..., self.places[np.ix_(members, members)]]

    def density(self, cell, own, given, x):
        """ln p(own | given)."""
        members = [*given, own]
        parts = conditional(
            self.scale(cell, members), self.standard(x, members)[:, None] - self.centre[cell][..., members]
        )
        return self.log_density(cell, own, *parts[:3], len(given), 1.0)

    def in_units_of(self, nodes, cell, node):
        """Slopes on the parents and their centre, in the units of the parents' own families, and the spread."""
        given, scale = node["given"], self.scale(cell, [*node["given"], node["own"]])
        _, spread, _, slopes = conditional(scale, np.zeros(scale.shape[:-1]))
        theirs = [
            (nodes[u][1].origin[nodes[u][0]["own"]], nodes[u][1].unit[nodes[u][0]["own"]]) for u in self.columns[given]
        ]
        origin, unit = np.array(theirs).reshape(-1, 2).T
        centre = self.centre[cell][..., given] * self.unit[given] + self.origin[given]
        return slopes * unit / self.unit[given], spread, (centre - origin) / unit

    def log_density(self, cell, own, residual, spread, distance, n_given, behind):
        """Of a residual; spread and squared distance of the parents are per unit of ``behind``."""
        residual = residual + self.shift[cell][..., own]
        spread = spread * behind + self.own_spread[cell][..., own]
        if not self.averages:
            return -0.5 * (np.log(2 * np.pi * spread) + residual**2 / spread) - np.log(self.unit[own])
        shape = self.of(self.shape, cell, own) + n_given / 2
        spread = spread * (self.of(self.leverage, cell, own) + distance / behind)
        constant = gammaln(shape + 0.5) - gammaln(shape) - 0.5 * np.log(np.pi * spread) - np.log(self.unit[own])
        return constant - (shape + 0.5) * np.log1p(residual**2 / spread)
