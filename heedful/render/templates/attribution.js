{
  // A notebook may run this once for each of its cells.
  for (const root of document.querySelectorAll(".attribution .explained:not([data-ready])")) {
    root.dataset.ready = "yes";
    const data = JSON.parse(root.querySelector("script").textContent), isPage = root.dataset.page === "yes";
    const parts = [...root.querySelectorAll("[data-part]")], sources = [...root.querySelectorAll("[data-source]")];
    const chosen = root.querySelector(".chosen"), heat = root.parentElement.querySelector(".heat"), rows = [...heat.querySelectorAll("tbody tr")];
    const signed = (number) => (number < 0 ? "" : "+") + String(number);
    const width = (number, source) => {
      if (data.errors === null) return "—";
      const error = data.errors[number][source];
      return error === null ? "exact" : `± ${Number(error.toPrecision(2))}`;
    };
    const element = (tag, text, properties) => Object.assign(document.createElement(tag), { textContent: text, ...properties });

    const bar = (score, error, least, most) => {
      const box = element("span", "", { className: "bar" }), at = (value) => `${100 * (value - least) / (most - least || 1)}%`;
      const strip = (tag, low, high, kind) => {
        const line = element(tag, "", { className: kind });
        line.style.left = at(low);
        line.style.width = `calc(${at(high)} - ${at(low)})`;
        return line;
      };
      box.style.setProperty("--zero", at(0));
      box.append(strip("i", Math.min(0, score), Math.max(0, score), score < 0 ? "neg" : "pos"));
      if (error) box.append(strip("b", score - error, score + error, ""));
      return box;
    };

    const list = (number) => {
      const scores = data.scores[number], errors = scores.map((_, source) => (data.errors === null ? 0 : data.errors[number][source] ?? 0));
      const least = Math.min(0, ...scores.map((score, i) => score - errors[i])), most = Math.max(0, ...scores.map((score, i) => score + errors[i]));
      const order = scores.map((_, i) => i).sort((a, b) => Math.abs(scores[b]) - Math.abs(scores[a]) || a - b);
      chosen.querySelector("tbody").replaceChildren(...order.map((source) => {
        const row = document.createElement("tr"), drawing = document.createElement("td"), name = data.sources[source];
        drawing.append(bar(scores[source], errors[source], least, most));
        // Words may occur several times, so the text shows which one a row is about.
        const point = (is) => sources.forEach((piece) => piece.toggleAttribute("data-pointed", is && Number(piece.dataset.source) === source));
        row.addEventListener("mouseenter", () => point(true));
        row.addEventListener("mouseleave", () => point(false));
        row.append(element("td", name, { title: name }), element("td", signed(scores[source]), { className: "number" }), element("td", width(number, source), { className: "number" }), drawing);
        return row;
      }));
    };

    const select = (number, focus) => {
      const scores = data.scores[number], largest = Math.max(...scores.map(Math.abs)) || 1;
      for (const part of parts) {
        const is = Number(part.dataset.part) === number;
        part.setAttribute("aria-selected", is);
        part.tabIndex = is ? 0 : -1;
        if (is && focus) part.focus();
      }
      for (const piece of sources) {
        const source = Number(piece.dataset.source), score = scores[source], faint = Math.abs(score) < 0.03 * largest;
        piece.classList.toggle("pos", score > 0 && !faint);
        piece.classList.toggle("neg", score < 0 && !faint);
        piece.style.setProperty("--s", Math.abs(score) / largest);
        piece.title = `${signed(score)} ${width(number, source)}`;
      }
      rows.forEach((row, place) => row.toggleAttribute("data-selected", place === number));
      chosen.hidden = false;
      chosen.querySelector("h2").textContent = `${number + 1}. ${rows[number].cells[0].textContent}`;
      chosen.querySelector(".value").textContent = data.values[number];
      chosen.querySelector(".caption").textContent = data.captions[number];
      list(number);
    };
    const pick = (number, focus = false) => {
      select(number, focus);
      if (isPage) history.replaceState(null, "", `#${number + 1}`);
    };

    root.querySelector(".output").addEventListener("click", (event) => {
      const part = event.target.closest("[data-part]");
      if (part) pick(Number(part.dataset.part));
    });
    root.querySelector(".output").addEventListener("keydown", (event) => {
      const now = parts.findIndex((part) => part.getAttribute("aria-selected") === "true"), last = parts.length - 1;
      const next = { ArrowRight: now + 1, ArrowDown: now + 1, ArrowLeft: now - 1, ArrowUp: now - 1, Home: 0, End: last }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      pick(Number(parts[Math.min(last, Math.max(0, next))].dataset.part), true);
    });
    heat.addEventListener("click", (event) => {
      const row = rows.indexOf(event.target.closest("tbody tr"));
      if (row >= 0) pick(row);
    });
    heat.addEventListener("mouseover", (event) => {
      const cell = event.target.closest("td"), row = rows.indexOf(event.target.closest("tbody tr"));
      if (cell && row >= 0) cell.title = `${rows[row].cells[0].textContent} ← ${data.sources[cell.cellIndex - 1]}: ${signed(data.scores[row][cell.cellIndex - 1])} ${width(row, cell.cellIndex - 1)}`;
    });
    const linked = () => (isPage && /^#\d+$/.test(location.hash) ? Number(location.hash.slice(1)) - 1 : -1);
    if (isPage) addEventListener("hashchange", () => linked() in data.values && select(linked()));
    select(linked() in data.values ? linked() : data.first);
  }
}
