// What the pages can do beyond links and forms: tell parts anew as the server sends them, light and dark, keys.
"use strict";

const find = (id) => document.getElementById(id);

// Light and dark. The server reads the cookie, so a page never flashes in the wrong colours.

function changeTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  document.cookie = `theme=${root.dataset.theme}; Path=${document.body.dataset.base}/; SameSite=Strict; Max-Age=31536000`;
}

// Parts. The new text is read without being run, and only what differs is changed: the focus, what is chosen,
// scrolled or opened stays.

function change(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !(old.nodeName === "DETAILS" && name === "open")) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  changeChildren(old, fresh);
}

// Times are told in UTC, and shown in the zone of the reader.

const two = (number) => String(number).padStart(2, "0");

function local(date) {
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${clock(date)}`;
}

function clock(date) {
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

function tickText(date, form) {
  if (form === "day") return `${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock(date).slice(0, 5)}`;
  return form === "ms" ? `${clock(date)}.${String(date.getMilliseconds()).padStart(3, "0")}` : clock(date);
}

function showTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([data-utc])")) {
    const date = new Date(time.dateTime);
    if (isNaN(date)) continue;
    const utc = time.title || time.textContent;
    time.dataset.utc = utc;
    // How long ago stays; the time itself is told on asking.
    if (time.title) time.title = `${local(date)}, ${utc}`;
    else {
      time.textContent = local(date);
      time.title = utc;
    }
  }
  for (const tick of root.querySelectorAll("[data-at]")) {
    tick.textContent = tickText(new Date(Number(tick.dataset.at)), tick.dataset.form);
  }
}

function changeChildren(old, fresh) {
  const wanted = [...fresh.childNodes];
  const there = [...old.childNodes];
  wanted.forEach((node, at) => {
    if (at < there.length) change(there[at], node);
    else old.append(node);
  });
  there.slice(wanted.length).forEach((node) => node.remove());
}

function tell(text) {
  const told = find("told");
  if (told.textContent !== text) told.textContent = text;
}

let stream = null;

function listen() {
  const address = document.body.dataset.live;
  if (!address || stream || document.hidden) return;
  const pulse = find("pulse");
  const show = (text, lost) => {
    pulse.textContent = text;
    pulse.classList.toggle("lost", lost);
  };
  stream = new EventSource(address);
  stream.addEventListener("look", () => {
    show("live", false);
    if (find("told").textContent) tell("");
    pulse.classList.remove("beat");
    requestAnimationFrame(() => pulse.classList.add("beat"));
  });
  stream.addEventListener("part", (event) => {
    const { id, html } = JSON.parse(event.data);
    const part = find(id);
    const fresh = new DOMParser().parseFromString(html, "text/html").body;
    showTimes(fresh);
    if (part) changeChildren(part, fresh);
  });
  stream.addEventListener("failure", (event) => {
    show("no answer", true);
    pulse.title = event.data;
    tell(event.data);
  });
  stream.addEventListener("over", (event) => {
    stream.close();
    show("ended", true);
    pulse.title = event.data;
    tell(event.data);
  });
  stream.onerror = () => {
    show("not connected", true);
    tell("The connection to the console is lost. It is tried again.");
    // A browser does not try again by itself after an answer that is no stream.
    if (stream.readyState === EventSource.CLOSED) {
      stream = null;
      setTimeout(listen, 5000);
    }
  };
}

// A page that nobody sees asks for nothing.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) listen();
  else if (stream) {
    stream.close();
    stream = null;
  }
});

// Keys: one letter, or g and a letter. Elements name theirs in data-key.

let before = "";

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const field = event.target.closest("input:not([type=checkbox]), textarea, select");
  if (field) {
    if (event.key === "Escape") field.blur();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  const key = before ? `${before} ${event.key}` : event.key;
  before = !before && event.key === "g" ? "g" : "";
  const target = [...document.querySelectorAll("[data-key]")].find((one) => one.dataset.key === key);
  if (!target) return;
  event.preventDefault();
  if (target.nodeName === "INPUT") target.focus();
  else target.click();
});

// What there is to search for, while one types.

let asked = 0;

document.addEventListener("input", async (event) => {
  const field = event.target.closest("[data-suggest]");
  if (!field || event.inputType === "insertReplacementText") return;
  const turn = ++asked;
  await new Promise((done) => setTimeout(done, 150));
  if (turn !== asked) return;
  const asking = new URLSearchParams(new FormData(field.form));
  const answer = await fetch(`${document.body.dataset.base}/suggest?${asking}`);
  if (!answer.ok || turn !== asked) return;
  find("suggestions").replaceChildren(...(await answer.json()).map((text) => new Option("", text)));
});

// Forms.

document.addEventListener("change", (event) => {
  const all = event.target.closest("[data-all]");
  if (!all) return;
  const names = [all.dataset.all, `${all.dataset.all}.hex`];
  for (const box of all.form.elements) if (names.includes(box.name)) box.checked = all.checked;
});

// Of settings, only those that were changed are sent.
document.addEventListener("submit", (event) => {
  for (const field of event.target.elements) {
    if (field.dataset.was !== undefined && field.value === field.dataset.was) field.disabled = true;
  }
});

// Back from the next page, the fields are usable again.
addEventListener("pageshow", () => {
  document.querySelectorAll("[data-was]").forEach((field) => (field.disabled = false));
});

showTimes(document);
find("theme").addEventListener("click", changeTheme);
find("help").addEventListener("click", () => find("keys").showModal());
listen();
