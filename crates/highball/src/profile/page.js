"use strict";
const { names, stacks, unit } = JSON.parse(document.getElementById("data").textContent);
const [graph, detail, search, reset, found, methods] =
  ["graph", "detail", "search", "reset", "found", "methods"].map((id) => document.getElementById(id));
const SHOWN_METHODS = 50;
const LEAST_WIDTH = 0.0006; // parts of the whole width
const ROW = 20; // pixels
const place = ([, file, line]) => (file ? file + (line ? `:${line}` : "") : "");

// The tree of calls. A node: its name, weight with all calls, own weight, caller and calls.
const node = (name, caller) => ({ name, total: 0, own: 0, caller, calls: new Map(), depth: caller ? caller.depth + 1 : 0 });
const root = node(-1, null);
const totals = names.map(() => [0, 0]);
for (const [stack, weight] of stacks) {
  let at = root;
  root.total += weight;
  for (const name of stack) {
    if (!at.calls.has(name)) at.calls.set(name, node(name, at));
    at = at.calls.get(name);
    at.total += weight;
  }
  at.own += weight;
  totals[stack[stack.length - 1]][0] += weight;
  for (const name of new Set(stack)) totals[name][1] += weight;
}

function amount(weight) {
  const share = root.total ? `${((100 * weight) / root.total).toFixed(1)} %` : "0 %";
  if (unit === "objects") return [share, `${weight.toLocaleString("en")} objects`];
  return [share, weight < 1e6 ? `${(weight / 1e3).toFixed(0)} ms` : `${(weight / 1e6).toFixed(2)} s`];
}

function label(at) {
  return at === root ? "all" : names[at.name][0];
}

function kind(at) {
  if (at === root) return "native";
  const [name, file] = names[at.name];
  if (/^(Highball::|\()/.test(name) || /\/lib\/highball\//.test(file)) return "server";
  if (!file) return "native";
  if (/\/gems\/|\/rubygems-integration\/|\/usr\/share\/rubygems|\/vendor_ruby\//.test(file)) return "gem";
  return /^<internal:|\/lib\/ruby\//.test(file) ? "ruby" : "app";
}

let zoomed = root;
let current = root;
let words = "";
let boxes = new Map();

function matches(at) {
  return words !== "" && at !== root && names[at.name].slice(0, 2).join(" ").toLowerCase().includes(words);
}

function draw() {
  boxes = new Map();
  graph.replaceChildren();
  let deepest = 0;
  const box = (at, left, width, row) => {
    deepest = Math.max(deepest, row);
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label(at);
    button.className = `${kind(at)}${matches(at) ? " found" : ""}${row < zoomed.depth ? " outer" : ""}`;
    button.style.left = `${100 * left}%`;
    button.style.width = `${100 * width}%`;
    button.style.top = `${row * ROW}px`;
    button.tabIndex = -1;
    button.title = `${label(at)}\n${amount(at.total).join(", ")}`;
    button.setAttribute("aria-label", `${label(at)}, ${amount(at.total).join(", ")}`);
    button.addEventListener("click", () => zoom(at));
    button.addEventListener("focus", () => choose(at));
    button.addEventListener("mouseenter", () => describe(at));
    boxes.set(at, button);
    graph.append(button);
  };
  for (let outer = zoomed.caller; outer; outer = outer.caller) box(outer, 0, 1, outer.depth);
  const level = [[zoomed, 0, 1]];
  while (level.length) {
    const [at, left, width] = level.pop();
    box(at, left, width, at.depth);
    let from = left;
    for (const call of ordered(at)) {
      const part = at.total ? (width * call.total) / at.total : 0;
      if (part >= LEAST_WIDTH) level.push([call, from, part]);
      from += part;
    }
  }
  graph.style.height = `${(deepest + 1) * ROW + 2}px`;
  reset.disabled = zoomed === root;
  if (!boxes.has(current)) current = zoomed;
  boxes.get(current).tabIndex = 0;
}

function ordered(at) {
  return [...at.calls.values()].sort((one, other) => other.total - one.total);
}

function zoom(at) {
  zoomed = at;
  current = at;
  draw();
  boxes.get(at).focus();
}

function choose(at) {
  const before = boxes.get(current);
  if (before) before.tabIndex = -1;
  current = at;
  boxes.get(at).tabIndex = 0;
  describe(at);
}

function describe(at) {
  const where = at === root ? "" : place(names[at.name]);
  const own = at.own ? `; itself ${amount(at.own).join(", ")}` : "";
  detail.textContent = `${label(at)}: ${amount(at.total).join(", ")}${own}${where ? ` – ${where}` : ""}`;
}

graph.addEventListener("keydown", (event) => {
  const shown = (list) => list.filter((at) => boxes.has(at));
  const siblings = current.caller ? shown(ordered(current.caller)) : [current];
  const at = siblings.indexOf(current);
  const next = {
    ArrowDown: () => shown(ordered(current))[0],
    ArrowUp: () => current.caller,
    ArrowLeft: () => siblings[at - 1],
    ArrowRight: () => siblings[at + 1],
    Home: () => siblings[0],
    End: () => siblings[siblings.length - 1],
  }[event.key];
  if (!next) return;
  event.preventDefault();
  const box = boxes.get(next());
  if (box) box.focus();
});

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target !== search) {
    event.preventDefault();
    search.focus();
  } else if (event.key === "Escape" && event.target !== search && zoomed.caller) {
    zoom(zoomed.caller);
  }
});

reset.addEventListener("click", () => zoom(root));

search.addEventListener("input", () => {
  words = search.value.trim().toLowerCase();
  draw();
  list();
  if (!words) return found.replaceChildren();
  const weight = stacks.reduce((sum, [stack, part]) => {
    return stack.some((name) => names[name].slice(0, 2).join(" ").toLowerCase().includes(words)) ? sum + part : sum;
  }, 0);
  found.textContent = `${amount(weight).join(", ")} in stacks with it`;
});

function list() {
  const rows = names.map((name, number) => [name, ...totals[number]]);
  const wanted = rows.filter(([name, , total]) => total && name.slice(0, 2).join(" ").toLowerCase().includes(words));
  wanted.sort((one, other) => other[1] - one[1] || other[2] - one[2]);
  methods.replaceChildren(...wanted.slice(0, SHOWN_METHODS).map(([name, own, total]) => {
    const row = document.createElement("tr");
    for (const text of [amount(own).join(" · "), amount(total)[0], name[0], place(name)]) {
      row.insertCell().textContent = text;
    }
    return row;
  }));
}

draw();
list();
