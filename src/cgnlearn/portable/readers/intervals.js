// Intervals of the probabilities of a network (docs/portable.md): cgnIntervals(model, reader) is a function of a row
// and log shares of the classes, or null if the file does not hold what they need.
"use strict";

const cgnIntervals = (function () {
  const MOST_SKEWED = 4;
  const range = (n) => Array.from({ length: n }, (_, i) => i);

  // ψ and its first two derivatives.
  function polygamma(x) {
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

  function ofLevel(mass, code) {
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

  function softmax(scores) {
    const highest = Math.max(...scores);
    const parts = scores.map((score) => Math.exp(score - highest));
    const total = parts.reduce((sum, part) => sum + part, 0);
    return parts.map((part) => part / total);
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

  return function (model, reader) {
    const { interval } = model;
    if (!interval) return null;
    const n = model.classes.length;
    const across = helmert(n);
    const { sharing } = model.models[0].settings[0];
    const [power] = model.members[0].likelihoods[0].powers;
    const deviation = power / Math.sqrt(Math.min(power, 1));
    const z = n === 2 ? normalQuantile((1 + interval.level) / 2) : 0;
    const normal = n === 2 ? [[-z], [z]] : interval.draws;

    // Mean and third cumulants of each class, and the covariance between classes, of log densities.
    function sums(row) {
      const x = reader.read(row);
      const filled = x.map((value, v) => (Number.isNaN(value) ? interval.fill[v] : value));
      const mean = new Array(n).fill(0);
      const third = new Array(n).fill(0);
      const covariance = range(n).map(() => new Array(n).fill(0));
      const predictive = new Array(n).fill(0);
      reader.terms(filled).forEach((term) => {
        if (Number.isNaN(x[term.column])) return;
        const own = range(n).map((c) => (term.mass ? ofLevel(term.mass[c], term.code) : ofRegression(term.byClass[c])));
        own.forEach((cumulants, c) => {
          mean[c] += cumulants[0];
          covariance[c][c] += cumulants[1];
          third[c] += (term.mass ? 1 : 1 - sharing) * cumulants[2];
          predictive[c] += term.logDensity[c];
        });
        if (term.mass || !sharing) return;
        const correlation = correlations(interval.own_n[term.group][term.cell], sharing);
        for (let c = 0; c < n; c += 1)
          for (let d = 0; d < c; d += 1) {
            const both = shared(term.byClass[c], term.byClass[d], (term.apart[c][d] + term.apart[d][c]) / 2, correlation[c][d]);
            covariance[c][d] += both;
            covariance[d][c] += both;
          }
      });
      if (x.some(Number.isNaN)) {
        const logs = reader.logLikelihood(row);
        mean.forEach((value, c) => (mean[c] = logs[c] - (predictive[c] - value)));
      }
      return { mean, third, covariance };
    }

    return (row, logPrior) => {
      const found = sums(row);
      const mean = found.mean.map((value, c) => power * value);
      const covariance = found.covariance.map((line) => line.map((value) => deviation * deviation * value));
      const third = found.third.map((value) => deviation ** 3 * value);
      const isOwn = logPrior.every((share, c) => Math.abs(share - model.class_log_prior[c]) < 1e-9);
      range(n).forEach((c) => {
        if (!isOwn || !interval.class_mass) return void (mean[c] += logPrior[c]);
        const [psi, psi1, psi2] = polygamma(interval.class_mass[c]);
        mean[c] += psi;
        covariance[c][c] += psi1;
        third[c] += psi2;
      });
      const contrasts = across.map((a) =>
        across.map((b) => range(n).reduce((sum, c) => sum + range(n).reduce((part, d) => part + a[c] * covariance[c][d] * b[d], 0), 0)),
      );
      const centred = range(n).map((c) => range(n).reduce((sum, d) => sum + ((c === d ? 1 : 0) - 1 / n) ** 3 * third[d], 0));
      const roots = squareRoot(contrasts); // (contrasts, contrasts), then (contrasts, classes)
      const ofClass = range(n).map((c) => roots.map((line) => line.reduce((sum, value, k) => sum + value * across[k][c], 0)));
      const sd = ofClass.map((line) => Math.sqrt(line.reduce((sum, value) => sum + value * value, 0)));
      const skewness = sd.map((value, c) => Math.min(Math.max(value > 0 ? centred[c] / value ** 3 : 0, -MOST_SKEWED), MOST_SKEWED));
      const drawn = normal.map((point) =>
        softmax(
          range(n).map((c) => {
            if (!(sd[c] > 0)) return mean[c];
            const standard = ofClass[c].reduce((sum, value, k) => sum + (value / sd[c]) * point[k], 0);
            return mean[c] + sd[c] * gammaQuantile(standard, skewness[c]);
          }),
        ),
      );
      const proba = reader.predict(row, logPrior).map(Math.exp);
      return range(n).map((c) => {
        let ends = [Math.min(...drawn.map((p) => p[c])), Math.max(...drawn.map((p) => p[c]))];
        if (n > 2) {
          const others = (p) => p.reduce((sum, value, k) => sum + (k === c ? 0 : value), 0);
          const least = 2.2250738585072014e-308;
          ends = between(drawn.map((p) => Math.log(Math.max(p[c], least) / Math.max(others(p), least))), interval.level);
        }
        return [Math.min(ends[0], proba[c]), Math.max(ends[1], proba[c])];
      });
    };
  };
})();
