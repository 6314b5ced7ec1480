const { classes, texts, mistakes } = JSON.parse(document.getElementById("data").textContent);
const filters = document.getElementById("filters"), form = filters.elements, more = document.getElementById("more");
const plain = texts.map((text) => text[4].map((part) => part[0]).join(""));
const element = (name, className, textContent) => Object.assign(document.createElement(name), { className, textContent });
["predicted", "label"].forEach((name, column) => {
  const used = new Set(texts.map((text) => String(text[column + 1])));
  for (const number of Object.keys(classes)) if (used.has(number)) form[name].append(new Option(classes[number], number));
});
function card([heading, , , outcome, parts, largest]) {
  const article = element("article", "", ""), title = element("small", "", `${heading} `), words = element("p", "", "");
  title.append(element("b", "", outcome));
  words.dir = "auto";
  words.append(...parts.map(([text, colour]) => {
    if (!colour) return text;
    const word = element("bdi", colour < 0 ? "w neg" : "w pos", text), strength = Math.abs(colour) / 100;
    word.style.setProperty("--s", strength);
    word.title = (colour < 0 ? "−" : "+") + (strength * largest).toPrecision(2);
    return word;
  }));
  article.append(title, words);
  if (words.textContent.length > 500) {
    const whole = element("button", "", "whole text");
    whole.addEventListener("click", () => { article.className = ""; whole.remove(); });
    article.className = "long";
    article.append(whole);
  }
  return article;
}
let chosen = [];
function grow() {
  document.getElementById("texts").append(...chosen.splice(0, 50).map((place) => card(texts[place])));
  more.hidden = !chosen.length;
}
function filter() {
  const escaped = form.search.value.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), letter = "[\\p{L}\\p{N}_]";
  const pattern = new RegExp(form.whole.checked && escaped ? `(?<!${letter})${escaped}(?!${letter})` : escaped, "iu");
  const fits = (name, value) => !form[name].value || String(value) === form[name].value;
  chosen = [...texts.keys()].filter((place) => fits("predicted", texts[place][1]) && fits("label", texts[place][2]) &&
    fits("outcome", texts[place][3]) && pattern.test(plain[place]));
  document.getElementById("shown").textContent = `${chosen.length} of ${texts.length} texts.`;
  document.getElementById("texts").replaceChildren();
  grow();
}
for (const button of document.querySelectorAll("[data-word]")) button.addEventListener("click", () => {
  form.search.value = button.dataset.word;
  form.whole.checked = true;
  filter();
  document.getElementById("all").scrollIntoView();
});
filters.addEventListener("input", filter);
filters.addEventListener("submit", (event) => event.preventDefault());
more.addEventListener("click", grow);
document.getElementById("mistakes")?.append(...mistakes.map(card));
filter();
