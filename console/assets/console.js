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

// Rows that name themselves keep what belongs to them, focus for instance, when others come before them.
function changeRows(old, fresh) {
  const known = new Map([...old.children].map((row) => [row.dataset.row, row]));
  let place = old.firstElementChild;
  for (const row of [...fresh.children]) {
    const same = known.get(row.dataset.row);
    known.delete(row.dataset.row);
    if (same) change(same, row);
    if (same && same === place) place = place.nextElementSibling;
    else old.insertBefore(same ?? row, place);
  }
  known.forEach((row) => row.remove());
}

function changeChildren(old, fresh) {
  if (old.firstElementChild?.dataset.row && fresh.firstElementChild?.dataset.row) {
    changeRows(old, fresh);
    return;
  }
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

// What the server has sent of parts in which something is chosen: they change when nothing is any more.
const waiting = new Map();

function showPart(id, html) {
  const part = find(id);
  if (!part) return;
  if (part.querySelector("input[type=checkbox]:checked")) {
    waiting.set(id, html);
    return;
  }
  waiting.delete(id);
  const fresh = new DOMParser().parseFromString(html, "text/html").body;
  showTimes(fresh);
  changeChildren(part, fresh);
  if (reading && part.contains(reading.plot)) showValues();
}

document.addEventListener("change", () => waiting.forEach((html, id) => showPart(id, html)));

let stream = null;
let held = false;

function hold() {
  held = !held;
  find("hold").setAttribute("aria-pressed", held);
  if (!held) {
    listen();
    return;
  }
  stream?.close();
  stream = null;
  find("pulse").textContent = "held";
  tell("The page is held still.");
}

function listen() {
  const address = document.body.dataset.live;
  if (!address || stream || held || document.hidden) return;
  const pulse = find("pulse");
  const show = (text, lost) => {
    pulse.textContent = text;
    pulse.classList.toggle("lost", lost);
  };
  stream = new EventSource(address);
  stream.addEventListener("look", () => {
    show(waiting.size ? "waits: jobs are chosen" : "live", false);
    if (find("told").textContent) tell("");
    pulse.classList.remove("beat");
    requestAnimationFrame(() => pulse.classList.add("beat"));
  });
  stream.addEventListener("part", (event) => {
    const { id, html } = JSON.parse(event.data);
    showPart(id, html);
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

// Plots: the values and the time under the pointer, or from point to point by the arrow keys.

let reading = null;

function plotTimes(plot) {
  let at = 0;
  return plot.dataset.times.split(" ").map((step) => (at += Number(step)));
}

function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return ms < 3_600_000 ? `${(ms / 60_000).toFixed(1)} min` : `${(ms / 3_600_000).toFixed(1)} h`;
}

function showValues(aloud) {
  const { plot, at } = reading;
  if (!plot.dataset.times) return;
  const times = plotTimes(plot);
  let point = times.length - 1;
  times.forEach((time, index) => {
    if (Math.abs(time - at) < Math.abs(times[point] - at)) point = index;
  });
  const [left, right, top, bottom] = plot.dataset.frame.split(" ").map(Number);
  const [first, last] = [times[0], times.at(-1)];
  const x = last > first ? left + ((times[point] - first) / (last - first)) * (right - left) : right;
  let cursor = plot.querySelector(".cursor");
  if (!cursor) {
    cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
    cursor.classList.add("cursor");
    plot.append(cursor);
  }
  for (const [name, value] of Object.entries({ x1: x, x2: x, y1: top, y2: bottom })) cursor.setAttribute(name, value);
  const day = last - first >= 2 * 86_400_000;
  const date = new Date(times[point]);
  const told = [day ? date.toISOString().slice(0, 10) : clock(date)];
  const legend = plot.parentElement.querySelector(".legend");
  [...plot.querySelectorAll("path[data-values]")].forEach((line, number) => {
    const value = line.dataset.values.split(",")[point];
    const text = value === "" ? "–" : plot.dataset.ms ? duration(Number(value)) : value;
    const shown = legend.querySelectorAll(".key b")[number];
    shown.dataset.now ??= shown.textContent;
    shown.textContent = text;
    told.push(`${shown.parentElement.firstChild.textContent.trim()} ${text}`);
  });
  let moment = legend.querySelector(".moment");
  if (!moment) {
    moment = document.createElement("span");
    moment.className = "moment";
    legend.append(moment);
  }
  moment.textContent = told[0];
  if (aloud) tell(told.join(", "));
}

function read(plot, at, aloud) {
  if (reading && reading.plot !== plot) stopReading();
  reading = { plot, at };
  showValues(aloud);
}

function stopReading() {
  const { plot } = reading;
  reading = null;
  plot.querySelector(".cursor")?.remove();
  const legend = plot.parentElement?.querySelector(".legend");
  legend?.querySelector(".moment")?.remove();
  for (const shown of legend?.querySelectorAll("[data-now]") ?? []) {
    shown.textContent = shown.dataset.now;
    delete shown.dataset.now;
  }
}

document.addEventListener("pointermove", (event) => {
  const plot = event.target.closest?.("svg[data-times]");
  if (!plot) {
    if (reading && reading.plot !== document.activeElement) stopReading();
    return;
  }
  const [left, right] = plot.dataset.frame.split(" ").map(Number);
  const box = plot.getBoundingClientRect();
  const times = plotTimes(plot);
  const share = (((event.clientX - box.left) / box.width) * plot.viewBox.baseVal.width - left) / (right - left);
  read(plot, times[0] + share * (times.at(-1) - times[0]), false);
});

document.addEventListener("keydown", (event) => {
  const plot = event.target.closest("svg[data-times]");
  const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
  if (!plot || !step) return;
  event.preventDefault();
  const times = plotTimes(plot);
  const from = reading?.plot === plot ? times.findIndex((time) => time >= reading.at) : times.length;
  const to = Math.min(Math.max((from < 0 ? times.length - 1 : from) + step, 0), times.length - 1);
  read(plot, times[to], true);
});

document.addEventListener("focusout", (event) => {
  if (reading && reading.plot === event.target) stopReading();
});

// Copying.

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Over plain HTTP, but on this machine, a browser has only the old way.
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  if (!copied) throw new Error("refused");
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest(".copy");
  if (!button) return;
  try {
    let text = button.dataset.text;
    if (button.dataset.from) {
      const answer = await fetch(button.dataset.from);
      // Who is signed out is led to the page to sign in.
      if (!answer.ok || answer.redirected) {
        tell("The console did not give it out: load this page again.");
        return;
      }
      text = await answer.text();
    }
    await copy(text ?? document.querySelector(button.dataset.copy).textContent);
    tell("Copied.");
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 2000);
  } catch {
    tell("The browser did not let this be copied.");
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

// A form is sent once: an impatient second click would post a second job. After a while one may try again.
let sent = new WeakMap();

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (Date.now() - (sent.get(form) ?? 0) < 30_000) event.preventDefault();
  else sent.set(form, Date.now());
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
  sent = new WeakMap();
});

showTimes(document);
find("theme").addEventListener("click", changeTheme);
find("hold")?.addEventListener("click", hold);
find("help").addEventListener("click", () => find("keys").showModal());
listen();
