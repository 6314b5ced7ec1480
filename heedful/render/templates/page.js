{
  // A notebook may run this once for each of its cells.
  const fresh = (selector) => [...document.querySelectorAll(selector)].filter((element) => !element.dataset.ready && (element.dataset.ready = "yes"));
  for (const table of fresh("table.sortable")) {
    const body = table.tBodies[0];
    for (const button of table.querySelectorAll("thead button")) {
      const column = button.parentElement.cellIndex;
      button.addEventListener("click", () => {
        const [first, second] = column === 0 ? ["up", "down"] : ["down", "up"];
        const order = button.dataset.order === first ? second : first;
        for (const other of table.querySelectorAll("thead button")) delete other.dataset.order;
        button.dataset.order = order;
        const value = (row) => Number(row.cells[column].dataset.v);
        const rows = [...body.rows].sort((a, b) => (order === "up" ? value(a) - value(b) : value(b) - value(a)));
        body.append(...rows);
      });
    }
  }
  for (const methods of fresh(".heedful .methods")) {
    const picker = methods.querySelector("select"), [shown, folded] = methods.querySelectorAll("tbody");
    const rows = [...shown.rows, ...folded.rows];
    const pick = () => {
      const chosen = rows[picker.selectedIndex];
      shown.replaceChildren(chosen);
      folded.replaceChildren(...rows.filter((row) => row !== chosen));
    };
    picker.closest("p").hidden = false;
    picker.addEventListener("change", pick);
    pick();
  }
  // Where nothing can point, a tap shows the score.
  for (const strip of fresh(".heedful .strip")) strip.addEventListener("click", (event) => event.target.closest(".w")?.toggleAttribute("data-tapped"));
  for (const maps of fresh(".heedful .maps")) {
    const { queries, keys, heads } = JSON.parse(maps.querySelector("script").textContent);
    const cell = maps.nextElementSibling;
    const ink = getComputedStyle(maps).getPropertyValue("--map");
    heads.forEach((matrix, head) => {
      const figure = document.createElement("figure");
      const canvas = document.createElement("canvas");
      const caption = document.createElement("figcaption");
      caption.textContent = `head ${head + 1}`;
      canvas.width = keys.length;
      canvas.height = queries.length;
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", `attention matrix of head ${head + 1}`);
      const brush = canvas.getContext("2d");
      const most = Math.max(...matrix.flat()) || 1;
      matrix.forEach((row, from) => row.forEach((weight, to) => {
        brush.fillStyle = `rgb(${ink} / ${Math.sqrt(weight / most)})`;
        brush.fillRect(to, from, 1, 1);
      }));
      canvas.addEventListener("mousemove", (event) => {
        const at = (offset, size, n) => Math.min(n - 1, Math.max(0, Math.floor(offset / size * n)));
        const from = at(event.offsetY, canvas.clientHeight, queries.length);
        const to = at(event.offsetX, canvas.clientWidth, keys.length);
        cell.textContent = `head ${head + 1}: ${queries[from]} → ${keys[to]}: ${matrix[from][to]}`;
      });
      figure.append(caption, canvas);
      if (Math.max(keys.length, queries.length) <= 20) {
        const labels = (place, tokens) => {
          const list = document.createElement("div");
          list.className = place;
          list.append(...tokens.map((token) => Object.assign(document.createElement("span"), { textContent: token })));
          return list;
        };
        figure.append(labels("rows", queries), labels("columns", keys));
      }
      maps.append(figure);
    });
  }
}
