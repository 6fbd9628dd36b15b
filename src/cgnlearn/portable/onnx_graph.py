"""A portable description as an ONNX graph of standard operators, for samples without missing values.

All numbers are doubles. A missing value, or a level that training did not have, gives NaN in every output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln

from cgnlearn.data.arrays import Floats
from cgnlearn.portable.networks import Description
from cgnlearn.portable.onnx_families import Families, shared, square

OPSET = 17  # of the operators, which are the same in all later versions
FARTHEST = 1e140  # in standard units: greater distances count as this one
NEVER = -1e300  # instead of the logarithm of 0
UNABLE = {"forests": "tan_average", "orders": "band_average"}  # models without a graph, by kind

Name = str  # of a tensor
AddNode = Callable[..., None]  # operator, names of inputs, name of the output, options
AddConstant = Callable[[str, Any], None]


class OnnxGraph:
    """Operators that are added one after the other; every method returns the name of its result."""

    def __init__(
        self, description: Description, add_node: AddNode, add_constant: AddConstant, prefix: str = ""
    ) -> None:
        self.description, self._add_node, self._add_constant = description, add_node, add_constant
        self.prefix, self._count = prefix, 0
        self.columns: list[Description] = description["columns"]
        self.n_classes = len(description["classes"])
        self.sizes = [max(1, len(column.get("levels", ()))) for column in self.columns]
        self._found: dict[Any, Name] = {}

    def _new(self) -> Name:
        self._count += 1
        return f"{self.prefix}t{self._count}"

    def constant(self, value: Any) -> Name:
        """An array of doubles, or of whole numbers if it holds such."""
        array = np.asarray(value)
        array = array.astype(
            np.int64 if array.dtype.kind in "iu" else array.dtype if array.dtype.kind in "Ub" else float
        )
        name = self._new()
        self._add_constant(name, array)
        return name

    def op(self, kind: str, *inputs: Any, **options: Any) -> Name:
        """Apply an operator; inputs that are no names are constants."""
        name = self._new()
        names = [part if isinstance(part, str) else self.constant(part) for part in inputs]
        self._add_node(kind, names, name, **options)
        return name

    def as_double(self, tensor: Name) -> Name:
        """Truths, whole numbers and floats as doubles."""
        return self.op("Cast", tensor, to=11)

    def as_whole(self, tensor: Name) -> Name:
        """Doubles as whole numbers."""
        return self.op("Cast", tensor, to=7)

    def take(self, tensor: Name, columns: Sequence[int]) -> Name:
        """Some columns: (samples, columns)."""
        return self.op("Gather", tensor, np.array(columns, np.int64), axis=1)

    def row_sum(self, tensor: Name) -> Name:
        """Sum over columns: (samples, 1)."""
        return self.op("ReduceSum", tensor, np.array([1]), keepdims=1)

    def log_sum(self, tensors: Sequence[Name]) -> Name:
        """Elementwise ln of the sum of the exponentials."""
        highest = tensors[0] if len(tensors) == 1 else self.op("Max", *tensors)
        parts = [self.op("Exp", self.op("Sub", tensor, highest)) for tensor in tensors]
        return self.op("Add", highest, self.op("Log", self.op("Sum", *parts)))

    def normalised(self, logs: Name) -> Name:
        """Log probabilities of classes."""
        return self.op("LogSoftmax", logs, axis=1)

    def clipped(self, tensor: Name, least: Any = -FARTHEST, most: Any = FARTHEST) -> Name:
        """Values between limits, which are numbers or a row of them."""
        return self.op("Min", self.op("Max", tensor, np.asarray(least, float)), np.asarray(most, float))

    # ---- the whole

    def predictions(self, x: Name) -> Name:
        """Log probabilities of the classes from values and positions of levels: (samples, classes)."""
        missing = self.row_sum(self.op("Mul", x, 0.0))  # NaN if one is
        x = self.op("Where", self.op("IsNaN", x), 0.0, x)
        prior = np.array([self.description["class_log_prior"]], float)
        members = [self._member(member, x, prior) for member in self.description["members"]]
        mixed = self.normalised(self.log_sum(members))
        power = float(self.description["power"])
        if power != 1:
            mixed = self.normalised(self.op("Add", self.op("Mul", mixed, power), (1 - power) * prior))
        return self.op("Add", mixed, missing)

    def _member(self, member: Description, x: Name, prior: Floats) -> Name:
        terms = [
            self.op("Mul", logs, float(power))
            for each in member["likelihoods"]
            for number in each["models"]
            for logs, power in self._settings(number, x, each["powers"])
        ]
        return self.op("Add", self.normalised(self.op("Sum", *terms, prior)), float(np.log(member["weight"])))

    def _settings(self, number: int, x: Name, powers: Sequence[float]) -> list[tuple[Name, float]]:
        """Log likelihoods of the settings of a model, with their powers."""
        model = self.description["models"][number]
        if model["kind"] in UNABLE:
            raise ValueError(
                f"an average over {model['kind']} ({UNABLE[model['kind']]}) has no ONNX graph: export the model to "
                ".json, .html or .R, or fit one without it"
            )
        x = self._transformed(x, model["transform"])
        found = getattr(self, f"_{model['kind']}")(model, x)
        return list(zip(found, powers if len(found) > 1 else [sum(powers)], strict=True))

    def _transformed(self, x: Name, name: str) -> Name:
        if (x, name) in self._found:
            return self._found[x, name]
        transform, n = self.description["transforms"][name], len(self.columns)
        at = [i for i, column in enumerate(self.columns) if column["kind"] == "continuous"]
        is_continuous = np.isin(np.arange(n), at)[None]
        moved = x
        if "power" in transform and at:
            origin, unit, power = np.zeros(n), np.ones(n), np.ones(n)
            for row, values in ((origin, "origin"), (unit, "unit"), (power, "power")):
                row[at] = transform[values]
            away = self.clipped(self.op("Div", self.op("Sub", x, origin[None]), unit[None]))
            length = self.op("Log", self.op("Add", self.op("Abs", away), 1.0))
            exponents = [np.where(np.abs(each) < 1e-8, 1e-8, each)[None] for each in (power, 2 - power)]
            exponent = self.op("Where", self.op("Less", away, 0.0), exponents[1], exponents[0])
            grown = self.op("Exp", self.op("Min", self.op("Mul", exponent, length), 300.0))
            value = self.op("Div", self.op("Sub", grown, 1.0), exponent)
            moved = self.op("Where", is_continuous, self.op("Mul", self.op("Sign", away), value), x)
        elif "edges" in transform and at:
            edges = np.full((1, n, max(1, max(map(len, transform["edges"])))), np.inf)
            for column, of_column in zip(at, transform["edges"], strict=True):
                edges[0, column, : len(of_column)] = of_column
            reached = self.op("Not", self.op("Less", self.op("Unsqueeze", x, np.array([2])), edges))
            counted = self.op("ReduceSum", self.as_double(reached), np.array([2]), keepdims=0)
            moved = self.op("Where", is_continuous, counted, x)
        self._found[x, name] = moved
        return moved

    # ---- networks

    def _network(self, model: Description, x: Name) -> list[Name]:
        found = []
        for setting in model["settings"]:
            parts = [self._categorical(family, setting["dirichlet"], x)[0] for family in model["discrete"]]
            parts += [self._classes(by_class) for by_class, _ in self._densities(model, setting["sharing"], x)]
            found.append(self.op("Sum", *parts, np.zeros((1, self.n_classes))))
        return found

    def _classes(self, by_class: Sequence[Name]) -> Name:
        """Sums over features, by class: (samples, classes)."""
        return self.op("Concat", *(self.row_sum(each) for each in by_class), axis=1)

    def _cell(self, parents: Sequence[int], x: Name) -> Name:
        """The number of the configuration of discrete columns: (samples, 1)."""
        strides = np.cumprod([1, *(self.sizes[v] for v in reversed(parents))])[:-1][::-1]
        return self.op("MatMul", self.take(x, parents), np.array(strides, float)[:, None])

    def _categorical(self, family: Description, dirichlet: float, x: Name) -> tuple[Name, int]:
        mass = np.array(family["counts"], float) + dirichlet  # (classes, configurations, levels)
        logs = np.log(mass / mass.sum(axis=-1, keepdims=True)).reshape(len(mass), -1).T
        cell = self._cell([*family["parents"], family["column"]], x)
        return self.op("Gather", logs, self.op("Squeeze", self.as_whole(cell), np.array([1])), axis=0), family["column"]

    def _densities(self, model: Description, sharing: float, x: Name) -> list[tuple[list[Name], list[int]]]:
        """For each group log densities of its families by class, each (samples, families), and their columns."""
        found = []
        for number, group in enumerate(model["groups"]):
            nodes = [node for node in model["continuous"] if node["group"] == number]
            if not nodes:
                continue
            values = self.op("Sub", self.take(x, group["columns"]), np.array([group["origin"]], float))
            values = self.clipped(self.op("Div", values, np.array([group["unit"]], float)))
            parts = shared(group, sharing, model["estimation"] == "bayes")
            cells = range(len(group["centre"]))
            of_cells = [
                [Families.of(group, parts, nodes, cell, label) for label in range(len(group["centre"][0]))]
                for cell in cells
            ]
            by_class = [[self._density(each, values) for each in of_cell] for of_cell in of_cells]
            if group["parents"]:
                cell = self._cell(group["parents"], x)
                here = [self.op("Equal", self.as_whole(cell), np.array([[number]])) for number in cells]
                by_class = [
                    [self.op("Where", is_here, each, 0.0) for each in of_cell]
                    for is_here, of_cell in zip(here, by_class, strict=True)
                ]
            summed = [self.op("Sum", *of_class) for of_class in zip(*by_class, strict=True)]
            found.append((summed, [node["column"] for node in nodes]))
        return found

    def _density(self, families: Families, values: Name) -> Name:
        white = self.op("MatMul", self.op("Sub", values, families.centre), families.whitening)
        residual = self.op("Add", self.op("MatMul", white, families.own), families.shift)
        square = self.op("Mul", residual, residual)
        if families.shape is None:
            return self.op("Add", self.op("Mul", self.op("Div", square, families.spread), -0.5), families.constant)
        distance = self.op("MatMul", self.op("Mul", white, white), families.before)
        spread = self.op("Mul", self.op("Add", distance, families.leverage), families.spread)
        tail = self.op("Log", self.op("Add", self.op("Div", square, spread), 1.0))
        half = self.op("Mul", self.op("Log", spread), -0.5)
        return self.op("Sum", self.op("Mul", tail, -(families.shape + 0.5)), half, families.constant)

    def _selection(self, model: Description, x: Name) -> list[Name]:
        found = []
        for i, (own, free) in enumerate(zip(model["own"]["settings"], model["free"]["settings"], strict=True)):
            inside, outside = (
                np.array([NEVER if each is None else each for each in model[kind][i]], float)
                for kind in ("log_in", "log_out")
            )
            parts: list[Any] = [np.zeros((1, self.n_classes))]
            for family, other in zip(model["own"]["discrete"], model["free"]["discrete"], strict=True):
                v = family["column"]
                logs = [
                    self.op("Add", self._categorical(each, setting["dirichlet"], x)[0], weight)
                    for each, setting, weight in ((family, own, inside[v]), (other, free, outside[v]))
                ]
                parts.append(self.log_sum([logs[0], self.op("Expand", logs[1], self.op("Shape", logs[0]))]))
            groups = zip(
                self._densities(model["own"], own["sharing"], x), self._densities(model["free"], 0.0, x), strict=True
            )
            for (by_class, columns), (common, _) in groups:
                other = self.op("Add", common[0], outside[columns][None])
                mixed = [self.log_sum([self.op("Add", each, inside[columns][None]), other]) for each in by_class]
                parts.append(self._classes(mixed))
            found.append(self.op("Sum", *parts))
        return found

    def _rotation(self, model: Description, x: Name) -> list[Name]:
        if model["parents"]:
            raise ValueError(
                "ONNX export of a rotation needs continuous features alone: export it to .json, .html or .R"
            )
        basis, n = np.array(model["basis"], float), len(model["columns"])
        values = self.op("Sub", self.take(x, model["columns"]), np.array([model["origin"]], float))
        values = self.clipped(self.op("Div", values, np.array([model["unit"]], float)))
        inside = self.op("MatMul", values, basis)
        rest = self.op("Sub", values, self.op("MatMul", inside, basis.T))
        outside, found = self.row_sum(self.op("Mul", rest, rest)), []
        for setting in model["settings"]:
            by_class = []
            for label in range(self.n_classes):
                packed, size = np.array(setting["scale"][0][label], float), basis.shape[1]
                factor = np.linalg.cholesky(square(packed, size, {"reach": size - 1}, np.arange(size)))
                centre = np.array(setting["origin"], float) + setting["centre"][0][label]
                white = self.op("MatMul", self.op("Sub", inside, centre[None]), np.linalg.inv(factor).T)
                shape, least = setting["shape"][0][label], setting["leverage"][0][label]
                distance = self.row_sum(self.op("Mul", white, white))
                whole = self.op("Sum", distance, self.op("Div", outside, float(setting["multiple"])), float(least))
                log_det = 2 * np.log(np.diag(factor)).sum() + (n - size) * np.log(setting["multiple"])
                constant = gammaln(shape + n / 2) - gammaln(shape) - n / 2 * np.log(np.pi) - log_det / 2
                constant += shape * np.log(least) - np.log(model["unit"]).sum()
                by_class.append(self.op("Add", self.op("Mul", self.op("Log", whole), -(shape + n / 2)), constant))
            found.append(self.op("Concat", *by_class, axis=1))
        return found

    # ---- the others

    def _regression(self, model: Description, x: Name) -> list[Name]:
        if not model["terms"]:
            return [self.op("Add", self.op("Mul", self.take(x, [0]), 0.0), np.array([model["intercept"]], float))]
        order: list[int] = []
        parts = []
        for kind in ("value", "level", "step"):
            at = [i for i, factor in enumerate(model["factors"]) if factor[1] == kind]
            if not at:
                continue
            order += at
            columns = self.take(x, [model["factors"][i][0] for i in at])
            first = np.array([[model["factors"][i][2] for i in at]], float)
            if kind == "value":
                unit = np.array([[model["factors"][i][3] for i in at]], float)
                ends = (
                    [FARTHEST * sign if (end := model["factors"][i][k]) is None else end for i in at]
                    for k, sign in ((4, -1), (5, 1))
                )
                parts.append(self.clipped(self.op("Div", self.op("Sub", columns, first), unit), *([e] for e in ends)))
            else:
                kept = self.op("Equal", columns, first) if kind == "level" else self.op("Less", columns, first)
                parts.append(self.as_double(kept if kind == "level" else self.op("Not", kept)))
        parts.append(self.op("Add", self.op("Mul", self.take(x, [0]), 0.0), 1.0))  # fills up short terms
        factors = self.op("Concat", *parts, axis=1)
        place = {factor: i for i, factor in enumerate(order)}
        longest = max(map(len, model["terms"]))
        filled = [[place[i] for i in term] + [len(order)] * (longest - len(term)) for term in model["terms"]]
        terms = self.take(factors, [term[0] for term in filled])
        for k in range(1, longest):
            terms = self.op("Mul", terms, self.take(factors, [term[k] for term in filled]))
        centred = self.op("Sub", terms, np.array([model["centre"]], float))
        odds = self.op("MatMul", centred, np.array(model["slopes"], float))
        return [self.op("Add", odds, np.array([model["intercept"]], float))]

    def _aode(self, model: Description, x: Name) -> list[Name]:
        levels = np.array(model["levels"])
        column, n = np.repeat(np.arange(len(levels)), levels), int(levels.sum())
        code = np.arange(n) - np.repeat(np.cumsum(levels) - levels, levels)
        here = self.op("Equal", self.take(x, column.tolist()), code[None].astype(float))
        indicators, found = self.as_double(here), []
        together = (column[:, None] == np.arange(len(levels))).astype(float)  # levels by column
        for setting in model["settings"]:
            by_class = []
            for packed in model["counts"]:
                counts = np.zeros((n, n))
                counts[np.triu_indices(n)] = packed
                counts = np.maximum(counts, counts.T)
                mass = np.diag(counts) + setting["dirichlet"]
                alone = mass / (together.T @ mass)[column]
                given = np.log(counts + setting["backoff"] * alone)
                given -= np.log((counts @ together)[:, column] + setting["backoff"])
                given[column[:, None] == column] = 0.0
                of_parents = self.op("Add", self.op("MatMul", indicators, given.T), np.log(alone)[None])
                masked = self.op("Where", here, of_parents, NEVER)
                highest = self.op("GatherElements", masked, self.op("ArgMax", masked, axis=1, keepdims=1), axis=1)
                total = self.row_sum(self.op("Exp", self.op("Sub", masked, highest)))
                by_class.append(self.op("Add", highest, self.op("Log", total)))
            joined = self.op("Concat", *by_class, axis=1)
            found.append(self.op("Sub", joined, float(np.log(len(levels)))))
        return found

    def _indicators(self, model: Description, x: Name) -> list[Name]:
        mass = np.array(model["counts"], float) + model["dirichlet"]  # (columns, classes, 2)
        logs = np.log(mass[..., 0] / mass.sum(axis=-1)).sum(axis=0)
        return [self.op("Add", self.op("Mul", self.take(x, [0]), 0.0), logs[None])]
