// A reader of portable model files (docs/portable.md): probabilities of classes from a sample with missing values.
// cgnReader(model) has predict(row, logPrior), logDensity(row), typicality(row) and read(row); a row has a cell for
// each column, which is null where its value is missing.
"use strict";

const cgnReader = (function () {
  const FARTHEST = 1e140; // in standard units: greater distances count as this one

  // ---- the file

  const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

  // Nested lists from text: whole numbers in base 64, times a step, from the least on.
  function unpackedList({ packed, digits, least, step, shape }) {
    const value = new Uint8Array(128);
    for (let i = 0; i < 64; i += 1) value[ALPHABET.charCodeAt(i)] = i;
    let at = 0;
    const next = () => {
      let whole = 0;
      for (let i = 0; i < digits; i += 1) whole = 64 * whole + value[packed.charCodeAt(at++)];
      return least + step * whole;
    };
    const list = (level) => Array.from({ length: shape[level] }, () => (level + 1 < shape.length ? list(level + 1) : next()));
    return list(0);
  }

  // Undo in place what makes a file short: packed lists, and parts that it holds once.
  function unpack(model) {
    const { shared = [] } = model;
    const found = [];
    function whole(part) {
      if (part === null || typeof part !== "object") return part;
      if ("packed" in part) return unpackedList(part);
      if ("shared" in part) return (found[part.shared] = found[part.shared] || whole(shared[part.shared]));
      for (const key of Object.keys(part)) part[key] = whole(part[key]);
      return part;
    }
    delete model.shared;
    whole(model);
  }

  // ---- numbers

  function logGamma(x) {
    let shift = 0;
    for (; x < 12; x += 1) shift -= Math.log(x);
    const y = 1 / (x * x);
    const series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188 - y * (691 / 360360)))))) / x;
    return shift + (x - 0.5) * Math.log(x) - x + 0.9189385332046727 + series;
  }

  function logSum(terms) {
    const highest = terms.reduce((a, b) => Math.max(a, b), -Infinity);
    if (highest === -Infinity) return -Infinity;
    let total = 0;
    for (const term of terms) total += Math.exp(term - highest);
    return highest + Math.log(total);
  }

  const clip = (value, least, most) => (value < least ? least : value > most ? most : value); // NaN stays
  const orInfinity = (value, sign) => (value === null ? sign * Infinity : value);
  const zeros = (n) => new Array(n).fill(0);
  const range = (n) => Array.from({ length: n }, (_, i) => i);
  const add = (total, terms, factor = 1) => terms.forEach((term, i) => (total[i] += factor * term));

  function normalised(logs) {
    const total = logSum(logs);
    return logs.map((each) => each - total);
  }

  function interpolated(x, xs, ys) {
    if (!(x > xs[0])) return ys[0];
    for (let i = 1; i < xs.length; i += 1)
      if (x <= xs[i]) return ys[i - 1] + ((ys[i] - ys[i - 1]) * (x - xs[i - 1])) / (xs[i] - xs[i - 1]);
    return ys[ys.length - 1];
  }

  // The lower Cholesky factor, by rows, extended by one member.
  function extended(factor, entries) {
    const row = [];
    let rest = entries[factor.length];
    for (let i = 0; i < factor.length; i += 1) {
      let value = entries[i];
      for (let k = 0; k < i; k += 1) value -= row[k] * factor[i][k];
      row.push(value / factor[i][i]);
      rest -= row[i] * row[i];
    }
    row.push(Math.sqrt(rest > 0 ? rest : 1e-15 * entries[factor.length]));
    return [...factor, row];
  }

  function factorised(entry, n) {
    let factor = [];
    for (let i = 0; i < n; i += 1) factor = extended(factor, range(i + 1).map((j) => entry(j, i)));
    return factor;
  }

  function whitened(factor, residual) {
    const white = [];
    factor.forEach((row, i) => {
      let value = residual[i];
      for (let k = 0; k < i; k += 1) value -= row[k] * white[k];
      white.push(value / row[i]);
    });
    return white;
  }

  // Residual and spread of the last member given the others, and the squared distance of these from their centre.
  function conditional(factor, residual) {
    const white = whitened(factor, residual);
    const last = factor.length - 1;
    let distance = 0;
    for (let i = 0; i < last; i += 1) distance += white[i] * white[i];
    const own = factor[last][last];
    return [white[last] * own, own * own, distance];
  }

  // Coefficients of the regression of the last member on the others.
  function slopesOf(factor) {
    const last = factor.length - 1;
    const slopes = factor[last].slice(0, last);
    for (let i = last - 1; i >= 0; i -= 1) {
      for (let k = i + 1; k < last; k += 1) slopes[i] -= factor[k][i] * slopes[k];
      slopes[i] /= factor[i][i];
    }
    return slopes;
  }

  // ---- levels

  function canonical(level) {
    const text = String(level);
    if (/^(true|True|TRUE)$/.test(text)) return "1";
    if (/^(false|False|FALSE)$/.test(text)) return "0";
    const whole = /^(-?(?:0|[1-9][0-9]{0,99}))(?:\.0*)?$/.exec(text);
    return whole ? (whole[1] === "-0" ? "0" : whole[1]) : text;
  }

  // ---- continuous features with the same discrete parents, under a sharing

  function groupOf(group, sharing, averages) {
    const n = group.columns.length;
    const shared = (byClass, prior) =>
      byClass.map((own, c) =>
        sharing === 0 || byClass.length === 1
          ? own
          : own.map((value, i) => {
              let others = 0;
              byClass.forEach((other, k) => (others += k === c ? 0 : other[i] - prior(i)));
              return value + sharing * others;
            }),
      );
    const separate = Array.isArray(group.shape[0][0]);
    const asLists = (byCell) => (separate ? byCell : byCell.map((byClass) => byClass.map((value) => [value])));
    const scale = group.scale.map((cell) => shared(cell, (i) => (i < n && averages ? group.prior_scale[i] : 0)));
    const priorShape = (i) => (Array.isArray(group.prior_shape) ? group.prior_shape[i] : group.prior_shape);
    const shape = asLists(group.shape).map((cell) => shared(cell, (i) => (averages ? priorShape(i) : 0)));
    const leverage = asLists(group.leverage);
    const ownSpread = group.own_spread && group.own_spread.map((cell) => shared(cell, () => 0));
    const places = new Map();
    if (group.pairs) group.pairs[0].forEach((first, i) => places.set(first * n + group.pairs[1][i], n + i));
    const factors = new Map();
    const families = new WeakMap();

    function place(i, j) {
      if (i === j) return i;
      const first = Math.min(i, j);
      const second = Math.max(i, j);
      if (group.pairs) return places.get(first * n + second);
      const short = Math.max(0, first - (n - 1 - group.reach));
      return n + first * group.reach - (short * (short - 1)) / 2 + second - first - 1;
    }

    const key = (cell, label, members) => `${cell};${label};${members}`;

    // Factor of the scale over members; families of a group extend each other.
    function factor(cell, label, members) {
      const wanted = key(cell, label, members);
      if (!factors.has(wanted)) {
        const packed = scale[cell][label];
        const last = members.length - 1;
        const before = factors.get(key(cell, label, members.slice(0, last)));
        const found = before
          ? extended(before, members.map((i) => packed[place(i, members[last])]))
          : factorised((i, j) => packed[place(members[i], members[j])], members.length);
        factors.set(wanted, found);
      }
      return factors.get(wanted);
    }

    // Members of a family, with their factor in each cell and class: by its list of parents, which is one for each.
    function family(own, given) {
      if (!families.has(given)) families.set(given, { members: [...given, own], factors: [], apart: [] });
      return families.get(given);
    }

    function factorOf({ members, factors: known }, cell, label) {
      const at = cell * group.centre[0].length + label;
      return known[at] || (known[at] = factor(cell, label, members));
    }

    const ofCell = (part, cell, label, own) => part[cell][label][separate ? own : 0];

    function standard(x, i) {
      return clip((x[group.columns[i]] - group.origin[i]) / group.unit[i], -FARTHEST, FARTHEST);
    }

    // Log density of a residual; spread and squared distance are per unit of "behind".
    function logDensity(cell, label, own, parts, nGiven, behind) {
      const residual = parts[0] + (group.shift ? group.shift[cell][label][own] : 0);
      let spread = parts[1] * behind + (ownSpread ? ownSpread[cell][label][own] : 0);
      const square = residual * residual;
      if (!averages) return -0.5 * (Math.log(2 * Math.PI * spread) + square / spread) - Math.log(group.unit[own]);
      const rho = ofCell(shape, cell, label, own) + nGiven / 2;
      spread *= ofCell(leverage, cell, label, own) + parts[2] / behind;
      const constant = logGamma(rho + 0.5) - logGamma(rho) - 0.5 * Math.log(Math.PI * spread);
      return constant - (rho + 0.5) * Math.log1p(square / spread) - Math.log(group.unit[own]);
    }

    return {
      nClasses: group.centre[0].length,
      group,
      factor,
      standard,
      logDensity,
      behind: (cell, label, own) => (averages ? 2 * ofCell(shape, cell, label, own) : 1),
      // What the density of own given others is made of, in each class; parents of one class seen from the other.
      terms(cell, own, given, x) {
        const found = family(own, given);
        const { members, apart } = found;
        const values = members.map((i) => standard(x, i));
        const ofClass = (label, at) =>
          conditional(factorOf(found, cell, label), members.map((i, k) => at[k] - group.centre[cell][label][i]));
        const byClass = group.centre[cell].map((_, label) => {
          const parts = ofClass(label, values);
          return {
            residual: parts[0] + (group.shift ? group.shift[cell][label][own] : 0),
            spread: parts[1] + (ownSpread ? ownSpread[cell][label][own] : 0),
            extra: ofCell(leverage, cell, label, own) + parts[2] - 1,
            length: parts[2],
            rho: ofCell(shape, cell, label, own) + given.length / 2,
            unit: group.unit[own],
            logDensity: logDensity(cell, label, own, parts, given.length, 1),
          };
        });
        apart[cell] =
          apart[cell] ||
          group.centre[cell].map((_, label) =>
            group.centre[cell].map((centre) => ofClass(label, members.map((i) => centre[i]))[2]),
          );
        return { byClass, apart: apart[cell] };
      },
      // ln p(own | given) in each class
      density(cell, own, given, x) {
        const found = family(own, given);
        const { members } = found;
        const values = members.map((i) => standard(x, i));
        return group.centre[cell].map((centre, label) => {
          const residual = members.map((i, k) => values[k] - centre[i]);
          const parts = conditional(factorOf(found, cell, label), residual);
          return logDensity(cell, label, own, parts, given.length, 1);
        });
      },
    };
  }

  // ---- one setting of a network

  function networkOf(model, setting, columns) {
    const averages = model.estimation === "bayes";
    const groups = model.groups.map((group) => groupOf(group, setting.sharing, averages));
    const nLevels = (v) => Math.max(1, columns[v].levels.length);
    const nodes = model.continuous.map((node) => {
      const group = model.groups[node.group];
      return { ...node, cells: group.parents, parents: node.given.map((i) => group.columns[i]) };
    });
    const nodeOf = new Map(nodes.map((node) => [node.column, node]));
    const nClasses = model.discrete.length ? model.discrete[0].counts.length : groups.length ? groups[0].nClasses : 0;

    function configuration(parents, codes) {
      return parents.reduce((number, v) => number * nLevels(v) + codes[v], 0);
    }

    function categorical(family, codes) {
      const cell = configuration(family.parents, codes);
      return family.counts.map((byCell) => {
        const total = byCell[cell].reduce((sum, count) => sum + count + setting.dirichlet, 0);
        return Math.log(byCell[cell][codes[family.column]] + setting.dirichlet) - Math.log(total);
      });
    }

    const direct = (node, codes, x) =>
      groups[node.group].density(configuration(node.cells, codes), node.own, node.given, x);

    // Log density of each family whose columns are observed.
    function families(x) {
      const seen = (...lists) => lists.every((list) => list.every((v) => !Number.isNaN(x[v])));
      return [
        ...model.discrete
          .filter((family) => seen([family.column], family.parents))
          .map((family) => ({ ...family, logDensity: categorical(family, x) })),
        ...nodes
          .filter((node) => seen([node.column], node.cells, node.parents))
          .map((node) => ({ column: node.column, parents: [...node.cells, ...node.parents], logDensity: direct(node, x, x) })),
      ];
    }

    // What the log density of each family of a complete sample is made of.
    function terms(x) {
      const counts = (family) => family.counts.map((byCell) => byCell[configuration(family.parents, x)]);
      return [
        ...model.discrete.map((family) => {
          const { column } = family;
          return { column, counts: counts(family), code: x[column], logDensity: categorical(family, x) };
        }),
        ...nodes.map((node) => {
          const cell = configuration(node.cells, x);
          const found = groups[node.group].terms(cell, node.own, node.given, x);
          const logDensity = found.byClass.map((each) => each.logDensity);
          return { column: node.column, group: node.group, cell, ...found, logDensity };
        }),
      ];
    }

    // Connected continuous features, parents before children.
    function clusters(needed) {
      let found = [];
      nodes.forEach((node) => {
        if (!needed.has(node.column)) return;
        const near = found.filter((cluster) => cluster.some((other) => node.parents.includes(other.column)));
        found = [...found.filter((cluster) => !near.includes(cluster)), [...near.flat(), node]];
      });
      const order = new Map(nodes.map((node, i) => [node, i]));
      return found.map((cluster) => cluster.sort((a, b) => order.get(a) - order.get(b)));
    }

    // Mean and scale of all features of a cluster, each in its own units, from the regressions on their parents.
    function implied(cluster, codes, label) {
      const mean = [];
      const joint = [];
      const at = new Map(cluster.map((node, i) => [node.column, i]));
      cluster.forEach((node, i) => {
        const { group, factor, behind } = groups[node.group];
        const cell = configuration(node.cells, codes);
        const found = factor(cell, label, [...node.given, node.own]);
        const own = found[node.given.length][node.given.length];
        const centre = group.centre[cell][label];
        const row = zeros(i);
        let expected = centre[node.own];
        const before = node.parents.map((column) => at.get(column));
        const slopes = slopesOf(found).map((slope, k) => {
          const parent = cluster[before[k]];
          const theirs = groups[parent.group].group;
          const unit = theirs.unit[parent.own];
          const position = node.given[k]; // units of a column may differ between families
          const value = centre[position] * group.unit[position] + group.origin[position];
          const converted = (slope * unit) / group.unit[position];
          expected += converted * (mean[before[k]] - (value - theirs.origin[parent.own]) / unit);
          return converted;
        });
        slopes.forEach((slope, k) => row.forEach((_, a) => (row[a] += slope * (a <= before[k] ? joint[before[k]][a] : joint[a][before[k]]))));
        let spread = (own * own) / behind(cell, label, node.own);
        slopes.forEach((slope, k) => (spread += slope * row[before[k]]));
        mean.push(expected);
        joint.push([...row, spread]);
      });
      return { mean, scale: (a, b) => (a >= b ? joint[a][b] : joint[b][a]) };
    }

    // Log densities of the observed features of a cluster, given a level of every discrete parent.
    function integrated(cluster, codes, x) {
      const total = zeros(nClasses);
      const isSeen = (v) => !Number.isNaN(x[v]);
      const affected = [];
      cluster.forEach((node) => {
        if (!isSeen(node.column)) return;
        if (node.parents.every(isSeen)) add(total, direct(node, codes, x));
        else affected.push(node);
      });
      if (!affected.length) return total;
      const given = new Map(cluster.map((node) => [node.column, new Set(node.parents)]));
      for (const node of [...cluster].reverse()) {
        if (isSeen(node.column)) continue;
        const gained = new Set(given.get(node.column)); // arcs are reversed until it has no children
        for (const child of cluster) {
          const own = given.get(child.column);
          if (!isSeen(child.column) || !own.delete(node.column)) continue;
          const before = [...own];
          gained.forEach((v) => own.add(v));
          before.forEach((v) => gained.add(v));
          gained.add(child.column);
        }
      }
      const at = new Map(cluster.map((node, i) => [node.column, i]));
      const values = cluster.map((node) => groups[node.group].standard(x, node.own));
      for (let label = 0; label < nClasses; label += 1) {
        const { mean, scale } = implied(cluster, codes, label);
        let last = null; // members and factor of the last feature, which the next one may extend
        affected.forEach((node) => {
          const parents = [...given.get(node.column)].map((v) => at.get(v)).sort((a, b) => a - b);
          const own = at.get(node.column);
          const extends_ = last && last.key === String(parents);
          const members = extends_ ? [...last.members, own] : [...parents, own];
          const factor = extends_
            ? extended(last.factor, members.map((i) => scale(i, own)))
            : factorised((i, j) => scale(members[i], members[j]), members.length);
          last = { members, factor, key: String([...parents, own].sort((a, b) => a - b)) };
          const parts = conditional(factor, members.map((i) => values[i] - mean[i]));
          const cell = configuration(node.cells, codes);
          const { logDensity, behind } = groups[node.group];
          total[label] += logDensity(cell, label, node.own, parts, parents.length, behind(cell, label, node.own));
        });
      }
      return total;
    }

    // Levels of missing discrete features are summed over, one feature after the other.
    function logLikelihood(x) {
      const isMissing = (v) => Number.isNaN(x[v]);
      if (!x.some(Number.isNaN)) {
        const whole = zeros(nClasses);
        model.discrete.forEach((family) => add(whole, categorical(family, x)));
        nodes.forEach((node) => add(whole, direct(node, x, x)));
        return whole;
      }
      const families_ = [
        ...model.discrete,
        ...nodes.map((node) => ({ column: node.column, parents: [...node.cells, ...node.parents] })),
      ];
      const needed = new Set(families_.map((family) => family.column).filter((v) => !isMissing(v)));
      [...families_].reverse().forEach((family) => {
        if (needed.has(family.column)) family.parents.forEach((v) => needed.add(v));
      });
      const levelsOf = (scope) => scope.map(nLevels);
      function combinations(scope) {
        let found = [[]];
        levelsOf(scope).forEach((n) => (found = found.flatMap((codes) => range(n).map((code) => [...codes, code]))));
        return found;
      }
      function tabulated(columnsOf, value) {
        const scope = [...new Set(columnsOf)].filter(isMissing);
        const table = combinations(scope).map((at) => {
          const codes = x.slice();
          scope.forEach((v, i) => (codes[v] = at[i]));
          return value(codes);
        });
        return { scope, table };
      }
      let tables = model.discrete
        .filter((family) => needed.has(family.column))
        .map((family) => tabulated([family.column, ...family.parents], (codes) => categorical(family, codes)));
      clusters(needed).forEach((cluster) =>
        tables.push(tabulated(cluster.flatMap((node) => node.cells), (codes) => integrated(cluster, codes, x))),
      );
      const summed = model.discrete.map((family) => family.column).filter((v) => needed.has(v) && isMissing(v));
      summed.reverse().forEach((v) => {
        const joined = tables.filter((each) => each.scope.includes(v));
        const scope = [...new Set(joined.flatMap((each) => each.scope))].filter((other) => other !== v);
        const table = combinations(scope).map((at) => {
          const codes = new Map(scope.map((column, i) => [column, at[i]]));
          const terms = range(nLevels(v)).map((level) => {
            codes.set(v, level);
            const total = zeros(nClasses);
            joined.forEach((each) => add(total, each.table[each.scope.reduce((k, w) => k * nLevels(w) + codes.get(w), 0)]));
            return total;
          });
          return range(nClasses).map((label) => logSum(terms.map((term) => term[label])));
        });
        tables = [...tables.filter((each) => !joined.includes(each)), { scope, table }];
      });
      const total = zeros(nClasses);
      tables.forEach((each) => add(total, each.table[0]));
      return total;
    }

    return { families, logLikelihood, terms };
  }

  // Terms of a regression less their means; a missing one is at its mean.
  function centredTerms(model, x) {
    const factors = model.factors.map(([column, kind, first, second, least, most]) => {
      if (Number.isNaN(x[column])) return NaN;
      if (kind === "level") return x[column] === first ? 1 : 0;
      if (kind === "step") return x[column] >= first ? 1 : 0;
      const away = clip((x[column] - first) / second, -FARTHEST, FARTHEST);
      return clip(away, orInfinity(least, -1), orInfinity(most, 1));
    });
    return model.terms.map((term, i) => {
      const value = term.reduce((product, k) => product * factors[k], 1) - model.centre[i];
      return Number.isNaN(value) ? 0 : value;
    });
  }

  // For each setting, class and parent of an AODE: pseudo-counts of its level, and of the others given it, with
  // their totals and the number of levels.
  function aodeTerms(model, x) {
    const starts = [0];
    model.levels.forEach((n, i) => starts.push(starts[i] + n));
    const n = starts[model.levels.length];
    const place = (i, j) => (i <= j ? i * n - (i * (i - 1)) / 2 + j - i : place(j, i));
    const observed = range(model.levels.length).filter((v) => !Number.isNaN(x[v]));
    const at = observed.map((v) => starts[v] + x[v]);
    const sum = (counts, from, v, own) => {
      let total = 0;
      for (let i = starts[v]; i < starts[v + 1]; i += 1) total += counts[place(own ? i : from, i)];
      return total;
    };
    return model.settings.map(({ backoff, dirichlet }) =>
      model.counts.map((counts) => {
        const alone = observed.map((v, k) => [
          counts[place(at[k], at[k])] + dirichlet,
          sum(counts, 0, v, true) + dirichlet * model.levels[v],
          model.levels[v],
        ]);
        const pair = (j, k, v) => [
          counts[place(at[j], at[k])] + (backoff * alone[k][0]) / alone[k][1],
          sum(counts, at[j], v, false) + backoff,
          model.levels[v],
        ];
        return observed.map((_, j) => ({
          own: alone[j],
          given: observed.map((v, k) => (k === j ? null : pair(j, k, v))).filter((each) => each),
        }));
      }),
    );
  }

  // ---- the other models, each a function from a sample to log likelihoods by setting and class

  const KINDS = {
    network(model, columns) {
      const settings = model.settings.map((setting) => networkOf(model, setting, columns));
      return (x) => settings.map((network) => network.logLikelihood(x));
    },

    selection(model, columns, nClasses) {
      const networks = ["own", "free"].map((kind) =>
        model[kind].settings.map((setting) => networkOf(model[kind], setting, columns)),
      );
      return (x) =>
        model.log_in.map((logIn, i) => {
          const total = zeros(nClasses);
          const [own, free] = networks.map((settings) => settings[i].families(x));
          own.forEach((family, k) => {
            const weights = [logIn, model.log_out[i]].map((logs) => orInfinity(logs[family.column], -1));
            family.logDensity.forEach((value, label) => {
              total[label] += logSum([weights[0] + value, weights[1] + free[k].logDensity[0]]);
            });
          });
          return total;
        });
    },

    forests(model, columns, nClasses) {
      const [given, alone] = ["given", "alone"].map((kind) => networkOf(model[kind], model.given.settings[0], columns));
      const place = new Map(model.nodes.map((v, i) => [v, i]));
      const weights = model.log_weights.map((row) => row.map((weight) => orInfinity(weight, -1)));
      function logTotal(logs) {
        const left = logs.map((row) => row.slice());
        let total = 0;
        for (let v = place.size - 1; v >= 0; v -= 1) {
          const into = logSum(left.slice(0, v + 1).map((row) => row[v]));
          for (let a = 0; a < v; a += 1)
            for (let u = 0; u <= v; u += 1)
              if (u !== a + 1) left[u][a] = logSum([left[u][a], left[u][v] + left[v + 1][a] - into]);
          total += into;
        }
        return total;
      }
      const base = logTotal(weights);
      return (x) => {
        const own = new Map(alone.families(x).map((family) => [family.column, family.logDensity]));
        const total = zeros(nClasses);
        own.forEach((logs) => add(total, logs));
        const families = given.families(x).filter((each) => place.has(each.column) && place.has(each.parents[0]));
        for (let label = 0; label < nClasses; label += 1) {
          const logs = weights.map((row) => row.slice());
          families.forEach(({ column, parents, logDensity }) => {
            const [u, v] = [place.get(parents[0]), place.get(column)];
            const ratio = logDensity[label] - own.get(column)[label];
            logs[1 + u][v] += ratio;
            if (columns[parents[0]].kind === "continuous") logs[1 + v][u] += ratio;
          });
          total[label] += logTotal(logs) - base;
        }
        return [total];
      };
    },

    orders(model, columns, nClasses) {
      const absent = new Set(model.absent);
      const kinds = [[model.free, 0], [model.own, 1], [model.own, 0]].map(([group, sharing]) => groupOf(group, sharing, true));
      return (x) => {
        const total = zeros(nClasses);
        range(model.own.columns.length).forEach((v) => {
          if (absent.has(v)) return;
          const terms = [];
          kinds.forEach((kind, i) =>
            model.log_weight[i][v].forEach((weight, order) => {
              if (weight === null) return;
              const given = range(order).map((j) => v - order + j).filter((u) => !absent.has(u));
              const density = kind.density(0, v, given, x);
              terms.push(range(nClasses).map((label) => weight + density[density.length === 1 ? 0 : label]));
            }),
          );
          add(total, range(nClasses).map((label) => logSum(terms.map((term) => term[label]))));
        });
        return [total];
      };
    },

    rotation(model, columns, nClasses) {
      const n = model.columns.length;
      const dimensions = model.basis.length ? model.basis[0].length : 0;
      const logUnits = model.unit.reduce((sum, unit) => sum + Math.log(unit), 0);
      const settings = model.settings.map((setting) => ({
        ...setting,
        factors: setting.scale.map((cell) =>
          cell.map((packed) => {
            let next = dimensions; // the diagonal comes first, then the pairs
            const entries = packed.slice(0, dimensions).map((value, i) => ({ [i]: value }));
            for (let i = 0; i < dimensions; i += 1)
              for (let j = i + 1; j < dimensions; j += 1) entries[i][j] = packed[next++];
            return factorised((i, j) => entries[i][j], dimensions);
          }),
        ),
      }));
      return (x) => {
        const away = model.columns.map((v, i) => clip((x[v] - model.origin[i]) / model.unit[i], -FARTHEST, FARTHEST));
        const inside = zeros(dimensions);
        model.basis.forEach((row, i) => row.forEach((value, k) => (inside[k] += value * away[i])));
        let outside = 0;
        model.basis.forEach((row, i) => {
          const rest = row.reduce((left, value, k) => left - value * inside[k], away[i]);
          outside += rest * rest;
        });
        const cell = model.parents.reduce((number, v) => number * Math.max(1, columns[v].levels.length) + x[v], 0);
        return settings.map((setting) =>
          range(nClasses).map((label) => {
            const factor = setting.factors[cell][label];
            const centre = setting.centre[cell][label];
            const white = whitened(factor, inside.map((value, k) => value - setting.origin[k] - centre[k]));
            const least = setting.leverage[cell][label];
            const rho = setting.shape[cell][label];
            const whole = white.reduce((sum, value) => sum + value * value, least + outside / setting.multiple);
            const halfLogDet = factor.reduce((sum, row, i) => sum + Math.log(row[i]), ((n - dimensions) / 2) * Math.log(setting.multiple));
            const constant = logGamma(rho + n / 2) - logGamma(rho) - (n / 2) * Math.log(Math.PI) - halfLogDet - logUnits;
            return constant + rho * Math.log(least) - (rho + n / 2) * Math.log(whole);
          }),
        );
      };
    },

    regression(model) {
      return (x) => {
        const total = model.intercept.slice();
        centredTerms(model, x).forEach((value, i) => add(total, model.slopes[i], value));
        return [total];
      };
    },

    aode(model) {
      return (x) =>
        aodeTerms(model, x).map((byClass) =>
          byClass.map((parents) => {
            const share = ([mass, total]) => Math.log(mass / total);
            const terms = parents.map(({ own, given }) => given.reduce((sum, each) => sum + share(each), share(own)));
            return terms.length ? logSum(terms) - Math.log(terms.length) : 0;
          }),
        );
    },

    indicators(model, columns, nClasses) {
      return (x) => {
        const total = zeros(nClasses);
        model.columns.forEach((column, i) =>
          model.counts[i].forEach((counts, label) => {
            const mass = counts.map((count) => count + model.dirichlet);
            total[label] += Math.log(mass[Number.isNaN(x[column]) ? 1 : 0]) - Math.log(mass[0] + mass[1]);
          }),
        );
        return [total];
      };
    },
  };

  // ---- the whole

  // A model that was updated: a mixture of recalibrated models.
  function updated(model) {
    const { models, parts, least } = model.updated;
    const readers = models.map(reader);
    return {
      read: readers[0].read,
      needsComplete: parts.some((part) => readers[part.model].needsComplete),
      predict(row, logPrior = model.class_log_prior) {
        const terms = parts.map(({ model: number, intercept, slope, weight }) => {
          const logs = readers[number].predict(row).map((value) => Math.max(value, least));
          const moved = logs.map((value, c) => intercept[c] + slope * value + logPrior[c] - model.class_log_prior[c]);
          return normalised(moved).map((value) => value + Math.log(weight));
        });
        return model.classes.map((_, c) => logSum(terms.map((term) => term[c])));
      },
      typicality(row) {
        const found = readers.map((each) => each.typicality(row)).filter((value) => value !== null);
        return found.length ? Math.max(...found) : null;
      },
    };
  }

  const reader = (model) => (model.updated ? updated(model) : single(model));
  return function (model) {
    unpack(model);
    return reader(model);
  };

  function single(model) {
    if (model.format !== "cgnlearn-portable" || model.version !== 1)
      throw new Error("this is no portable model of version 1: get a newer reader");
    const { columns, transforms } = model;
    const nClasses = model.classes.length;
    const continuous = range(columns.length).filter((v) => columns[v].kind === "continuous");
    const codes = columns.map((column) => new Map((column.levels || []).map((level, i) => [canonical(level), i])));
    const models = model.models.map((each) => KINDS[each.kind](each, columns, nClasses));
    // A number for each column: its value, or the position of its level; NaN if it is missing or unknown.
    function read(row) {
      return columns.map((column, v) => {
        const cell = row[v];
        if (column.fixed) return 0;
        if (cell === null || cell === undefined || cell === "" || Number.isNaN(cell)) return NaN;
        if (column.kind === "continuous") {
          const value = typeof cell === "number" ? cell : Number(cell);
          if (!Number.isFinite(value)) throw new Error(`${column.name}: ${cell} is no number`);
          return value;
        }
        const code = codes[v].get(canonical(cell));
        if (code === undefined && model.handle_unknown === "error") throw new Error(`${column.name}: ${cell} is unknown`);
        return code === undefined ? NaN : code;
      });
    }

    function transformed(x, name) {
      const transform = transforms[name];
      const moved = x.slice();
      let logJacobian = 0;
      continuous.forEach((column, i) => {
        if (Number.isNaN(x[column])) return;
        if (transform.edges) moved[column] = transform.edges[i].filter((edge) => edge <= x[column]).length;
        if (!transform.power) return;
        const power = transform.power[i];
        const away = clip((x[column] - transform.origin[i]) / transform.unit[i], -FARTHEST, FARTHEST);
        const length = Math.log1p(Math.abs(away));
        const exponent = away >= 0 ? power : 2 - power;
        const value = Math.abs(exponent) < 1e-8 ? length : Math.expm1(Math.min(exponent * length, 300)) / exponent;
        moved[column] = away >= 0 ? value : -value;
        logJacobian += (power - 1) * Math.sign(away) * length - Math.log(transform.unit[i]);
      });
      return { moved, logJacobian };
    }

    function computing(x) {
      const isComplete = !x.some(Number.isNaN);
      const versions = {};
      const results = {};
      const version = (name) => (versions[name] = versions[name] || transformed(x, name));
      const one = (i) => (results[i] = results[i] || models[i](version(model.models[i].transform).moved));
      return {
        x,
        isComplete,
        moved: (i) => version(model.models[i].transform).moved,
        logs: one, // of a model, by setting and class
        accepts: (numbers) => isComplete || !numbers.some((i) => model.models[i].needs_complete),
        logJacobian: (numbers) => version(model.models[numbers[0]].transform).logJacobian,
        // by setting and class; a model with one setting counts for all
        logLikelihoods: (numbers, nSettings) =>
          range(nSettings).map((s) => {
            const total = zeros(nClasses);
            numbers.forEach((i) => add(total, one(i).length === 1 ? one(i)[0] : one(i)[s]));
            return total;
          }),
      };
    }

    // The sample of a row; of the last one it is kept, since a prediction, an interval and a density follow each other.
    let last = { x: [] };
    function sampleOf(row) {
      const x = read(row);
      if (last.x.length !== x.length || !x.every((value, i) => Object.is(value, last.x[i])))
        last = { x, sample: computing(x) };
      return last.sample;
    }

    // The members that can predict a sample.
    function ableOf(sample) {
      const able = model.members.filter((member) => member.likelihoods.every((each) => sample.accepts(each.models)));
      if (!able.length) throw new Error("this model needs a value for every feature");
      return able;
    }

    function ofSample(sample, logPrior) {
      const able = ableOf(sample);
      const terms = able.map((member) => {
        const joint = logPrior.slice();
        member.likelihoods.forEach(({ models: numbers, powers }) =>
          sample.logLikelihoods(numbers, powers.length).forEach((logs, s) => add(joint, logs, powers[s])),
        );
        return normalised(joint).map((value) => value + Math.log(member.weight));
      });
      const mixed = normalised(range(nClasses).map((label) => logSum(terms.map((term) => term[label]))));
      return normalised(mixed.map((value, label) => model.power * value + (1 - model.power) * logPrior[label]));
    }

    function logDensity(row) {
      const sample = sampleOf(row);
      const terms = [];
      model.density.forEach(({ models: numbers, weights }) => {
        if (!sample.accepts(numbers)) return;
        sample.logLikelihoods(numbers, weights.length).forEach((logs, s) =>
          logs.forEach((value, label) =>
            terms.push(model.class_log_prior[label] + Math.log(weights[s]) + sample.logJacobian(numbers) + value),
          ),
        );
      });
      return logSum(terms);
    }

    return {
      read,
      logDensity,
      // what intervals are made of
      sample: sampleOf,
      ableOf,
      ofSample,
      networkOf: (each, setting) => networkOf(each, setting, columns),
      aodeTerms,
      centredTerms,
      needsComplete: model.members.every((member) =>
        member.likelihoods.some((each) => each.models.some((i) => model.models[i].needs_complete)),
      ),
      // log probabilities of the classes, for another prevalence if it is given
      predict: (row, logPrior = model.class_log_prior) => ofSample(sampleOf(row), logPrior),
      // of a complete sample; null if it is not known
      typicality(row) {
        const table = model.typicality;
        if (!table || read(row).some(Number.isNaN)) return null;
        return interpolated(logDensity(row), table.log_density, table.typicality);
      },
    };
  }
})();
