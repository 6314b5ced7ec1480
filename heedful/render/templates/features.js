const { features, texts } = JSON.parse(document.getElementById("data").textContent);
const byNumber = new Map(features.map((item) => [item.feature, item]));
const list = document.getElementById("list"), card = document.getElementById("card"), more = document.getElementById("more");
const filters = document.getElementById("filters"), form = filters.elements, body = list.querySelector("tbody");
function make(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== null));
  return made;
}
const short = (value) => value === null ? "—" : String(Number(value.toPrecision(3)));
const share = (value) => value === null ? "—" : value.toFixed(2);
// Rounded down, so that only what is perfect is 1.
const third = (value) => value === null ? "—" : (Math.floor(1000 * value + 1e-9) / 1000).toFixed(3);
const percent = (value) => value === null ? "—" : `${(100 * value).toPrecision(2)} %`;
const within = ([value, low, high], write) => write(value) + (low === null ? "" : ` [${write(low)}, ${write(high)}]`);
const columns = [
  ["feature", "feature", String, ""], ["label", "label", null, ""], ["auroc", "AUROC", third, ""],
  ["precision", "precision", share, "middle-only"], ["recall", "recall", share, "middle-only"], ["density", "density", percent, "middle-only"],
  ["mean", "mean", short, "wide-only"], ["largest", "largest", short, "middle-only"], ["n_texts", "texts", String, "wide-only"], ["raised", "raises", null, "wide-only"],
];
let order = features.some((item) => item.auroc !== null) ? ["auroc", "down"] : ["density", "down"], chosen = [];
for (const [key, name, write, kind] of columns) {
  const heading = make("th", { className: `${kind} ${write ? "number" : ""}` });
  if (write) {
    const button = make("button", { type: "button", textContent: name });
    button.dataset.key = key;
    button.addEventListener("click", () => sort(key, order[0] === key && order[1] === "down" ? "up" : "down"));
    heading.append(button);
    form.sort.append(new Option(name, key));
  } else heading.textContent = name;
  list.querySelector("thead tr").append(heading);
}
function sort(key, way) {
  order = [key, way];
  form.sort.value = key;
  filter();
}
const code = (text) => make("code", { textContent: text === "" ? "␣" : text.replaceAll("\n", "↵") });
function row(item) {
  const line = make("tr", {}, ...columns.map(([key, , write, kind]) => {
    const cell = make("td", { className: `${kind} ${write ? "number" : key}` });
    if (key === "feature") cell.append(make("a", { href: `#${item.feature}`, textContent: item.feature }));
    else if (key === "label") cell.append(make("bdi", { textContent: item.label.replaceAll("…", "…\u2060"), className: item.auroc === null ? "none" : "" }));
    else if (key === "raised") item.raised.slice(0, 4).forEach(([name]) => cell.append(code(name), " "));
    else cell.textContent = write(item[key]);
    return cell;
  }));
  line.addEventListener("click", () => { location.hash = item.feature; });
  return line;
}
function grow() {
  body.append(...chosen.splice(0, 100).map(row));
  more.hidden = !chosen.length;
}
function filter() {
  const words = form.search.value.toLowerCase().split(/\s+/).filter(Boolean), [key, way] = order;
  const fits = (item) => words.every((word) => String(item.feature) === word || `${item.label} ${item.words}`.toLowerCase().includes(word));
  chosen = features.filter(fits);
  // What has no number is last in both directions.
  const value = (item) => item[key] === null ? -Infinity : way === "down" ? item[key] : -item[key];
  chosen.sort((one, other) => value(other) - value(one) || (other.precision ?? 0) - (one.precision ?? 0) || one.feature - other.feature);
  for (const button of list.querySelectorAll("thead button")) {
    delete button.dataset.order;
    if (button.dataset.key === key) button.dataset.order = way;
  }
  document.getElementById("shown").textContent = `${chosen.length} of ${features.length} features; click one for its texts.`;
  body.replaceChildren();
  grow();
}
function histogram(item) {
  const drawing = (name, attributes, text = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  };
  const most = Math.max(...item.histogram), n = item.histogram.length;
  const picture = drawing("svg", { viewBox: "0 0 300 92", role: "img", "aria-label": "histogram of activations" });
  item.histogram.forEach((count, place) => {
    const height = 70 * Math.log1p(count) / Math.log1p(most);
    const bar = drawing("rect", { x: 300 * place / n, y: 74 - height, width: 300 / n - 1, height });
    bar.append(drawing("title", {}, `${short(item.largest * place / n)} to ${short(item.largest * (place + 1) / n)}: ${count} tokens`));
    picture.append(bar);
  });
  picture.append(drawing("text", { x: 0, y: 88 }, "0"), drawing("text", { x: 300, y: 88, "text-anchor": "end" }, short(item.largest)));
  return picture;
}
function excerpt(item, [text, start, n, peak, quantile, active]) {
  const { name, tokens } = texts[text], levels = new Map(), line = make("p", { className: "excerpt", dir: "auto" });
  for (let place = 0; place < active.length; place += 2) levels.set(active[place], active[place + 1]);
  const value = (place) => short(levels.get(place) * item.largest / 100);
  line.append(make("small", { textContent: `${value(peak)} in text ${name}${quantile === null ? "" : `, at the ${quantile} quantile`}` }), start ? "… " : "");
  for (let place = 0; place < n; place++) {
    const own = tokens[start + place];
    if (!levels.has(place)) { line.append(own); continue; }
    const token = make("bdi", { className: place === peak ? "w pos peak" : "w pos", textContent: own.trim() || "␣", title: value(place) });
    token.style.setProperty("--s", levels.get(place) / 100);
    line.append(own.slice(0, own.length - own.trimStart().length), token);
  }
  line.addEventListener("click", (event) => event.target.closest(".w")?.toggleAttribute("data-tapped"));
  return line;
}
function outputs(title, rows) {
  const items = rows.map(([name, effect, low, high]) => make("li", {}, code(name), ` ${effect > 0 ? "+" : "−"}${short(Math.abs(effect))}`, low === undefined ? null : make("small", { textContent: ` [${short(low)}, ${short(high)}]` })));
  return make("div", {}, make("h3", { textContent: title }), items.length ? make("ul", { className: "chips" }, ...items) : make("p", { textContent: "none" }));
}
function rules(item) {
  if (!item.rules.length) return [make("p", { textContent: "No token rule predicts where the feature is active." })];
  return item.rules.map(([threshold, aspect, values, auroc, precision, recall, density]) => make("p", {},
    make("b", { textContent: threshold ? "Strong" : "Active" }), ` where ${aspect}: `, ...values.flatMap((value, place) => [place ? " · " : "", make("bdi", { textContent: value })]),
    make("br"), `AUROC ${within(auroc, third)}, precision ${within(precision, share)}, recall ${within(recall, share)}; `,
    make("small", { textContent: `${threshold ? `above ${short(threshold)}` : "active"} in ${percent(density)} of held-out tokens` })));
}
function show(item) {
  const place = features.indexOf(item), [before, after] = [features[place - 1], features[place + 1]];
  const link = (other, textContent) => other ? make("a", { href: `#${other.feature}`, textContent }) : null;
  const near = item.near.map(([number, cosine]) => make("li", {}, link(byNumber.get(number), `feature ${number}`) ?? `feature ${number} (not here)`, ` ${share(cosine)} `, make("small", { textContent: byNumber.get(number)?.label ?? "" })));
  const strongest = item.excerpts.filter((own) => own[4] === null), lower = item.excerpts.filter((own) => own[4] !== null);
  const grid = (some) => make("div", { className: "columns" }, ...some.map((own) => excerpt(item, own)));
  card.replaceChildren(
    make("nav", {}, features.length > 1 ? make("a", { href: "#", textContent: "← all features" }) : null, link(before, "previous"), link(after, "next")),
    make("h2", {}, `Feature ${item.feature} `, make("small", {}, make("bdi", { textContent: item.label }))), ...rules(item),
    make("div", { className: "columns" },
      make("div", {}, make("h3", { textContent: "Activations" }), make("p", { textContent: `Active in ${percent(item.density)} of tokens (${item.n_tokens}) and in ${item.n_texts} texts; mean ${short(item.mean)}, largest ${short(item.largest)}. Bars: tokens per activation, log scale.` }), histogram(item)),
      make("div", {}, outputs("Outputs raised", item.raised), outputs("Outputs lowered", item.lowered), make("h3", { textContent: "Near features" }), make("ul", {}, ...near))),
    make("h3", { textContent: "Strongest texts" }), grid(strongest), lower.length ? make("h3", { textContent: "Texts at lower quantiles" }) : "", grid(lower));
}
let left = 0;
function route() {
  const item = features.length === 1 ? features[0] : location.hash.length > 1 ? byNumber.get(Number(location.hash.slice(1))) : undefined;
  if (item) { if (!list.hidden) left = scrollY; show(item); }
  list.hidden = Boolean(item);
  card.hidden = !item;
  scrollTo(0, item ? 0 : left);
}
filters.addEventListener("input", (event) => event.target === form.sort ? sort(form.sort.value, "down") : filter());
filters.addEventListener("submit", (event) => event.preventDefault());
more.addEventListener("click", grow);
addEventListener("hashchange", route);
sort(...order);
route();
