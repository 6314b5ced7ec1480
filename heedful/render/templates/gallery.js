{
  const data = JSON.parse(document.getElementById("gallery").textContent);
  const find = (id) => document.getElementById(id);
  const { tokens, kept, side, patterns } = data;
  const n = tokens.length;

  const bytes = (text) => {
    const characters = atob(text), result = new Uint8Array(characters.length);
    for (let i = 0; i < result.length; i++) result[i] = characters.charCodeAt(i);
    return result;
  };
  const peaks = new Float32Array(bytes(data.peaks).buffer), weights = bytes(data.weights);
  const keys = data.keys === null ? null : new Uint16Array(bytes(data.keys).buffer);
  const small = data.small === null ? null : bytes(data.small);
  for (const name of ["peaks", "weights", "keys", "small"]) delete data[name];

  // A head's place among the maps: every layer has the mean of its heads as one map more.
  const place = (layer, head) => layer * (data.heads + 1) + head;
  const matrix = (map) => {
    const values = new Float32Array(n * n);
    for (let row = 0; row < n; row++) {
      const peak = peaks[map * n + row] / 255, start = (map * n + row) * kept;
      for (let i = 0; i < kept; i++) values[row * n + (keys ? keys[start + i] : i)] = weights[start + i] * peak;
    }
    return values;
  };
  const largest = (values) => values.reduce((most, value) => Math.max(most, value), 0) || 1;
  const colour = (name) => getComputedStyle(document.body).getPropertyValue(name).trim();

  const paint = (canvas, values, size) => {
    canvas.width = canvas.height = size;
    const brush = canvas.getContext("2d"), image = brush.createImageData(size, size), most = largest(values);
    const [red, green, blue] = colour("--map").split(/\s+/).map(Number), pixels = image.data;
    for (let i = 0, at = 0; i < values.length; i++, at += 4) {
      pixels[at] = red;
      pixels[at + 1] = green;
      pixels[at + 2] = blue;
      pixels[at + 3] = 255 * Math.sqrt(values[i] / most);
    }
    brush.putImageData(image, 0, 0);
  };

  const buttons = [...document.querySelectorAll("#thumbnails button")];
  const rows = [...document.querySelectorAll("#scores tbody tr")];
  const paintAll = () => buttons.forEach((button, index) => {
    const map = place(Math.floor(index / data.heads), index % data.heads), canvas = button.querySelector("canvas");
    canvas.classList.toggle("dense", side > 64);
    paint(canvas, small ? small.subarray(map * side * side, (map + 1) * side * side) : matrix(map), side);
  });

  let layer = 0, head = 0, values = matrix(0), pinned = null;
  const number = (value) => value.toPrecision(3);

  const drawMap = () => {
    const canvas = find("large"), size = Number(find("zoom").value);
    paint(canvas, values, n);
    canvas.style.width = canvas.style.height = `${n * size}px`;
    canvas.setAttribute("aria-label", `attention map of ${find("name").textContent}`);
    const step = Math.ceil(11 / size);
    for (const [id, edge] of [["columns", "left"], ["rows", "top"]]) {
      find(id).style[id === "columns" ? "width" : "height"] = `${n * size}px`;
      find(id).replaceChildren(...tokens.flatMap((token, index) => {
        if (index % step) return [];
        const span = Object.assign(document.createElement("span"), { textContent: token });
        span.style[edge] = `${index * size + (size - 11) / 2}px`;
        return [span];
      }));
    }
  };
  const cellAt = (event) => {
    const box = find("large").getBoundingClientRect();
    const at = (offset, length) => Math.min(n - 1, Math.max(0, Math.floor(offset / length * n)));
    return [at(event.clientY - box.top, box.height), at(event.clientX - box.left, box.width)];
  };
  const weight = (from, to) => {
    const value = values[from * n + to];
    if (value > 0) return number(value);
    const peak = peaks[place(layer, head) * n + from];
    if (!keys) return peak > 0 ? `under ${number(peak / 510)}` : "0";
    let least = Infinity;
    for (let key = 0; key < n; key++) if (values[from * n + key] > 0) least = Math.min(least, values[from * n + key]);
    return least < Infinity ? `at most ${number(least)}` : "0";
  };
  find("large").addEventListener("pointermove", (event) => {
    const [from, to] = cellAt(event);
    find("cell").textContent = `\u2068${tokens[from]}\u2069 (${from + 1}) → \u2068${tokens[to]}\u2069 (${to + 1}): ${weight(from, to)}`;
  });
  find("large").addEventListener("click", (event) => {
    pinned = { side: "left", index: cellAt(event)[0] };
    drawLines(pinned);
    reveal(pinned.index);
  });
  find("zoom").addEventListener("input", drawMap);

  const arcs = find("arcs"), rowHeight = 16, top = 24;
  const width = Math.min(520, find("lines").clientWidth), left = Math.round(width * .33), right = width - left;
  const make = (name, attributes, text) => {
    const element = document.createElementNS(arcs.namespaceURI, name);
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const middle = (index) => top + rowHeight * index + rowHeight / 2;
  const ground = make("g"), strokes = make("g"), words = make("g");
  arcs.append(ground, strokes, words);
  arcs.setAttribute("viewBox", `0 0 ${width} ${top + rowHeight * n + 8}`);
  arcs.setAttribute("width", width);
  arcs.setAttribute("height", top + rowHeight * n + 8);
  words.append(make("text", { x: left, y: 14, "text-anchor": "end", opacity: .7 }, "attends"));
  words.append(make("text", { x: right, y: 14, opacity: .7 }, "attended to"));
  tokens.forEach((token, index) => {
    words.append(make("text", { x: left, y: middle(index) + 4, "text-anchor": "end" }, token));
    words.append(make("text", { x: right, y: middle(index) + 4 }, token));
  });

  const drawLines = (chosen) => {
    let cells = [], present = 0;
    const take = (cell) => { if (values[cell] > 0) { present++; cells.push(cell); } };
    if (chosen === null) for (let cell = 0; cell < n * n; cell++) take(cell);
    else for (let i = 0; i < n; i++) take(chosen.side === "left" ? chosen.index * n + i : i * n + chosen.index);
    const most = cells.reduce((result, cell) => Math.max(result, values[cell]), 0) || 1;
    cells = cells.filter((cell) => values[cell] >= data.threshold * most);
    cells = cells.sort((a, b) => values[b] - values[a]).slice(0, data.lines).reverse();
    const stroke = `rgb(${colour("--map").split(/\s+/).join(",")})`;
    strokes.replaceChildren(...cells.map((cell) => make("line", {
      x1: left + 4, y1: middle(Math.floor(cell / n)), x2: right - 4, y2: middle(cell % n),
      stroke, "stroke-width": 1.5, opacity: (values[cell] / most).toFixed(3),
    })));
    const box = (where, index, opacity) => make("rect", {
      x: where === "left" ? 0 : right - 2, y: top + rowHeight * index, width: left + 2, height: rowHeight, fill: stroke, opacity,
    });
    ground.replaceChildren(...(chosen === null ? [] : [
      box(chosen.side, chosen.index, .35),
      ...cells.map((cell) => chosen.side === "left"
        ? box("right", cell % n, (.5 * values[cell] / most).toFixed(3))
        : box("left", Math.floor(cell / n), (.5 * values[cell] / most).toFixed(3))),
    ]));
    const who = chosen === null ? "" : chosen.side === "left" ? `\u2068${tokens[chosen.index]}\u2069 (${chosen.index + 1}) attends to: ` : `\u2068${tokens[chosen.index]}\u2069 (${chosen.index + 1}) is attended to by: `;
    const rest = present - cells.length;
    find("summary").textContent = cells.length === 0 ? `${who}no lines${keys ? " among the stored weights" : ""}.`
      : `${who}${cells.length} lines, largest weight ${number(most)}${rest ? `; ${rest} smaller weights not drawn` : ""}${keys ? `; of each row only the ${kept} largest weights are stored` : ""}.`;
  };
  const reveal = (index) => {
    const box = find("lines"), y = middle(index);
    if (y < box.scrollTop + 20 || y > box.scrollTop + box.clientHeight - 20) box.scrollTop = y - box.clientHeight / 2;
  };
  const tokenAt = (event) => {
    const box = arcs.getBoundingClientRect();
    const index = Math.floor((event.clientY - box.top - top) / rowHeight), x = event.clientX - box.left;
    if (index < 0 || index >= n || (x > left + 6 && x < right - 6)) return null;
    return { side: x <= left + 6 ? "left" : "right", index };
  };
  const same = (a, b) => a === b || (a && b && a.side === b.side && a.index === b.index);
  let shown = null;
  const look = (chosen) => {
    if (same(chosen, shown)) return;
    shown = chosen;
    drawLines(chosen);
  };
  arcs.addEventListener("pointermove", (event) => look(tokenAt(event) ?? pinned));
  arcs.addEventListener("pointerleave", () => look(pinned));
  arcs.addEventListener("click", (event) => {
    const chosen = tokenAt(event);
    pinned = same(chosen, pinned) ? null : chosen;
    look(pinned);
  });
  find("lines").addEventListener("keydown", (event) => {
    const now = pinned ?? { side: "left", index: -1 };
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) pinned = { side: now.side, index: Math.min(n - 1, Math.max(0, now.index + step)) };
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") pinned = { side: event.key === "ArrowLeft" ? "left" : "right", index: Math.max(0, now.index) };
    else if (event.key === "Escape") pinned = null;
    else return;
    event.preventDefault();
    look(pinned);
    if (pinned) reveal(pinned.index);
  });
  find("save").addEventListener("click", () => {
    const copy = arcs.cloneNode(true);
    copy.removeAttribute("id");
    copy.prepend(make("title", {}, find("name").textContent), make("rect", { width, height: arcs.getAttribute("height"), fill: colour("--paper") }));
    copy.setAttribute("fill", colour("--ink"));
    copy.setAttribute("font-family", "system-ui, sans-serif");
    copy.setAttribute("font-size", "12");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
    link.download = `layer-${layer}-${head === data.heads ? "mean" : `head-${head}`}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });

  const choose = (newLayer, newHead) => {
    [layer, head] = [newLayer, newHead];
    values = matrix(place(layer, head));
    const index = head < data.heads ? layer * data.heads + head : -1;
    find("layer").value = layer;
    find("head").value = head;
    find("name").textContent = index < 0 ? `layer ${layer}, mean of ${data.heads} heads` : `layer ${layer}, head ${head}: ${data.names[index]}`;
    for (const element of [...buttons, ...rows]) {
      if (Number(element.dataset.head) === index) element.setAttribute("aria-current", "true");
      else element.removeAttribute("aria-current");
    }
    buttons.forEach((button, i) => { button.tabIndex = i === Math.max(index, 0) ? 0 : -1; });
    drawMap();
    drawLines(shown = pinned);
  };
  const chooseIndex = (index) => choose(Math.floor(index / data.heads), index % data.heads);
  find("thumbnails").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) chooseIndex(Number(button.dataset.head));
  });
  find("thumbnails").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: data.heads, ArrowUp: -data.heads }[event.key];
    const next = buttons[buttons.indexOf(document.activeElement) + (step ?? 0)];
    if (!step || !next) return;
    event.preventDefault();
    chooseIndex(Number(next.dataset.head));
    next.focus();
  });
  find("scores").tBodies[0].addEventListener("click", (event) => {
    const row = event.target.closest("button")?.closest("tr");
    if (!row) return;
    chooseIndex(Number(row.dataset.head));
    find("name").scrollIntoView({ block: "center" });
  });
  for (const id of ["layer", "head"]) find(id).addEventListener("change", () => choose(Number(find("layer").value), Number(find("head").value)));

  const captions = buttons.map((button) => button.querySelector("small").textContent);
  find("pattern").addEventListener("change", () => {
    const chosen = find("pattern").value, index = Number(chosen);
    const follows = (number) => chosen === "" || data.clear[number][index] === 1;
    for (const element of [...buttons, ...rows]) element.classList.toggle("hidden-head", !follows(Number(element.dataset.head)));
    buttons.forEach((button, i) => {
      button.querySelector("small").textContent = chosen === "" ? captions[i] : `${patterns[index]} ${data.scores[i][index].toFixed(2)}`;
    });
    const n_clear = buttons.filter((_, i) => follows(i)).length;
    find("n-heads").textContent = chosen === "" ? "" : `${n_clear} of ${buttons.length} heads clearly follow this pattern.`;
  });

  // At first the map fills its box; the slider stands in the middle, so that the map can shrink and grow.
  const fitting = Math.max(2, Math.min(48, Math.floor((find("map").clientWidth - find("rows").offsetWidth - 4) / n)));
  find("zoom").max = 2 * fitting;
  find("zoom").value = fitting;
  paintAll();
  choose(0, 0);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { paintAll(); drawMap(); drawLines(shown); });
}
