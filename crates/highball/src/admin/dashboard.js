"use strict";
// The server writes the page, escaped; this script takes over what has changed since, and adds what only a browser knows: open
// backtraces, buttons that wait for a second click, and the token. Texts that it fetches itself it writes as text, never as HTML.
const $ = (id) => document.getElementById(id);
const content = $("content");
const open = new Map(); // by request: the text of its backtrace
// Less motion: fewer changes.
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const CALM_MS = 5000;
const ARMED_MS = 5000;
let token = sessionStorage.getItem("highball-token");
let armed = null;
let drawn = 0;

// Makes an element what another one is, and keeps every element that stays: with its focus, selection and open texts.
function morph(old, fresh) {
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  if ("keep" in old.dataset) return;
  const keyed = new Map([...old.children].filter((child) => child.dataset.key).map((child) => [child.dataset.key, child]));
  // What has gone goes first: an element that is moved would lose its focus.
  const keys = new Set([...fresh.children].map((child) => child.dataset.key));
  for (const [key, child] of keyed) if (!keys.has(key)) child.remove();
  let place = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const key = child.dataset?.key;
    const beside = place && !place.dataset?.key && place.nodeName === child.nodeName ? place : null;
    const same = key ? keyed.get(key) : beside;
    keyed.delete(key); // requests that no worker has yet share one
    if (!same) {
      old.insertBefore(child, place);
      continue;
    }
    if (same === place) place = place.nextSibling;
    else old.insertBefore(same, place);
    if (same.nodeType === Node.ELEMENT_NODE) morph(same, child);
    else if (same.data !== child.data) same.data = child.data;
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

// What only this browser knows.
function decorate() {
  for (const pre of content.querySelectorAll("pre[data-of]")) {
    const text = open.get(pre.dataset.of);
    pre.hidden = text === undefined;
    if (pre.textContent !== (text ?? "")) pre.textContent = text ?? "";
  }
  for (const button of content.querySelectorAll("[data-backtrace]")) {
    const isOpen = open.has(button.dataset.backtrace);
    button.textContent = isOpen ? "Hide" : "Backtrace";
    button.setAttribute("aria-expanded", isOpen);
  }
  for (const button of content.querySelectorAll("[data-order]")) {
    button.dataset.label ??= button.textContent;
    const isArmed = armed === button.dataset.order;
    button.classList.toggle("sure", isArmed);
    button.textContent = isArmed ? button.dataset.sure : button.dataset.label;
  }
}

function show(html) {
  if (calm.matches && performance.now() - drawn < CALM_MS) return;
  drawn = performance.now();
  const fresh = document.createElement("div");
  fresh.append(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
  fresh.id = content.id;
  fresh.dataset.events = content.dataset.events;
  morph(content, fresh);
  for (const key of open.keys()) if (![...content.querySelectorAll("pre[data-of]")].some((pre) => pre.dataset.of === key)) open.delete(key);
  decorate();
}

async function backtrace(key) {
  if (open.delete(key)) return decorate();
  open.set(key, "asking the worker…");
  decorate();
  try {
    const { request } = await (await fetch(`/requests/${key}`)).json();
    const text = request ? `${request.doing || "nothing is known"}\n\n${request.backtrace || "no backtrace"}` : "it has ended";
    if (open.has(key)) open.set(key, text);
  } catch (error) {
    open.set(key, `not known: ${error.message}`);
  }
  decorate();
}

// The second click does it.
async function order(url) {
  if (armed !== url) {
    armed = url;
    setTimeout(() => { if (armed === url) { armed = null; decorate(); } }, ARMED_MS);
    return decorate();
  }
  armed = null;
  try {
    const answer = await fetch(url, { method: "POST", headers: { authorization: `Bearer ${token}` } });
    const text = await answer.text();
    if (answer.status === 403) return lock("The token is not valid any more.");
    const outcome = text.startsWith("{") ? JSON.parse(text) : {};
    say(outcome.done || `Not done: ${outcome.why_not || text}`);
  } catch (error) {
    say(`Not done: ${error.message}`);
  }
  decorate();
}

function say(text) {
  $("notice").textContent = text;
  $("notice").hidden = !text;
}

function setUnlocked(isUnlocked) {
  document.documentElement.classList.toggle("unlocked", isUnlocked);
  if ($("unlock")) $("unlock").hidden = isUnlocked;
}

function lock(why) {
  sessionStorage.removeItem("highball-token");
  token = null;
  setUnlocked(false);
  say(why);
}

async function unlock(given) {
  const answer = await fetch("/actions/verify", { method: "POST", headers: { authorization: `Bearer ${given}` } });
  if (!answer.ok) return lock("Wrong token.");
  token = given;
  sessionStorage.setItem("highball-token", given);
  setUnlocked(true);
  say("");
}

let events = null;
function follow() {
  events?.close();
  events = null;
  if (document.hidden) return; // a page that is not looked at asks for nothing
  events = new EventSource(content.dataset.events);
  events.onmessage = (event) => {
    $("lost").hidden = true;
    show(JSON.parse(event.data).html);
  };
  events.onerror = () => {
    $("lost").hidden = false;
    if (events.readyState === EventSource.CLOSED) setTimeout(follow, 5000);
  };
}

content.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.backtrace) backtrace(button.dataset.backtrace);
  if (button?.dataset.order) order(button.dataset.order);
});
$("unlock-form")?.addEventListener("submit", (event) => {
  event.preventDefault();
  unlock($("token").value.trim()).catch((error) => say(`Not done: ${error.message}`));
  $("token").value = "";
});
document.addEventListener("visibilitychange", follow);
if (token && $("unlock")) unlock(token).catch(() => {});
follow();
