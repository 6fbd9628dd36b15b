// Intervals of probabilities (docs/portable.md): cgnIntervals(model, reader) is a function of a row and log shares of
// the classes, or null if the file does not hold what they need.
"use strict";

const cgnIntervals = (function () {
  const MOST_SKEWED = 4;
  const JEFFREYS = 0.5; // pseudo-count of a level, at least
  const LEAST = 2.2250738585072014e-308;
  const range = (n) => Array.from({ length: n }, (_, i) => i);

  // ψ and its first two derivatives, of which a model needs few.
  const known = new Map();
  function polygamma(x) {
    if (!known.has(x)) known.set(x, polygammaOf(x));
    return known.get(x);
  }

  function polygammaOf(x) {
    const found = [0, 0, 0];
    for (; x < 16; x += 1) {
      found[0] -= 1 / x;
      found[1] += 1 / (x * x);
      found[2] -= 2 / (x * x * x);
    }
    const y = 1 / (x * x);
    found[0] += Math.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))));
    found[1] += 1 / x + y / 2 + (y / x) * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y * (1 / 30 - (y * 5) / 66))));
    found[2] -= y + y / x + y * y * (1 / 2 - y * (1 / 6 - y * (1 / 6 - y * (3 / 10 - (y * 5) / 6))));
    return found;
  }

  // Cumulants of the log density of a regression under the posterior of its parameters.
  function ofRegression({ residual, spread, extra, rho, unit }) {
    const excess = (residual * residual) / spread;
    const [psi, psi1, psi2] = polygamma(rho);
    const both = extra + excess;
    const square = extra * extra;
    const weighted = rho * excess;
    return [
      psi / 2 - Math.log(Math.PI * spread) / 2 - extra / 2 - weighted - Math.log(unit),
      psi1 / 4 + square / 2 - excess + weighted * (both + extra),
      psi2 / 8 - extra * square + excess * 1.5 * (both + extra) - weighted * (6 * extra * both + 2 * excess * excess),
    ];
  }

  function ofLevel(counts, dirichlet, code) {
    const mass = counts.map((count) => count + Math.max(dirichlet, JEFFREYS));
    const own = polygamma(mass[code]);
    const all = polygamma(mass.reduce((sum, each) => sum + each, 0));
    return own.map((value, i) => value - all[i]);
  }

  // Covariance of the log densities of a feature under two classes that share some of their parameters.
  function shared(first, second, apart, correlation) {
    const rho = Math.sqrt(first.rho * second.rho);
    const most = Math.sqrt(first.length * second.length);
    const inner = (first.length + second.length - apart) / 2;
    const product = Math.min(Math.max(inner, -most), most) * correlation;
    const [a, b] = [first, second].map((each) => each.residual / Math.sqrt(each.spread));
    const scales = Math.sqrt(polygamma(first.rho)[1] * polygamma(second.rho)[1]) / 4;
    const ofVariance = scales - (a * a + b * b) / 2 + rho * a * a * b * b;
    return correlation * ofVariance + product * (2 * rho * a * b + product / 2);
  }

  function correlations(ownN, sharing) {
    const weight = (c, k) => (c === k ? 1 : sharing);
    const product = (c, d) => ownN.reduce((sum, n, k) => sum + weight(c, k) * n * weight(d, k), 0);
    const size = ownN.map((_, c) => Math.sqrt(Math.max(product(c, c), 1e-300)));
    return ownN.map((_, c) => ownN.map((__, d) => (c === d ? 0 : product(c, d) / size[c] / size[d])));
  }

  // Orthonormal contrasts of n classes (Helmert).
  function helmert(n) {
    return range(n - 1).map((i) => {
      const size = Math.sqrt((i + 1) * (i + 2));
      return range(n).map((j) => (j <= i ? 1 / size : j === i + 1 ? -(i + 1) / size : 0));
    });
  }

  // The symmetric square root of a symmetric matrix, by Jacobi rotations.
  function squareRoot(matrix) {
    const n = matrix.length;
    const a = matrix.map((row) => row.slice());
    const vectors = range(n).map((i) => range(n).map((j) => (i === j ? 1 : 0)));
    for (let sweep = 0; sweep < 60; sweep += 1) {
      let off = 0;
      for (let p = 0; p < n; p += 1)
        for (let q = p + 1; q < n; q += 1) {
          off += Math.abs(a[p][q]);
          if (a[p][q] === 0) continue;
          const theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
          const t = (theta >= 0 ? 1 : -1) / (Math.abs(theta) + Math.hypot(theta, 1));
          const c = 1 / Math.hypot(t, 1);
          const s = t * c;
          for (const m of [a, vectors])
            for (let k = 0; k < n; k += 1) [m[k][p], m[k][q]] = [c * m[k][p] - s * m[k][q], s * m[k][p] + c * m[k][q]];
          for (let k = 0; k < n; k += 1) [a[p][k], a[q][k]] = [c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]];
        }
      if (off < 1e-300) break;
    }
    const roots = range(n).map((i) => Math.sqrt(Math.max(a[i][i], 0)));
    return range(n).map((i) =>
      range(n).map((j) => range(n).reduce((sum, k) => sum + vectors[i][k] * roots[k] * vectors[j][k], 0)),
    );
  }

  function gammaQuantile(normal, skewness) {
    const skew = Math.abs(skewness) < 1e-6 ? 1e-6 : skewness;
    const root = Math.max((skew / 6) * normal + (1 - (skew / 6) * (skew / 6)), 0);
    return (root * root * root - 1) * (2 / skew);
  }

  function normalQuantile(p) {
    // Newton's method on the series of the error function; p is that of an interval, far from 0 and 1.
    let x = 0;
    for (let step = 0; step < 60; step += 1) {
      let term = x;
      let total = x;
      for (let k = 1; k < 200 && Math.abs(term) > 1e-18; k += 1) total += term = (term * x * x) / (2 * k + 1);
      const density = Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);
      x -= (0.5 + density * total - p) / density;
    }
    return x;
  }

  // In place.
  function softmax(scores) {
    let highest = -Infinity;
    for (const score of scores) highest = Math.max(highest, score);
    let all = 0;
    for (let c = 0; c < scores.length; c += 1) all += scores[c] = Math.exp(scores[c] - highest);
    for (let c = 0; c < scores.length; c += 1) scores[c] /= all;
    return scores;
  }

  // The interval between two ranks of draws at the middle of equal parts.
  function between(logOdds, level) {
    const sorted = Float64Array.from(logOdds).sort();
    const n = sorted.length;
    const below = ((1 - level) / 2) * n - 0.5;
    const first = Math.min(Math.max(Math.floor(below), 0), n - 2);
    const share = Math.min(Math.max(below - first, 0), 1);
    const low = (1 - share) * sorted[first] + share * sorted[first + 1];
    const high = (1 - share) * sorted[n - 1 - first] + share * sorted[n - 2 - first];
    return [low, high].map((odds) => 1 / (1 + Math.exp(-odds)));
  }

  const zeros = (n) => new Array(n).fill(0);
  const square = (n) => range(n).map(() => zeros(n));
  const total = (values) => values.reduce((sum, value) => sum + value, 0);
  const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const sums = (parts) => parts.reduce((sum, part) => sum.map((value, i) => value + part[i]));
  const matrixSums = (parts) => parts.reduce((sum, part) => sum.map((line, i) => sums([line, part[i]])));

  // ln E exp(l - E l) of a log density with a gamma distribution, reflected and shifted.
  function logMeanExponential(variance, third) {
    const skewness = Math.max(Math.max(-third, 0) / Math.max(variance, 1e-200) ** 1.5, 1e-3);
    const scale = (Math.sqrt(variance) * skewness) / 2;
    return (4 / skewness ** 2) * (scale - Math.log1p(scale));
  }

  return function (model, reader) {
    const { interval } = model;
    if (!interval) return null;
    const n = model.classes.length;
    const across = helmert(n);
    const z = normalQuantile((1 + interval.level) / 2);
    const normal = interval.draws || [[-z], [z]];
    const networks = new Map();

    // The posterior of scores of the classes: mean, covariance of the contrasts, third cumulants less their mean.
    function posterior(mean, covariance, third) {
      const contrasts = across.map((a) => across.map((b) => dot(a, covariance.map((line) => dot(line, b)))));
      const centred = range(n).map((c) => total(third.map((value, d) => ((c === d ? 1 : 0) - 1 / n) ** 3 * value)));
      return { mean, contrasts, third: centred };
    }

    // From cumulants of independent classes.
    function independent(byClass) {
      const covariance = square(n);
      byClass.forEach((cumulants, c) => (covariance[c][c] = cumulants[1]));
      return posterior(byClass.map((each) => each[0]), covariance, byClass.map((each) => each[2]));
    }

    // Of a network, in which features count by their chance; missing parents stand at the values of "fill".
    function ofNetwork(each, s, x, logs, chances) {
      const { fill, own_n: ownN } = each.interval;
      const { sharing, dirichlet } = each.settings[s];
      const key = networks.get(each) || networks.set(each, []).get(each);
      key[s] = key[s] || reader.networkOf(each, each.settings[s]);
      const [mean, third, predictive] = [zeros(n), zeros(n), zeros(n)];
      const covariance = square(n);
      key[s].terms(x.map((value, v) => (Number.isNaN(value) ? fill[v] : value))).forEach((term) => {
        if (Number.isNaN(x[term.column])) return;
        const chance = chances ? chances[term.column] : 1;
        const own = range(n).map((c) =>
          term.counts ? ofLevel(term.counts[c], dirichlet, term.code) : ofRegression(term.byClass[c]),
        );
        own.forEach((cumulants, c) => {
          mean[c] += chance * cumulants[0];
          covariance[c][c] += chance * cumulants[1];
          third[c] += chance * (term.counts ? 1 : 1 - sharing) * cumulants[2];
          predictive[c] += term.logDensity[c];
        });
        if (chances) {
          const middle = total(own.map((cumulants) => cumulants[0])) / n;
          const apart = own.map((cumulants) => cumulants[0] - middle);
          apart.forEach((a, c) => apart.forEach((b, d) => (covariance[c][d] += chance * (1 - chance) * a * b)));
        }
        if (term.counts || !sharing) return;
        const correlation = correlations(ownN[term.group][term.cell], sharing);
        for (let c = 0; c < n; c += 1)
          for (let d = 0; d < c; d += 1) {
            const apart = (term.apart[c][d] + term.apart[d][c]) / 2;
            const both = chance * shared(term.byClass[c], term.byClass[d], apart, correlation[c][d]);
            covariance[c][d] += both;
            covariance[d][c] += both;
          }
      });
      if (!chances && logs.length && x.some(Number.isNaN)) // without features there are no logs
        mean.forEach((value, c) => (mean[c] = logs[c] - (predictive[c] - value)));
      return posterior(mean, covariance, third);
    }

    const KINDS = {
      network: ofNetwork,
      selection: (each, s, x) =>
        ofNetwork(each.own, s, x, null, each.log_in[s].map((value) => (value === null ? 0 : Math.exp(value)))),
      aode(each, s, x, logs) {
        const byClass = reader.aodeTerms(each, x)[s].map((parents, c) => {
          const found = [0, 0, 0];
          const more = Math.max(JEFFREYS - each.settings[s].dirichlet, 0);
          parents.forEach(({ own, given }) => {
            const terms = [own, ...given];
            const share = Math.exp(total(terms.map(([mass, all]) => Math.log(mass / all))) - logs[c]) / parents.length;
            terms.forEach(([mass, all, levels], i) => {
              const pseudo = i ? JEFFREYS : more;
              const [of, ofAll] = [polygamma(mass + pseudo), polygamma(all + pseudo * levels)];
              for (const order of [1, 2]) found[order] += share * (of[order] - ofAll[order]);
            });
          });
          return [logs[c] - logMeanExponential(found[1], found[2]), found[1], found[2]];
        });
        return independent(byClass);
      },
      indicators: (each, s, x) =>
        independent(
          range(n).map((c) =>
            sums([
              [0, 0, 0],
              ...each.columns.map((column, i) =>
                ofLevel(each.counts[i][c], each.dirichlet, Number.isNaN(x[column]) ? 1 : 0),
              ),
            ]),
          ),
        ),
      // The directions of the parameters that are known best, and the rest of the features' length.
      regression(each, s, x, logs) {
        const { scale, directions, variance, rest } = each.interval;
        const point = [1, ...reader.centredTerms(each, x).map((value, i) => value / scale[i])];
        const along = directions.map((vector) => vector.map((part) => dot(part, point)));
        const left = range(rest ? n - 1 : 0).map((a) =>
          range(n - 1).map((b) =>
            point.map((value, i) => (a === b ? value : 0) - total(directions.map((vector, r) => along[r][a] * vector[b][i]))),
          ),
        );
        const outside = (a, b) => (rest ? rest * total(left[a].map((part, d) => dot(part, left[b][d]))) : 0);
        const contrasts = range(n - 1).map((a) =>
          range(n - 1).map((b) => total(along.map((of, r) => variance[r] * of[a] * of[b])) + outside(a, b)),
        );
        return { mean: logs, contrasts, third: zeros(n) };
      },
    };

    const plus = (a, b) => ({
      mean: sums([a.mean, b.mean]),
      contrasts: matrixSums([a.contrasts, b.contrasts]),
      third: sums([a.third, b.third]),
    });

    // Scores of the classes by a member, whose settings err together.
    function scoresOf(member, sample, ofClasses) {
      const all = total(member.likelihoods.map(({ powers }) => total(powers)));
      const parts = member.likelihoods.flatMap(({ models, powers }) =>
        powers.map((power, s) => {
          const found = models.map((i) => {
            const logs = sample.logs(i);
            return KINDS[model.models[i].kind](model.models[i], s, sample.moved(i), logs[logs.length === 1 ? 0 : s]);
          });
          const { mean, contrasts, third } = found.reduce(plus);
          const deviation = power / Math.sqrt(Math.min(all, 1));
          return {
            mean: mean.map((value) => power * value),
            contrasts: contrasts.map((line) => line.map((value) => deviation * deviation * value)),
            third: third.map((value) => deviation ** 3 * value),
          };
        }),
      );
      if (parts.length === 1) return plus(parts[0], ofClasses);
      const roots = matrixSums(parts.map((part) => squareRoot(part.contrasts)));
      const together = {
        mean: sums(parts.map((part) => part.mean)),
        contrasts: roots.map((a) => roots.map((b) => dot(a, b))),
        third: sums(parts.map((part) => part.third.map(Math.cbrt))).map((value) => value ** 3),
      };
      return plus(together, ofClasses);
    }

    // Probabilities at each normal draw.
    function drawnFrom({ mean, contrasts, third }) {
      const roots = squareRoot(contrasts); // (contrasts, contrasts), then (classes, contrasts)
      const ofClass = range(n).map((c) => roots.map((line) => total(line.map((value, k) => value * across[k][c]))));
      const sd = ofClass.map((line) => Math.sqrt(dot(line, line)));
      const skewness = sd.map((value, c) => Math.min(Math.max(value > 0 ? third[c] / value ** 3 : 0, -MOST_SKEWED), MOST_SKEWED));
      return normal.map((point) => {
        const scores = mean.slice();
        for (let c = 0; c < n; c += 1) {
          if (!(sd[c] > 0)) continue;
          let along = 0;
          for (let k = 0; k < n - 1; k += 1) along += ofClass[c][k] * point[k];
          scores[c] += sd[c] * gammaQuantile(along / sd[c], skewness[c]);
        }
        return softmax(scores);
      });
    }

    // Draws of the members' probabilities, mixed by draws of their weights.
    function mixedDraws(able, byMember, logPrior) {
      const places = able.map((member) => model.members.indexOf(member));
      return normal.map((_, i) => {
        const weights = places.map((place) => (interval.member_weights ? interval.member_weights[i][place] : 1));
        const whole = total(weights);
        const mixed = zeros(n);
        byMember.forEach((drawn, k) => {
          for (let c = 0; c < n; c += 1) mixed[c] += (weights[k] / whole) * drawn[i][c];
        });
        if (model.power === 1) return mixed;
        return softmax(mixed.map((p, c) => model.power * Math.log(Math.max(p, LEAST)) + (1 - model.power) * logPrior[c]));
      });
    }

    return (row, logPrior) => {
      const isOwn = logPrior.every((share, c) => Math.abs(share - model.class_log_prior[c]) < 1e-9);
      const mass = isOwn ? interval.class_mass : null;
      const ofClasses = independent(range(n).map((c) => (mass ? polygamma(mass[c]) : [logPrior[c], 0, 0])));
      const sample = reader.sample(row);
      const able = reader.ableOf(sample);
      const drawn = mixedDraws(able, able.map((member) => drawnFrom(scoresOf(member, sample, ofClasses))), logPrior);
      return reader.ofSample(sample, logPrior).map((log, c) => {
        const p = Math.exp(log);
        const found = drawn.map((each) => each[c]);
        const odds = drawn.map((each) => Math.log(Math.max(each[c], LEAST) / Math.max(total(each.filter((_, k) => k !== c)), LEAST)));
        const [low, high] = interval.draws ? between(odds, interval.level) : [Math.min(...found), Math.max(...found)];
        return [Math.min(low, p), Math.max(high, p)];
      });
    };
  };
})();
