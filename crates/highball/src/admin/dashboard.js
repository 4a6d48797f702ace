"use strict";
// Everything that comes from the server is written as text: paths, and what applications report, may hold anything.
const $ = (id) => document.getElementById(id);
const POINTS = 60;
const history = new Map(); // by application: its last reports
const open = new Map(); // by request: the text of its backtrace
let token = sessionStorage.getItem("highball-token");
let unlocked = false;
let last = null;
let before = null;

const make = (tag, properties = {}, ...children) => {
  const element = document.createElement(tag);
  Object.assign(element, properties);
  element.append(...children);
  return element;
};

const seconds = (s) => s < 120 ? `${s} s` : s < 7200 ? `${Math.floor(s / 60)} min` : s < 172800 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} d`;
const age = (ms) => ms < 10000 ? `${(ms / 1000).toFixed(1)} s` : seconds(Math.floor(ms / 1000));
const rate = (n) => n === null ? "–" : n < 9.95 ? n.toFixed(1) : n.toFixed(0);
const ms = (n) => n === null ? "–" : n === Infinity ? "> 1 min" : n < 1 ? "< 1 ms" : n < 1000 ? `${n.toFixed(0)} ms` : `${(n / 1000).toFixed(1)} s`;
const mib = (n) => n === null ? "–" : `${Math.round(n / 1048576)} MiB`;

// What the last reports of an application say together.
function figures(app, at) {
  const points = history.get(app.id) || [];
  const earlier = points[Math.max(0, points.length - 5)];
  points.push({ at, answered: app.answered, failed: app.failed, times: app.times, limits: app.kernel_limits });
  if (points.length > POINTS) points.shift();
  history.set(app.id, points);
  if (!earlier || at <= earlier.at) return { requests: null, failed: null, p50: null, p95: null, throttled: null, line: [] };
  const time = (at - earlier.at) / 1000;
  const line = points.slice(1).map((point, index) => quantile(point.times, points[index].times, 0.95));
  return {
    requests: (app.answered - earlier.answered) / time,
    failed: (app.failed - earlier.failed) / time,
    p50: quantile(app.times, earlier.times, 0.5),
    p95: quantile(app.times, earlier.times, 0.95),
    throttled: throttled(app.kernel_limits, earlier.limits),
    line,
  };
}

function quantile(now, earlier, share) {
  const all = now.count - earlier.count;
  if (all <= 0) return null;
  const wanted = Math.ceil(all * share);
  const bucket = now.counts.findIndex((count, index) => count - earlier.counts[index] >= wanted);
  return bucket < 0 ? Infinity : now.limits_ms[bucket];
}

// The share of the time in which the application has computed, and had to wait because of cpu_max.
function throttled(now, earlier) {
  if (!now || !earlier || now.not_kept.includes("cpu_max")) return null;
  const periods = now.periods - earlier.periods;
  return periods > 0 ? (now.throttled_periods - earlier.throttled_periods) / periods : 0;
}

// What the kernel keeps the application within, where there are such limits.
function limits(app) {
  const kept = app.kernel_limits;
  if (!kept) return [];
  const facts = [];
  if (kept.memory_max_bytes !== null) {
    const used = kept.memory_bytes === null ? "–" : Math.round(kept.memory_bytes / 1048576);
    const killed = kept.oom_kills ? `, ${kept.oom_kills} processes killed` : "";
    facts.push(fact("Memory with files (memory_max)", `${used} of ${mib(kept.memory_max_bytes)}${killed}`, "long"));
  }
  if (kept.cpu_max !== null) {
    const share = app.figures.throttled;
    const throttled = share === null ? "" : `, throttled ${Math.round(share * 100)} % of the time`;
    facts.push(fact("CPU (cpu_max)", `${kept.cpu_max} cores${throttled}`, "long"));
  }
  return facts;
}

// The times of the last minute, on a scale of powers of two.
function sparkline(line) {
  const SVG = "http:" + "//www.w3.org/2000/svg";
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${POINTS} 20`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "time to the first byte, of 95 % of the answers, in the last minute");
  const height = (value) => value === null ? 20 : Math.max(1, 19 - Math.log2(Math.min(value, 65536) / 0.25));
  const left = POINTS - line.length;
  const points = line.map((value, index) => `L${left + index} ${height(value).toFixed(1)}L${left + index + 1} ${height(value).toFixed(1)}`);
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", line.length ? `M${left} 21${points.join("")}L${POINTS} 21` : "");
  svg.append(path);
  return svg;
}

const fact = (name, value, className = "") => make("div", { className }, make("dt", { textContent: name }), make("dd", {}, value));

function button(text, url, question) {
  const element = make("button", { type: "button", textContent: text });
  element.dataset.key = url;
  element.addEventListener("click", async () => {
    if (armed !== url) {
      armed = url; // the second click does it
      setTimeout(() => { if (armed === url) { armed = null; show(); } }, 5000);
      return show();
    }
    armed = null;
    await order(url);
  });
  if (armed === url) {
    element.className = "sure";
    element.textContent = question;
  }
  return element;
}
let armed = null;

async function order(url) {
  try {
    const answer = await fetch(url, { method: "POST", headers: { authorization: `Bearer ${token}` } });
    const text = await answer.text();
    if (answer.status === 403) return lock("The token is not valid any more.");
    const outcome = text.startsWith("{") ? JSON.parse(text) : {};
    say(outcome.done || `Not done: ${outcome.why_not || text}`);
  } catch (error) {
    say(`Not done: ${error.message}`);
  }
  show();
}

function say(text) {
  $("notice").textContent = text;
  $("notice").hidden = !text;
}

function lock(why) {
  sessionStorage.removeItem("highball-token");
  token = null;
  unlocked = false;
  say(why);
  show();
}

async function unlock(given) {
  const answer = await fetch("/actions/verify", { method: "POST", headers: { authorization: `Bearer ${given}` } });
  if (!answer.ok) return lock("This is not the token.");
  token = given;
  unlocked = true;
  sessionStorage.setItem("highball-token", given);
  say("");
  show();
}

function section(app, now) {
  const workers = app.workers;
  const threads = workers.filter((worker) => worker.state === "serving").reduce((sum, worker) => sum + worker.threads, 0);
  const busy = workers.reduce((sum, worker) => sum + worker.in_flight, 0);
  const memory = workers.reduce((sum, worker) => sum + (worker.memory_bytes || 0), 0);
  const head = make("div", { className: "head" }, make("h2", {}, app.name, make("small", { textContent: ` ${app.phase}, version ${app.generation}${app.under_way ? `, ${app.under_way}` : ""}${app.crash_loop ? `: ${app.crash_loop}` : ""}` })));
  if (unlocked && last.takes_orders) {
    const to = (name) => `/actions/${app.id}/${name}`;
    head.append(make("div", { className: "buttons" },
      button("Restart", to("restart"), "Restart: sure?"), button("Refork", to("refork"), "Refork: sure?"),
      button("+ worker", to("more-workers"), "One more: sure?"), button("− worker", to("fewer-workers"), "One fewer: sure?")));
  }
  const f = app.figures;
  const facts = make("dl", { className: "facts" },
    fact("Requests a second", rate(f.requests)), fact("Status 5xx a second", rate(f.failed)), fact("Queue", String(app.queue)),
    fact("Threads busy", `${busy} of ${threads}`), fact("Workers", `${workers.filter((worker) => worker.state === "serving").length} of ${app.workers_wanted}`),
    fact("Memory", memory ? mib(memory) : "–"), fact("First byte, half", ms(f.p50)), fact("First byte, 95 %", ms(f.p95)), ...limits(app), fact("First byte, 95 %, last minute", sparkline(f.line), "wide"));
  const notKept = app.kernel_limits?.not_kept.length ? [make("p", { className: "notice", textContent: `The kernel does not keep ${app.kernel_limits.not_kept.join(" and ")}: ${app.kernel_limits.problem}` })] : [];
  return make("section", {}, head, facts, ...notKept, workers.length ? table(app, now) : make("p", { className: "none", textContent: "No workers." }));
}

function table(app, now) {
  const columns = ["Worker", "State", "Requests", "Memory", "CPU", "Served", "Up", "Process"];
  const extra = (index) => index > 4 ? "extra" : "";
  const cells = (worker) => {
    const earlier = before?.apps.find((one) => one.id === app.id)?.workers.find((one) => one.pid === worker.pid);
    const took = earlier && worker.cpu_ms !== null && earlier.cpu_ms !== null ? (worker.cpu_ms - earlier.cpu_ms) / (now.at_ms - before.at_ms) : null;
    return [worker.worker, worker.state + (worker.replaced_for ? `, is replaced (${worker.replaced_for})` : ""), `${worker.in_flight} of ${worker.threads}`,
      mib(worker.memory_bytes), took === null ? "–" : `${Math.round(took * 100)} %`, worker.served, seconds(worker.uptime_seconds), worker.pid ?? "–"];
  };
  const row = (values, tag) => make("tr", {}, ...values.map((value, index) => make(tag, { textContent: value, className: extra(index) })));
  return make("div", { className: "table" }, make("table", {}, make("thead", {}, row(columns, "th")), make("tbody", {}, ...app.workers.map((worker) => row(cells(worker), "td")))));
}

function request(app, one, several) {
  const key = `${app.id}/${one.worker}/${one.ticket}`;
  const worker = one.worker === null ? "no worker yet" : `worker ${one.worker}`;
  const buttons = make("div", { className: "buttons" });
  if (one.worker !== null && one.stage !== "placed") {
    const toggle = make("button", { type: "button", textContent: open.has(key) ? "Hide" : "Backtrace" });
    toggle.dataset.key = key;
    toggle.addEventListener("click", () => backtrace(key));
    buttons.append(toggle);
    if (unlocked && last.takes_orders) buttons.append(button("Replace worker", `/actions/${app.id}/replace/${one.worker}`, `Replace ${worker}: sure?`));
  }
  const doing = one.stage === "running" ? one.doing || "" : `${one.stage}${one.doing ? `: ${one.doing}` : ""}`;
  const item = make("li", { className: one.age_ms >= 10000 ? "old" : "" }, make("div", { className: "request" },
    make("span", { className: "age", textContent: age(one.age_ms) }),
    make("span", { className: "what" }, make("b", { textContent: one.method }), ` ${one.path}`),
    make("span", { className: "doing", textContent: doing }),
    make("span", { className: "at", textContent: several ? `${app.name}, ${worker}` : worker }), buttons));
  if (open.has(key)) item.append(make("pre", { textContent: open.get(key) }));
  return item;
}

async function backtrace(key) {
  if (open.delete(key)) return show();
  open.set(key, "asking the worker…");
  show();
  try {
    const { request } = await (await fetch(`/requests/${key}`)).json();
    const text = request ? `${request.doing || "nothing is known"}\n\n${request.backtrace || "no backtrace"}` : "it has ended";
    if (open.has(key)) open.set(key, text);
  } catch (error) {
    open.set(key, `not known: ${error.message}`);
  }
  show();
}

function show() {
  if (!last) return;
  const now = last.overview;
  document.documentElement.classList.toggle("bad", !now);
  document.documentElement.classList.toggle("unlocked", unlocked && last.takes_orders);
  if (!now) {
    $("state").textContent = "The server's event loop does not answer";
    return;
  }
  const focused = document.activeElement?.dataset?.key;
  const busy = now.apps.flatMap((app) => app.requests.map((one) => [app, one])).sort((a, b) => b[1].age_ms - a[1].age_ms);
  const more = now.apps.reduce((sum, app) => sum + app.more_requests, 0);
  const waiting = now.apps.reduce((sum, app) => sum + app.queue, 0);
  const total = now.apps.reduce((sum, app) => sum + (app.figures.requests || 0), 0);
  $("server").textContent = `${now.version}, process ${now.pid}, up ${seconds(now.uptime_seconds)}`;
  $("state").textContent = now.phase;
  $("figures").textContent = `${now.connections} connections · ${rate(total)} requests a second · ${waiting} waiting`;
  $("apps").replaceChildren(...now.apps.map((app) => section(app, now)));
  $("requests").hidden = false;
  $("count").textContent = `${busy.length} without an answer${more ? `, and ${more} younger ones` : ""}, oldest first`;
  $("list").replaceChildren(...busy.map(([app, one]) => request(app, one, now.apps.length > 1)));
  if (!busy.length) $("list").append(make("li", { className: "none", textContent: "None at this moment." }));
  $("unlock").hidden = !last.takes_orders || unlocked;
  for (const key of open.keys()) if (!busy.some(([app, one]) => `${app.id}/${one.worker}/${one.ticket}` === key)) open.delete(key);
  if (focused) [...document.querySelectorAll("button")].find((one) => one.dataset.key === focused)?.focus();
}

let events = null;
function follow() {
  events?.close();
  events = null;
  if (document.hidden) return; // a page that is not looked at asks for nothing
  events = new EventSource("/events");
  events.onmessage = (event) => {
    before = last?.overview ?? null;
    last = JSON.parse(event.data);
    if (before && last.overview && before.pid !== last.overview.pid) history.clear();
    last.overview?.apps.forEach((app) => { app.figures = figures(app, last.overview.at_ms); });
    show();
  };
  events.onerror = () => {
    document.documentElement.classList.add("bad");
    $("state").textContent = "No connection to the server";
    if (events.readyState === EventSource.CLOSED) setTimeout(follow, 5000);
  };
}

$("unlock-form").addEventListener("submit", (event) => {
  event.preventDefault();
  unlock($("token").value.trim()).catch((error) => say(`Not done: ${error.message}`));
  $("token").value = "";
});
document.addEventListener("visibilitychange", follow);
if (token) unlock(token).catch(() => {});
follow();
