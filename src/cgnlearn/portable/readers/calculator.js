// The calculator page: fields in, probabilities out. All numbers come from cgnReader; text never becomes markup.
"use strict";

(function () {
  const MOST_FIELDS = 60; // beyond, rows are pasted
  const ATYPICAL = 0.05;
  const MOST_STEPS = 20; // of the waterfall
  const model = JSON.parse(document.getElementById("model").textContent);
  const reader = cgnReader(model);
  const intervalOf = cgnIntervals(model, reader);
  const { columns, classes } = model;
  const isWide = columns.length > MOST_FIELDS;
  const $ = (id) => document.getElementById(id);
  const shown = columns.map((_, i) => i).filter((i) => !columns[i].fixed);
  let rows = [columns.map(() => null)]; // of a pasted table; else the one of the fields
  let shares = model.class_log_prior.map(Math.exp);
  let follows = true; // the most probable class is shown, until one is chosen

  function element(kind, properties = {}, ...content) {
    const found = document.createElement(kind);
    Object.entries(properties).forEach(([name, value]) => found.setAttribute(name, value));
    found.append(...content);
    return found;
  }

  const logit = (p) => Math.log(p) - Math.log1p(-p);
  const expit = (z) => 1 / (1 + Math.exp(-z));
  const rounded = (value) => String(Number(value.toPrecision(4)));

  function percent(p) {
    if (p > 0 && p < 0.001) return "<\u00a00.1\u00a0%";
    if (p < 1 && p > 0.999) return ">\u00a099.9\u00a0%";
    return `${(100 * p).toFixed(1)}\u00a0%`;
  }

  // A number as people type it: with a decimal point or comma.
  function numberOf(text) {
    const plain = text.trim().replace(/\s/g, "");
    const pointed = /^[^.]*,[^.,]*$/.test(plain) ? plain.replace(",", ".") : plain;
    return pointed === "" ? null : /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(pointed) ? Number(pointed) : NaN;
  }

  // ---- fields

  function rangeOf(column) {
    if (!column.quantiles) return "";
    const [least, low, , high, most] = column.quantiles.map(rounded);
    return `training data ${least} to ${most}, mostly ${low} to ${high}`;
  }

  function fieldOf(i) {
    const column = columns[i];
    const id = `field-${i}`;
    const label = element("label", { for: id }, column.label);
    if (column.unit) label.append(" ", element("span", { class: "unit" }, column.unit));
    let input;
    if (column.kind === "discrete") {
      input = element("select", { id }, element("option", { value: "" }, "not known"));
      column.levels.forEach((level, k) => input.append(element("option", { value: String(k) }, String(level))));
    } else {
      input = element("input", { id, type: "text", inputmode: "decimal", "aria-describedby": `${id}-hint` });
    }
    const hint = element("p", { id: `${id}-hint`, class: "hint" }, rangeOf(column));
    input.addEventListener("input", () => (check(i), update()));
    return element("div", { class: "field" }, label, input, hint);
  }

  function valueOf(i) {
    const text = $(`field-${i}`).value;
    if (columns[i].kind === "discrete") return text === "" ? null : columns[i].levels[Number(text)];
    return numberOf(text);
  }

  function check(i) {
    const column = columns[i];
    if (column.kind === "discrete") return;
    const value = valueOf(i);
    const hint = $(`field-${i}-hint`);
    const isWrong = Number.isNaN(value);
    const isOutside =
      value !== null && column.quantiles && (value < column.quantiles[0] || value > column.quantiles[4]);
    $(`field-${i}`).setAttribute("aria-invalid", String(isWrong));
    hint.className = isWrong || isOutside ? "hint outside" : "hint";
    hint.textContent = isWrong
      ? "not a number: it counts as not known"
      : (isOutside ? "outside the " : "") + rangeOf(column);
  }

  function current() {
    if (isWide) return rows[$("which").selectedIndex] || columns.map(() => null);
    return columns.map((column, i) => {
      if (column.fixed) return null;
      const value = valueOf(i);
      return Number.isNaN(value) ? null : value;
    });
  }

  // ---- pasted tables

  function cellsOf(text) {
    const first = text.split(/\r?\n/, 1)[0];
    const separator = ["\t", ";", ","].find((sign) => first.includes(sign)) || ",";
    const found = [[]];
    let cell = "";
    let quoted = false;
    for (let i = 0; i < text.length; i += 1) {
      const sign = text[i];
      if (quoted) {
        if (sign === '"' && text[i + 1] === '"') cell += text[(i += 1)];
        else if (sign === '"') quoted = false;
        else cell += sign;
      } else if (sign === '"' && cell === "") quoted = true;
      else if (sign === separator) (found[found.length - 1].push(cell), (cell = ""));
      else if (sign === "\n") (found[found.length - 1].push(cell), (cell = ""), found.push([]));
      else if (sign !== "\r") cell += sign;
    }
    found[found.length - 1].push(cell);
    return found.filter((line) => line.some((each) => each.trim() !== ""));
  }

  // Rows of a table by the names of its columns or, without names, in their order.
  function readTable(text) {
    const lines = cellsOf(text);
    if (!lines.length) return [];
    const names = lines[0].map((name) => name.trim());
    const place = columns.map((column) => names.indexOf(column.name));
    const isNamed = place.some((at) => at >= 0);
    if (!isNamed && lines[0].length !== columns.length)
      throw new Error(`a row has ${lines[0].length} cells, but the model has ${columns.length} columns: add a first row with their names`);
    return (isNamed ? lines.slice(1) : lines).map((line) =>
      columns.map((column, i) => {
        const text_ = (line[isNamed ? place[i] : i] || "").trim();
        if (text_ === "" || text_ === "NA" || text_ === "?") return null;
        if (column.kind === "discrete") return text_;
        const value = numberOf(text_);
        if (Number.isNaN(value)) throw new Error(`${column.name}: ${text_.slice(0, 40)} is no number`);
        return value;
      }),
    );
  }

  function take(text) {
    let problem = "";
    try {
      rows = readTable(text);
    } catch (error) {
      rows = [];
      problem = error.message;
    }
    const best = rows.map((row) => {
      const logs = reader.needsComplete && reader.read(row).some(Number.isNaN) ? null : predicted(row);
      if (!logs) return "a value is missing";
      const at = logs.indexOf(Math.max(...logs));
      return `${classes[at]} ${percent(Math.exp(logs[at]))}`;
    });
    $("which").replaceChildren(...best.map((text_, i) => element("option", {}, `${i + 1}: ${text_}`)));
    update(problem);
  }

  // ---- results

  const logPrior = () => shares.map(Math.log);
  const predicted = (row) => reader.predict(row, logPrior());

  function probabilities(logs, row) {
    const best = logs.indexOf(Math.max(...logs));
    const intervals = intervalOf && intervalOf(row, logPrior());
    $("interval-hint").textContent = intervals
      ? `In brackets: where the probability would be with unlimited training samples, with a chance of ${Math.round(100 * model.interval.level)}\u00a0%, as far as the model is right.`
      : `How far the probabilities could be off because training samples are few is not in this page: ${model.updated ? "it is not known for a model that was updated." : "the file cannot hold what this kind of model needs. The command cgnlearn predict --interval tells it."}`;
    $("probabilities").replaceChildren(
      ...logs.map((log, c) => {
        const bar = element("div", { style: `width: ${(100 * Math.exp(log)).toFixed(2)}%` });
        const track = element("div", { class: "track", "aria-hidden": "true" }, bar);
        const number = element("span", { class: "number" }, percent(Math.exp(log)));
        const span = intervals ? intervals[c] : null;
        if (span) {
          const width = `left: ${(100 * span[0]).toFixed(2)}%; width: ${(100 * (span[1] - span[0])).toFixed(2)}%`;
          track.append(element("span", { class: "whisker", style: width }));
        }
        return element(
          "div",
          { class: c === best ? "probability best" : "probability" },
          element("span", { class: "name" }, String(classes[c])),
          track,
          number,
          ...(span ? [element("span", { class: "span" }, `(${span.map(percent).join(" to ")})`)] : []),
        );
      }),
    );
  }

  function warnings(row, problem) {
    const found = problem ? [problem] : [];
    const outside = shown.filter((i) => {
      const { quantiles } = columns[i];
      return quantiles && row[i] !== null && (row[i] < quantiles[0] || row[i] > quantiles[4]);
    });
    const few = (list) => list.slice(0, 5).map((i) => columns[i].label).join(", ") + (list.length > 5 ? ", …" : "");
    if (outside.length) found.push(`Outside the training data: ${few(outside)}. The result is an extrapolation.`);
    const read = reader.read(row);
    const unknown = shown.filter((i) => row[i] !== null && Number.isNaN(read[i]));
    if (unknown.length) found.push(`Levels that training did not have, taken as not known: ${few(unknown)}.`);
    const typicality = reader.typicality(row);
    if (typicality !== null && typicality < ATYPICAL)
      found.push(
        `This sample is unlike the training data: ${percent(typicality)} of the training samples are as unusual. Treat the result with caution.`,
      );
    $("warnings").replaceChildren(...found.map((text) => element("p", { class: "warning" }, text)));
  }

  function shownValue(row, i) {
    return typeof row[i] === "number" ? `${rounded(row[i])}${columns[i].unit ? ` ${columns[i].unit}` : ""}` : String(row[i]);
  }

  // Log odds of a class before any value and after each one; the smallest steps of many are taken together.
  function stepsOf(row, c) {
    const part = columns.map(() => null);
    const oddsOf = (logs) => clipped(logs[c] - Math.log(Math.max(-Math.expm1(logs[c]), 1e-300)));
    const clipped = (odds) => Math.min(Math.max(odds, -30), 30);
    let before = oddsOf(predicted(part));
    const found = [{ name: "before any value", from: before, to: before, isEnd: true }];
    shown.forEach((i) => {
      if (row[i] === null) return;
      part[i] = row[i];
      const after = oddsOf(predicted(part));
      found.push({ name: `${columns[i].label} ${shownValue(row, i)}`, from: before, to: after });
      before = after;
    });
    found.push({ name: "with all values", from: before, to: before, isEnd: true });
    return found;
  }

  function fewer(steps) {
    const middle = steps.slice(1, -1);
    if (middle.length <= MOST_STEPS) return steps;
    const size = (step) => Math.abs(step.to - step.from);
    const kept = [...middle].sort((a, b) => size(b) - size(a)).slice(0, MOST_STEPS);
    let at = steps[0].to;
    const found = kept.map((step) => {
      const moved = { name: step.name, from: at, to: at + step.to - step.from };
      at = moved.to;
      return moved;
    });
    const rest = { name: `${middle.length - kept.length} other values`, from: at, to: steps[steps.length - 1].to };
    return [steps[0], ...found, rest, steps[steps.length - 1]];
  }

  function waterfall(row) {
    $("waterfall").hidden = reader.needsComplete;
    if (reader.needsComplete) return;
    const steps = fewer(stepsOf(row, $("class").selectedIndex));
    const least = Math.min(-3, ...steps.flatMap((step) => [step.from, step.to]));
    const most = Math.max(3, ...steps.flatMap((step) => [step.from, step.to]));
    const at = (odds) => (100 * (odds - least)) / (most - least);
    $("steps").replaceChildren(
      ...steps.map((step) => {
        const [left, right] = [Math.min(step.from, step.to), Math.max(step.from, step.to)];
        const kind = step.isEnd ? "" : step.to >= step.from ? "up" : "down";
        const bar = element("div", { class: kind, style: `left: ${at(left).toFixed(2)}%; width: ${(at(right) - at(left)).toFixed(2)}%` });
        return element(
          "div",
          { class: step.isEnd ? "step end" : "step", role: "listitem" },
          element("span", { class: "name" }, step.name),
          element("div", { class: "lane", "aria-hidden": "true" }, bar),
          element("span", { class: "number" }, percent(expit(step.to))),
        );
      }),
    );
  }

  function prevalence() {
    const c = $("class").selectedIndex;
    document.querySelectorAll(".of-class").forEach((each) => (each.textContent = String(classes[c])));
    $("slider").value = String(logit(shares[c]));
    $("share").textContent = percent(shares[c]);
    $("slider").setAttribute("aria-valuetext", percent(shares[c]));
    $("training-share").textContent = percent(Math.exp(model.class_log_prior[c]));
  }

  function update(problem) {
    const row = current();
    const isEmpty = shown.every((i) => row[i] === null);
    const missing = shown.filter((i) => row[i] === null).length;
    $("fill").textContent = isWide
      ? `${columns.length} columns; empty cells are allowed${reader.needsComplete ? " nowhere" : ""}`
      : `${shown.length - missing} of ${shown.length} values given. ${reader.needsComplete ? "All are needed." : "Leave empty what is not known."}`;
    if (reader.needsComplete && missing) {
      prevalence();
      $("probabilities").replaceChildren(element("p", {}, "This model needs a value for every feature."));
      $("warnings").replaceChildren(...(typeof problem === "string" && problem ? [element("p", { class: "warning" }, problem)] : []));
      $("waterfall").hidden = true;
      return;
    }
    const logs = predicted(row);
    if (follows) $("class").selectedIndex = logs.indexOf(Math.max(...logs));
    prevalence();
    probabilities(logs, row);
    warnings(row, typeof problem === "string" ? problem : "");
    waterfall(row);
    $("waterfall").hidden = $("waterfall").hidden || isEmpty;
  }

  function takeShare() {
    follows = false; // the slider stays with its class
    const c = $("class").selectedIndex;
    const share = expit(Number($("slider").value));
    const base = model.class_log_prior.map(Math.exp);
    const others = 1 - base[c];
    shares = base.map((own, k) => (k === c ? share : ((1 - share) * own) / others));
    update();
  }

  function typical() {
    columns.forEach((column, i) => {
      if (column.fixed) return;
      if (column.kind === "discrete") $(`field-${i}`).value = column.typical === null ? "" : String(column.typical);
      else $(`field-${i}`).value = column.quantiles ? rounded(column.quantiles[2]) : "";
      check(i);
    });
    update();
  }

  function provenance() {
    const { provenance: from } = model;
    const facts = [
      ["Training samples", `${rounded(from.training_samples)} (${classes.map((label, c) => `${label} ${rounded(from.training_samples_by_class[c])}`).join(", ")})`],
      ["Model", from.classifier],
      ["Members", model.members.map((member) => `${member.name} (${percent(member.weight)})`).join("; ")],
      ["Checksum of the training data", from.training_sha256.slice(0, 16)],
      ["Made with", `cgnlearn ${from.cgnlearn}`],
    ];
    facts.forEach(([name, value]) => $("provenance").append(element("dt", {}, name), element("dd", {}, value)));
  }

  $("title").textContent = model.title || "Calculator";
  model.about.split(/\n\s*\n/).filter((text) => text.trim()).forEach((text) => $("about").append(element("p", {}, text.trim())));
  classes.forEach((label) => $("class").append(element("option", {}, String(label))));
  $("class").addEventListener("change", () => ((follows = false), update()));
  $("slider").addEventListener("input", takeShare);
  $("reset-share").addEventListener("click", () => ((shares = model.class_log_prior.map(Math.exp)), update()));
  $("print").addEventListener("click", () => window.print());
  $("form").addEventListener("submit", (event) => event.preventDefault());
  $("form").addEventListener("reset", () => setTimeout(() => ((rows = []), $("which").replaceChildren(), isWide || shown.forEach(check), update())));
  if (isWide) {
    $("wide").hidden = false;
    $("typical").hidden = true;
    $("pasted").addEventListener("input", () => take($("pasted").value));
    $("which").addEventListener("change", () => update());
    $("file").addEventListener("change", async () => {
      if ($("file").files.length) take(($("pasted").value = await $("file").files[0].text()));
    });
  } else {
    shown.forEach((i) => $("fields").append(fieldOf(i)));
    $("typical").addEventListener("click", typical);
  }
  provenance();
  update();
})();
