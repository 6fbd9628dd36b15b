const signed = (value, digits) => (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);
const adds = (value) => Math.abs(value) >= 0.1 || value === 0 ? signed(value, 2) : (value < 0 ? "−" : "+") + Number(Math.abs(value).toPrecision(2));
const told = value => typeof value === "number" ? String(value).replace("-", "−") : value;
const percent = p => p > 0.9999 ? "> 99.99 %" : p < 0.0001 ? "< 0.01 %" : (100 * p).toFixed(2) + " %";

// Sorting, and filtering of the samples.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], samples = [...body.samples];
  const key = (sample, i) => sample.cells[i].dataset.value ?? sample.cells[i].textContent;
  [...table.tHead.samples[0].cells].forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const numeric = samples.length > 0 && samples[0].cells[i].dataset.value !== undefined;
      samples.sort((a, b) => (numeric ? key(a, i) - key(b, i) : key(a, i).localeCompare(key(b, i))) * (down ? -1 : 1));
      body.append(...samples);
    });
  });
  if (!table.classList.contains("filtered")) continue;
  const tools = table.parentNode.previousElementSibling;
  const text = tools.querySelector("[type=search]"), wrong = tools.querySelector("[type=checkbox]");
  const show = () => {
    const wanted = text.value.trim().toLowerCase();
    let n = 0;
    for (const sample of samples) {
      sample.hidden = (wrong.checked && !sample.classList.contains("wrong")) || !sample.textContent.toLowerCase().includes(wanted);
      n += !sample.hidden;
    }
    tools.querySelector("[aria-live]").textContent = `${n} row${n === 1 ? "" : "s"}`;
  };
  text.addEventListener("input", show);
  wrong.addEventListener("change", show);
}

// A sample up close, chosen by the reader.
for (const script of document.querySelectorAll("script.viewable")) {
  const { classes, features, samples } = JSON.parse(script.textContent);
  const part = script.closest("section"), chooser = part.querySelector(".chooser"), select = chooser.querySelector("select");
  const blank = part.querySelector("template").content.querySelector(".view"), shown = document.createElement("div");
  shown.className = "chosen-sample";
  chooser.after(shown);
  select.add(new Option("…", ""));
  samples.forEach((sample, i) => select.add(new Option(
    `${row.name}: ${classes[row.true]}, predicted ${classes[row.predicted]} ${percent(row.probability)}${row.true === row.predicted ? "" : " ✗"}`, i)));
  chooser.hidden = false;
  select.addEventListener("change", () => {
    shown.replaceChildren();
    if (select.value !== "") shown.append(view(samples[select.value]));
  });
  const usual = (feature, code, value) => {
    if (feature.shares) return value === "missing" ? "—" : `${feature.shares[code][value] ?? 0} % of rows`;
    if (!feature.ranges) return "";
    return feature.ranges[code] ? `${told(feature.ranges[code][0])} to ${told(feature.ranges[code][1])}` : "none measured";
  };
  const view = sample => {
    const found = blank.cloneNode(true), of = classes[sample.predicted], against = classes[sample.against];
    found.querySelector("h4").textContent = `Row ${row.name}`;
    found.querySelector("p").textContent = `True class ${classes[row.true]}, predicted ${of} with probability ${percent(row.probability)}; ` +
      `the next is ${against}. Log-odds between them: ${signed(row.logOdds, 2)}.`;
    found.querySelector("thead .for").textContent = `usual in ${of}`;
    found.querySelector("thead .against").textContent = `usual in ${against}`;
    const first = found.querySelector("tbody tr");
    let rest = sample.logOdds;
    for (const [number, value, odds] of sample.items) {
      const line = first.cloneNode(true), feature = features[number];
      line.querySelector("th").textContent = feature.name;
      line.querySelector(".measured").textContent = told(value);
      for (const [kind, code] of [["for", sample.predicted], ["against", sample.against]]) {
        const cell = line.querySelector(`td.${kind}`);
        cell.textContent = usual(feature, code, value);
        cell.dataset.label = `usual: ${classes[code]}`;
      }
      line.querySelector(".odds").textContent = adds(odds);
      const ranges = feature.ranges && [feature.ranges[sample.predicted], feature.ranges[sample.against]];
      if (ranges && ranges.every(Boolean) && typeof value === "number") {
        const low = Math.min(value, ranges[0][0], ranges[1][0]), high = Math.max(value, ranges[0][1], ranges[1][1]);
        const place = at => high > low ? 4 + 92 * (at - low) / (high - low) : 50;
        [".track .for", ".track .against"].forEach((name, i) => {
          const bar = line.querySelector(name);
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

// The peak under the pointer.
for (const figure of document.querySelectorAll(".along")) {
  const { of, against, peaks, axis } = JSON.parse(figure.querySelector("script").textContent);
  const { left, right, from, to } = Object.fromEntries(Object.entries(figure.dataset).map(([name, value]) => [name, Number(value)]));
  const wide = figure.querySelector(".wide"), tip = document.createElement("div"), cursor = document.createElement("div");
  tip.className = "tip"; cursor.className = "cursor";
  tip.hidden = cursor.hidden = true;
  figure.append(cursor, tip);
  const places = peaks.map(peak => Number(peak[0].slice(axis.length)));
  wide.addEventListener("pointermove", event => {
    const box = wide.getBoundingClientRect();
    const at = from + ((event.clientX - box.left) / box.width - left) / (right - left) * (to - from);
    let nearest = 0;
    places.forEach((place, i) => { if (Math.abs(place - at) < Math.abs(places[nearest] - at)) nearest = i; });
    if (!peaks.length) return;
    const [name, above, below, odds] = peaks[nearest];
    const x = (left + (places[nearest] - from) / (to - from) * (right - left)) * box.width;
    tip.textContent = `${name}: ${of} ${above.toPrecision(3)}, ${against} ${below.toPrecision(3)}; adds ${adds(odds)}`;
    tip.hidden = cursor.hidden = false;
    cursor.style.left = `${x}px`;
    tip.style.left = `${Math.min(x + 8, box.width - 250)}px`;
  });
  wide.addEventListener("pointerleave", () => { tip.hidden = cursor.hidden = true; });
}

// The section in sight.
const links = new Map([...document.querySelectorAll("nav.sections a")].map(link => [link.hash.slice(1), link]));
const watcher = new IntersectionObserver(entries => {
  for (const entry of entries) if (entry.isIntersecting) {
    for (const link of links.values()) link.classList.toggle("here", link === links.get(entry.target.id));
  }
}, { rootMargin: "0px 0px -75% 0px" });
for (const id of links.keys()) if (document.getElementById(id)) watcher.observe(document.getElementById(id));
