const signed = (value, digits) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);
const contribution = (value) => Math.abs(value) >= 0.1 || value === 0 ? signed(value, 2) : (value < 0 ? "−" : "+") + Number(Math.abs(value).toPrecision(2));
const shortened = value => typeof value === "number" ? String(value).replace("-", "−") : value;
const probability = p => p > 0.01 && p < 0.99 ? p.toFixed(2) : Math.min(Math.max(p, 0.001), 0.999).toFixed(3);
const percent = p => p > 0.9999 ? "> 99.99%" : p < 0.0001 ? "< 0.01%" : (100 * p).toFixed(2) + "%";

// Sort tables; filter the table of samples.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], rows = [...body.rows];
  const key = (row, i) => row.cells[i].dataset.value ?? row.cells[i].textContent;
  [...table.tHead.rows[0].cells].forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const numeric = rows.length > 0 && rows[0].cells[i].dataset.value !== undefined;
      rows.sort((a, b) => (numeric ? key(a, i) - key(b, i) : key(a, i).localeCompare(key(b, i))) * (down ? -1 : 1));
      body.append(...rows);
    });
  });
  if (!table.classList.contains("filtered")) continue;
  const tools = table.parentNode.previousElementSibling;
  const text = tools.querySelector("[type=search]"), wrong = tools.querySelector("[type=checkbox]");
  const show = () => {
    const wanted = text.value.trim().toLowerCase();
    let n = 0;
    for (const row of rows) {
      row.hidden = (wrong.checked && !row.classList.contains("wrong")) || !row.textContent.toLowerCase().includes(wanted);
      n += !row.hidden;
    }
    const { noun = "sample", nouns = "samples" } = tools.dataset;
    tools.querySelector("[aria-live]").textContent = `${n.toLocaleString("en")} ${n === 1 ? noun : nouns}`;
  };
  text.addEventListener("input", show);
  wrong.addEventListener("change", show);
}

// Decisions at the threshold that the reader selects.
for (const part of document.querySelectorAll(".decide")) {
  const { models } = JSON.parse(part.querySelector("script").textContent);
  const slider = part.querySelector("[type=range]"), output = part.querySelector("output");
  const inPercent = value => `${(100 * value).toFixed(1)}%`;
  const interval = ([, low, high]) => {
    const text = document.createElement("span");
    text.className = "soft";
    text.textContent = ` (${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)})`;
    return text;
  };
  slider.addEventListener("input", () => {
    output.textContent = `${slider.value}%`;
    for (const cell of part.querySelectorAll("td[data-measure]")) {
      const { measure, model } = cell.dataset, values = models[model][measure][slider.value - 1], shown = cell.firstElementChild;
      if (measure === "net_benefit") shown.textContent = signed(values[0], 3);
      else if (measure === "cost") shown.textContent = values[0].toFixed(3);
      else shown.replaceChildren(values.length ? inPercent(values[0]) : "—", ...(values.length > 1 ? [interval(values)] : []));
    }
  });
}

// Details of the sample that the reader selects.
for (const script of document.querySelectorAll("script.viewable")) {
  const { classes, features, samples } = JSON.parse(script.textContent);
  const part = script.closest("section"), chooser = part.querySelector(".chooser"), select = chooser.querySelector("select");
  const blank = part.querySelector("template").content.querySelector(".view"), shown = document.createElement("div");
  shown.className = "chosen-sample";
  chooser.after(shown);
  select.add(new Option("…", ""));
  samples.forEach((sample, i) => select.add(new Option(
    `${sample.name}: ${classes[sample.true]}, predicted ${classes[sample.predicted]} ${percent(sample.probability)}${sample.true === sample.predicted ? "" : " ✗"}`, i)));
  chooser.hidden = false;
  select.addEventListener("change", () => {
    shown.replaceChildren();
    if (select.value !== "") shown.append(view(samples[select.value]));
  });
  const typical = (feature, code, value) => {
    if (feature.shares) return value === "missing" ? "—" : `${feature.shares[code][value] ?? 0}% of samples`;
    if (!feature.ranges) return "";
    return feature.ranges[code] ? `${shortened(feature.ranges[code][0])} to ${shortened(feature.ranges[code][1])}` : "no values";
  };
  const view = sample => {
    const found = blank.cloneNode(true), of = classes[sample.predicted], against = classes[sample.against];
    found.querySelector("h4").textContent = `Sample ${sample.name}`;
    found.querySelector("p").textContent = `True class ${classes[sample.true]}, predicted ${of} with probability ${percent(sample.probability)}; ` +
      `second most probable: ${against}. Log odds between them: ${signed(sample.logOdds, 2)}.`;
    if (sample.interval) {
      const [low, high] = sample.interval, part = found.querySelector(".certainty");
      part.hidden = false;
      part.querySelector(".interval").style.left = `${100 * low}%`;
      part.querySelector(".interval").style.width = `${100 * (high - low)}%`;
      part.querySelector(".dot").style.left = `${100 * sample.probability}%`;
      part.querySelector(".words").textContent = `${probability(sample.probability)}, between ${probability(low)} and ${probability(high)}`;
    }
    for (const [kind, code] of [["of", sample.predicted], ["other", sample.against]]) {
      found.querySelector(`thead .${kind} span`).textContent = `typical of ${classes[code]}`;
      found.querySelector(`thead .${kind} .swatch`).className = `swatch c${code % {{ n_colours }}}`;
    }
    const first = found.querySelector("tbody tr");
    let rest = sample.logOdds;
    for (const [number, value, odds] of sample.items) {
      const line = first.cloneNode(true), feature = features[number];
      line.querySelector("th").textContent = feature.name;
      line.querySelector(".measured").textContent = shortened(value);
      for (const [kind, code] of [["of", sample.predicted], ["other", sample.against]]) {
        const cell = line.querySelector(`td.${kind}`);
        cell.textContent = typical(feature, code, value);
        cell.dataset.label = `typical of ${classes[code]}`;
      }
      line.querySelector(".odds").textContent = contribution(odds);
      const ranges = feature.ranges && [feature.ranges[sample.predicted], feature.ranges[sample.against]];
      if (ranges && ranges.every(Boolean) && typeof value === "number") {
        const low = Math.min(value, ranges[0][0], ranges[1][0]), high = Math.max(value, ranges[0][1], ranges[1][1]);
        const place = at => high > low ? 4 + 92 * (at - low) / (high - low) : 50;
        ["of", "other"].forEach((kind, i) => {
          const bar = line.querySelector(`.track .${kind}`);
          bar.classList.add(`c${(i ? sample.against : sample.predicted) % {{ n_colours }}}`);
          bar.style.left = `${place(ranges[i][0])}%`;
          bar.style.width = `${place(ranges[i][1]) - place(ranges[i][0])}%`;
        });
        line.querySelector(".mark").style.left = `${place(value)}%`;
      } else line.querySelector(".strip").replaceChildren();
      first.before(line);
      rest -= odds;
    }
    first.remove();
    found.querySelector("tr.rest .odds").textContent = signed(rest, 2);
    return found;
  };
}

// The peak nearest to the pointer.
for (const figure of document.querySelectorAll(".along")) {
  const { classes, peaks } = JSON.parse(figure.querySelector("script").textContent);
  const { left, right, from, to } = Object.fromEntries(Object.entries(figure.dataset).map(([name, value]) => [name, Number(value)]));
  const wide = figure.querySelector(".wide"), tip = document.createElement("div"), cursor = document.createElement("div");
  tip.className = "tip"; cursor.className = "cursor";
  tip.hidden = cursor.hidden = true;
  figure.append(cursor, tip);
  wide.addEventListener("pointermove", event => {
    const box = wide.getBoundingClientRect();
    const at = from + ((event.clientX - box.left) / box.width - left) / (right - left) * (to - from);
    if (!peaks.length) return;
    const [name, place, means, odds] = peaks.reduce((best, peak) => Math.abs(peak[1] - at) < Math.abs(best[1] - at) ? peak : best);
    const x = (left + (place - from) / (to - from) * (right - left)) * box.width;
    const listed = means.slice(0, 6).map((mean, i) => `${classes[i]} ${mean.toPrecision(3)}`).join(", ");
    tip.textContent = `${name}: ${listed}${means.length > 6 ? ", …" : ""}; contribution ${contribution(odds)}`;
    tip.hidden = cursor.hidden = false;
    cursor.style.left = `${x}px`;
    tip.style.left = `${Math.min(x + 8, box.width - 250)}px`;
  });
  wide.addEventListener("pointerleave", () => { tip.hidden = cursor.hidden = true; });
}

// On paper nothing is folded that belongs there.
addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details.known")) part.open = true; });

// Highlight the visible section.
const links = new Map([...document.querySelectorAll("nav.sections a")].map(link => [link.hash.slice(1), link]));
const watcher = new IntersectionObserver(entries => {
  for (const entry of entries) if (entry.isIntersecting) {
    for (const link of links.values()) link.classList.toggle("here", link === links.get(entry.target.id));
  }
}, { rootMargin: "0px 0px -75% 0px" });
for (const id of links.keys()) if (document.getElementById(id)) watcher.observe(document.getElementById(id));

// On paper, fill the last page with more samples. Columns of the size of a page show which page each part is on.
addEventListener("beforeprint", () => {
  const page = document.querySelector(".page"), end = document.querySelector("#limits"), several = page.classList.contains("several");
  const units = [...page.querySelectorAll("section.part")].flatMap(part => [
    ...(several ? [[...part.querySelectorAll(".view")].slice(1).map(view => [view]), [[...part.querySelectorAll(".listing")]]].flat() : []),
    ...[...part.querySelectorAll(".filtered tbody tr:nth-child(n+11):not([hidden])")].map(row => [row]),
  ]);
  const rules = [...document.styleSheets].flatMap(sheet => [...sheet.cssRules]).filter(rule => rule.media);
  const media = rules.map(rule => rule.media.mediaText), own = page.style.cssText;
  for (const rule of rules) rule.media.mediaText = rule.media.mediaText === "print" ? "all" : "not all";
  page.style.cssText = "width: 184mm; margin: 0";  // A4 within its margins
  for (const table of page.querySelectorAll(".scroll > table")) {  // a table that is too wide would make all of the page smaller
    if (table.offsetWidth > table.parentNode.clientWidth) table.style.zoom = table.parentNode.clientWidth / table.offsetWidth;
  }
  page.style.cssText += "; height: 271mm; columns: 184mm; column-gap: 0; column-fill: auto";
  const pages = n => {
    units.forEach((unit, i) => unit.forEach(element => element.classList.toggle("fits", i < n)));
    const [last] = [...end.getClientRects()].slice(-1);
    return Math.round((last.left - page.getBoundingClientRect().left) / page.clientWidth);
  };
  const fewest = pages(0);
  let low = 0, high = units.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (pages(middle) > fewest) high = middle - 1;
    else low = middle;
  }
  pages(low);
  page.style.cssText = own;
  rules.forEach((rule, i) => { rule.media.mediaText = media[i]; });
  for (const told of document.querySelectorAll(".printed")) {
    told.textContent = 10 + told.closest(".part").querySelectorAll(".filtered tr.fits").length;
  }
});
addEventListener("afterprint", () => { for (const table of document.querySelectorAll(".scroll > table")) table.style.zoom = ""; });
