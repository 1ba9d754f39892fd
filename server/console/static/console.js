// What the pages do beyond links and forms: the theme, the keyboard, questions before changes, limits of texts, plots
// and uploads. Without it everything can be read, and most of it changed.
"use strict";

const root = document.documentElement;

// The theme: that of the system, or the one that was chosen on this browser.
const themes = ["system", "light", "dark"];
const themeButton = document.getElementById("theme");
const themeNow = () => root.dataset.theme || "system";
const nameTheme = () => { if (themeButton) themeButton.textContent = "Theme: " + themeNow(); };
themeButton?.addEventListener("click", () => {
  const next = themes[(themes.indexOf(themeNow()) + 1) % themes.length];
  if (next === "system") {
    delete root.dataset.theme;
    localStorage.removeItem("loci-theme");
  } else {
    root.dataset.theme = next;
    localStorage.setItem("loci-theme", next);
  }
  nameTheme();
  drawAll();
});
nameTheme();

// On a narrow screen the navigation is a line: it begins where the page is.
const nav = document.querySelector("nav[aria-label=Main]"), current = nav?.querySelector("[aria-current]");
if (current) nav.scrollLeft = current.offsetLeft - (nav.clientWidth - current.offsetWidth) / 2;

// Forms that ask before they change something.
document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

// Keyboard: / goes to the first search field, g and a letter to a page.
const places = { o: "", a: "agents", f: "files", m: "archival", s: "search", p: "policies", j: "jobs", e: "events", k: "keys" };
let going = false;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
  if (event.key === "/") {
    const field = document.querySelector("main input[type=search]");
    if (field) { event.preventDefault(); field.focus(); }
  } else if (going && event.key in places) {
    location.href = "/console/" + places[event.key];
  }
  going = event.key === "g";
});

// Texts with a limit say how full they are while one writes.
document.addEventListener("input", (event) => {
  const form = event.target.closest("form.edit");
  if (!form || event.target.name !== "value") return;
  const limit = Number(form.dataset.limit), used = [...event.target.value].length;
  form.querySelector(".counter").textContent =
    used.toLocaleString("en") + " of " + limit.toLocaleString("en") + " characters" + (used > limit ? ": too many" : "");
  const meter = form.querySelector(".meter");
  meter.querySelector("rect").setAttribute("width", Math.min(100, (100 * used) / limit));
  meter.classList.toggle("near", used >= 0.9 * limit);
  meter.classList.toggle("full", used > limit);
});

// Plots of tokens over time.
const color = (name) => getComputedStyle(root).getPropertyValue(name).trim();
const resolved = (name) => {
  const probe = document.createElement("i");
  probe.className = "probe";
  probe.style.color = "var(" + name + ")";
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
};
const sized = new ResizeObserver((entries) => entries.forEach(({ target }) => {
  if (target.clientWidth !== target.drawn) draw(target);
}));
function draw(box) {
  const points = JSON.parse(box.dataset.points), size = Number(box.dataset.window);
  const xs = points.map((_, i) => i + 1);
  const tokens = points.map((p) => p.tokens);
  const compacted = points.map((p) => (p.compacted ? p.tokens : null));
  const line = (at) => xs.map(() => at * size);
  box.replaceChildren();
  box.drawn = box.clientWidth;
  sized.observe(box);
  const axis = { stroke: resolved("--soft"), grid: { stroke: resolved("--line"), width: 1 }, ticks: { show: false },
    font: "11px " + color("--sans") };
  new uPlot({
    width: box.clientWidth, height: 220, legend: { show: false }, cursor: { y: false },
    scales: { x: { time: false }, y: { range: (_, low, high) => [0, Math.max(size, high)] } },
    axes: [
      { ...axis, values: (_, all) => all.map((x) => {
        const p = points[x - 1];
        return Number.isInteger(x) && p ? new Date(p.at).toISOString().slice(11, 16) : "";
      }) },
      { ...axis, size: 64, values: (_, all) => all.map((y) => y.toLocaleString("en")) },
    ],
    series: [
      {},
      { label: "tokens", stroke: resolved("--accent"), width: 2, points: { show: points.length < 40 } },
      { label: "75 %", stroke: resolved("--warn"), dash: [4, 4], width: 1, points: { show: false } },
      { label: "90 %", stroke: resolved("--bad"), dash: [4, 4], width: 1, points: { show: false } },
      { label: "compacted", stroke: resolved("--p-summary"), width: 0, paths: () => null,
        points: { show: true, size: 9, fill: resolved("--p-summary"), stroke: resolved("--p-summary") } },
    ],
  }, [xs, tokens, line(0.75), line(0.9), compacted], box);
}
function drawAll() { if (window.uPlot) document.querySelectorAll(".plot[data-points]").forEach(draw); }
drawAll();
document.addEventListener("htmx:after:swap", drawAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);

// Uploads: each file has a row with a bar, first for its bytes, then for the work on it, which the server reports.
const drop = document.querySelector(".drop");
if (drop) drop.hidden = false;
const waiting = [];
let uploading = 0;
function row(name) {
  const item = document.createElement("li");
  const title = document.createElement("span"), bar = document.createElement("progress"), state = document.createElement("span");
  title.textContent = name;
  title.className = "name";
  bar.max = 100;
  bar.setAttribute("aria-label", "Progress of " + name);
  state.className = "sub";
  item.append(title, bar, state);
  drop.querySelector(".uploads").prepend(item);
  return { say: (share, text, bad) => {
    if (share === null) bar.removeAttribute("value"); else bar.value = share;
    state.textContent = text;
    item.classList.toggle("bad", Boolean(bad));
  }, link: (url) => {
    const to = document.createElement("a");
    to.href = url;
    to.textContent = name;
    title.replaceChildren(to);
  } };
}
function detail(text) {
  try {
    const d = JSON.parse(text).detail;
    return typeof d === "string" ? d : d.map((f) => f.msg).join("; ");
  } catch { return "The server did not answer."; }
}
function follow(file, line) {
  const events = new EventSource(drop.dataset.folder + "/files/" + file.id + "/events");
  events.addEventListener("progress", (event) => {
    const p = JSON.parse(event.data);
    if (p.status === "completed") line.say(100, "completed");
    else if (p.status === "error") line.say(100, p.error, true);
    else if (p.status === "deleted") line.say(100, "deleted", true);
    else if (p.chunks_total > 0) line.say((100 * p.chunks_done) / p.chunks_total, p.status + ", " + p.chunks_done + " of " + p.chunks_total);
    else line.say(null, p.status);
    if (["completed", "error", "deleted"].includes(p.status)) {
      events.close();
      const list = document.getElementById("folder-files");
      if (list) htmx.ajax("GET", list.getAttribute("hx-get"), { target: "#folder-files", swap: "outerHTML" });
    }
  });
}
function next() {
  if (uploading >= 3 || waiting.length === 0) return;
  uploading++;
  const { file, name, line } = waiting.shift();
  const request = new XMLHttpRequest(), body = new FormData();
  body.append("file", file, file.name);
  request.open("POST", drop.dataset.folder + "/upload?name=" + encodeURIComponent(name));
  request.setRequestHeader("X-Loci-Form", document.querySelector("meta[name=loci-form]").content);
  request.upload.addEventListener("progress", (event) => {
    const share = event.total ? (100 * event.loaded) / event.total : 0;
    line.say(share, share < 100 ? "sending, " + Math.round(share) + " %" : "sent");
  });
  request.addEventListener("loadend", () => {
    uploading--;
    next();
    if (request.status !== 200) return line.say(100, detail(request.responseText), true);
    const stored = JSON.parse(request.responseText);
    line.link(drop.dataset.folder + "/files/" + stored.id);
    line.say(null, stored.processing_status);
    follow(stored, line);
  });
  request.send(body);
}
function upload(file, name) {
  const line = row(name);
  line.say(0, "waiting");
  waiting.push({ file, name, line });
  next();
}
async function walk(entry, path) {
  if (entry.isFile) return new Promise((done) => entry.file((file) => done(upload(file, path + file.name)), done));
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((done, fail) => reader.readEntries(done, fail));
    if (some.length === 0) return;
    for (const one of some) await walk(one, path + entry.name + "/");
  }
}
if (drop) {
  for (const field of drop.querySelectorAll("input[type=file]")) {
    field.addEventListener("change", () => {
      for (const file of field.files) upload(file, file.webkitRelativePath || file.name);
      field.value = "";
    });
  }
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    for (const item of event.dataTransfer.items) {
      const entry = item.webkitGetAsEntry?.();
      if (entry) walk(entry, "");
    }
  });
}
