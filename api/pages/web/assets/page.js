// Sends what a person decides, and keeps the page current without touching what that person is typing.
"use strict";

const EVERY = 5000, SOON = 300, AGAIN = 2000;
const main = document.getElementById("main");
const news = document.getElementById("news");
const shown = new Map(); // id of a live section → its HTML as the server sent it
const keys = new Map(); // an order that was not answered → its key, so that sending it again is no second order
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

document.documentElement.classList.remove("no-script");

// ---- The server ----

async function ask(url, options) {
  const answer = await fetch(url, { credentials: "same-origin", ...options });
  const isSignedOut = answer.status === 401 || (answer.redirected && new URL(answer.url).pathname === "/session");
  if (isSignedOut && location.pathname !== "/session") {
    location.assign(`/session?next=${encodeURIComponent(location.pathname + location.search)}`);
  }
  return answer;
}

async function documentAt(url) {
  const answer = await ask(url, { headers: { Accept: "text/html" } });
  return [new DOMParser().parseFromString(await answer.text(), "text/html"), answer.ok];
}

// ---- What is shown ----

function tellAges(root) {
  for (const time of root.querySelectorAll("time")) {
    const since = (Date.now() - Date.parse(time.dateTime)) / 1000;
    const seconds = Math.abs(since);
    const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
    const [size, unit] = units.find(([size]) => seconds >= size) ?? [1, "s"];
    const span = `${Math.floor(seconds / size)} ${unit}`;
    time.dataset.age = since < -5 ? `in ${span}` : `${span} ago`; // clocks may differ by a little
  }
}

const isTouched = (section) =>
  section.querySelector("form[aria-busy]") !== null ||
  [...section.querySelectorAll("textarea")].some((field) => field.value !== "" || field === document.activeElement);

function replace(section, html) {
  const focused = section.contains(document.activeElement) ? document.activeElement.id : "";
  const open = [...section.querySelectorAll("details[open]")].map((one) => one.id);
  const scrolled = section.querySelector(".evidence")?.scrollTop ?? 0;
  section.innerHTML = html;
  shown.set(section.id, html);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  section.querySelector(".evidence")?.scrollTo(0, scrolled);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

// What a person has begun to answer stays as that person saw it: the order is bound to what is shown.
function sayOutdated(section, html) {
  section.querySelector(".outdated")?.remove();
  const note = document.createElement("p");
  note.className = "outdated";
  note.setAttribute("role", "alert");
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Show what is new";
  button.addEventListener("click", () => {
    const typed = [...section.querySelectorAll("textarea")].map((field) => [field.id, field.value]);
    replace(section, html);
    for (const [id, text] of typed) if (document.getElementById(id)) document.getElementById(id).value = text;
    section.setAttribute("tabindex", "-1");
    section.focus();
  });
  note.append("This has changed since you began to write. What you send is still bound to what is shown here. ", button);
  section.prepend(note);
}

function take(next) {
  for (const fresh of next.querySelectorAll("[data-live]")) {
    const section = document.getElementById(fresh.id);
    const html = fresh.innerHTML;
    if (section === null || shown.get(fresh.id) === html) {
      section?.querySelector(".outdated")?.remove();
    } else if (isTouched(section)) {
      sayOutdated(section, html);
    } else {
      replace(section, html);
    }
  }
  hideUnless("rollback", document.querySelector("[data-into=rollback]"));
  hideUnless("blockers", next.getElementById("blockers"));
  tellAges(document);
}

function hideUnless(id, isMeant) {
  const section = document.getElementById(id);
  if (section && !isMeant) section.hidden = true;
}

async function refresh() {
  const before = document.getElementById("headline")?.textContent;
  try {
    const [next, isOk] = await documentAt(location.href);
    if (!isOk) throw new Error(next.querySelector("main h2")?.textContent ?? "no answer");
    document.title = next.title;
    take(next);
    if (news.dataset.isLost) say("Connected again.");
    delete news.dataset.isLost;
    if (!next.querySelector("main[data-refresh]")) main.removeAttribute("data-refresh");
  } catch (error) {
    news.dataset.isLost = "yes";
    say(`This page may be out of date: ${error.message}`);
  }
  const after = document.getElementById("headline")?.textContent;
  if (after === before) return;
  say(`Now: ${after}`);
  const blockers = document.querySelector("#blockers:not([hidden]) [data-load]");
  if (blockers) load(blockers, { isAsked: false });
}

const say = (text) => { if (news.textContent !== text) news.textContent = text; };

let due = null;
function refreshSoon() {
  due ??= setTimeout(async () => { due = null; await refresh(); }, SOON);
}

// The stream says that something happened; what there is to see, the page itself says.
async function follow(url, after) {
  while (main.hasAttribute("data-refresh")) {
    try {
      const answer = await ask(`${url}?after=${after}`, { headers: { Accept: "text/event-stream" } });
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done && answer.ok; part = await reader.read()) {
        for (const [, seq] of part.value.matchAll(/^id: (\d+)$/gm)) after = seq;
        if (/^id: /m.test(part.value)) refreshSoon();
      }
    } catch { /* The page is asked for every few seconds anyway, and says that it cannot be reached. */ }
    await pause(AGAIN);
  }
}

async function load(button, { isAsked } = { isAsked: true }) {
  const place = document.getElementById(button.dataset.into);
  button.setAttribute("aria-busy", "true");
  try {
    const [found] = await documentAt(button.dataset.load);
    place.innerHTML = found.getElementById("main").innerHTML;
  } catch {
    place.textContent = "No answer. Try again.";
  }
  button.removeAttribute("aria-busy");
  place.hidden = false;
  tellAges(place);
  if (!isAsked) return;
  place.setAttribute("tabindex", "-1");
  place.focus();
}

// ---- What is sent ----

function answerIn(form, title, detail) {
  const place = form.querySelector(".answer");
  const strong = document.createElement("strong");
  strong.textContent = title;
  place.replaceChildren(strong, detail ? ` ${detail}` : "");
}

// As the browser reads an address: it drops tabs, and takes a backslash for a slash.
function ownPage(address) {
  try {
    const url = new URL(address, location.origin);
    if (url.origin === location.origin && url.protocol === location.protocol && url.pathname !== "/") return url.href;
  } catch { /* It is no address. */ }
  return "/migrations";
}

async function send(form, button) {
  const fields = Object.fromEntries(new FormData(form));
  const body = JSON.stringify({ ...JSON.parse(form.dataset.body), ...JSON.parse(button.dataset.body), ...fields });
  const order = form.dataset.url + body;
  if (!keys.has(order)) keys.set(order, crypto.randomUUID());
  const headers = { "Content-Type": "application/json", Accept: "application/json", "Idempotency-Key": keys.get(order) };
  const answer = await ask(form.dataset.url, { method: "POST", headers, body });
  const told = await answer.json().catch(() => ({}));
  // Only a whole answer ends an order: after an error it may have been carried out, or be under way still.
  if (answer.status < 500 && told.code !== "call-under-way") keys.delete(order);
  if (!answer.ok) {
    const errors = (told.errors ?? []).map((one) => `${one.field}: ${one.message}`);
    answerIn(form, `${told.title ?? `Refused (${answer.status})`}.`, [told.detail, ...errors].filter(Boolean).join(" "));
    return;
  }
  form.reset();
  if (form.dataset.then === "next") {
    location.assign(ownPage(new URLSearchParams(location.search).get("next") ?? ""));
    return;
  }
  const isLater = told.status === "pending";
  answerIn(form, isLater ? "Written down." : "Accepted.", isLater ? "The migration has not answered yet." : "");
  say(`${button.textContent.trim()}: ${isLater ? "written down, not answered yet" : "accepted"}.`);
  if (form.closest("#rollback")) form.closest("#rollback").hidden = true;
  main.setAttribute("tabindex", "-1");
  main.focus({ preventScroll: true });
  await refresh();
}

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form.order");
  if (form === null) return;
  event.preventDefault();
  if (form.hasAttribute("aria-busy")) return;
  form.setAttribute("aria-busy", "true");
  answerIn(form, "", "");
  try {
    await send(form, event.submitter ?? form.querySelector("button"));
  } catch {
    answerIn(form, "No answer.", "It may have been carried out. Look at the state, then send it again if needed.");
  } finally {
    form.removeAttribute("aria-busy");
  }
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-load]");
  if (button === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  load(button);
});

// ---- Who is signed in ----

async function showWho() {
  const answer = await fetch("/session", { credentials: "same-origin", headers: { Accept: "application/json" } });
  if (!answer.ok) return;
  const { principal, roles, is_authenticated: isAuthenticated } = await answer.json();
  const who = document.getElementById("who");
  who.querySelector("span").textContent = isAuthenticated ? `${principal} (${roles.join(", ")})` : principal;
  who.querySelector("button").hidden = !isAuthenticated;
  who.querySelector("button").addEventListener("click", async () => {
    await fetch("/session", { method: "DELETE", credentials: "same-origin" });
    location.assign("/session");
  });
  who.hidden = false;
}

for (const section of document.querySelectorAll("[data-live]")) shown.set(section.id, section.innerHTML);
tellAges(document);
for (const button of document.querySelectorAll("[data-early]")) load(button, { isAsked: false });
showWho();
if (main.hasAttribute("data-refresh")) {
  const timer = setInterval(() => {
    if (!main.hasAttribute("data-refresh")) clearInterval(timer);
    else if (!document.hidden) refreshSoon();
  }, EVERY);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refreshSoon(); });
  if (main.dataset.events) follow(main.dataset.events, main.dataset.after);
}
