"use strict";
// One object has the state of the view; `draw` shows it, and all other code changes it and requests a drawing.

const LINE = 30, BAR = 22, NAMES = 92, AXIS = 26, GAP = 9, PAD = 16, MAX_LINES = 1000;
const FONT = '11px "DejaVu Sans Mono", "Liberation Mono", Menlo, Consolas, monospace';

const get = (id) => document.getElementById(id);
const data = JSON.parse(get("data").textContent);
const bars = data.bars.map(([row, process, label, call, returned, settled, mark, place, point]) =>
  ({ row, process, label, call, returned, settled, mark, place, point, failing: mark === "broken" || mark === "subject" }));
const failing = bars.filter((bar) => bar.failing);
const canvas = get("canvas"), tip = get("tip"), pen = canvas.getContext("2d");
const view = { scale: 1, left: 0, bars, until: null, hover: null, kept: null, found: "", lines: 0, width: 1, lanes: [] };

// ---- Where things are: x in units of the axis, each line a row of bars that do not overlap.

const room = (bar) => { pen.font = FONT; return (bar.room ??= pen.measureText(bar.label).width + PAD); };

/** The axis is the order of events; it stretches so that a label fits between a call and its return. */
function byOrder() {
  const events = [];
  for (const bar of view.bars) {
    events.push([bar.call, 0, 0, bar]);
    if (bar.point !== null) events.push([bar.point, 1, bar.place, bar]);
    if (bar.settled !== null) events.push([bar.settled, 2, 0, bar]);
  }
  if (data.until !== null) events.push([data.until, 3, 0, null]);
  events.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
  let x = 0, last = null;
  for (const event of events) {
    const [, kind, , bar] = event;
    if (last && (last[0] !== event[0] || last[1] !== kind || last[2] !== event[2])) x += GAP;
    last = event;
    if (kind === 0) bar.from = x;
    if (kind === 1) bar.dot = x;
    if (kind === 2) bar.to = bar.end = x = Math.max(x, bar.from + room(bar));
    if (kind === 3) view.until = x;
  }
  view.width = x + GAP;
  for (const bar of view.bars) if (bar.settled === null) view.width = Math.max(view.width, bar.from + room(bar));
  for (const bar of view.bars) if (bar.settled === null) bar.to = bar.end = view.width;
}

/** The axis is time. */
function byTime() {
  const last = Math.max(1, ...[0], ...failing.map((bar) => bar.settled ?? bar.call));
  view.width = view.bars.reduce((most, bar) => Math.max(most, bar.settled ?? bar.call, bar.returned ?? 0), last) * 1.01;
  for (const bar of view.bars) {
    bar.from = bar.call;
    bar.to = bar.settled ?? view.width;
    bar.end = bar.returned ?? bar.to; // the bar ends by its own clock, its whisker by all clocks
    bar.dot = bar.point;
  }
  view.until = data.until;
}

/** Puts each bar on the first free line of its process. */
function stack() {
  const free = new Map();
  for (const bar of view.bars) {
    if (!free.has(bar.process)) free.set(bar.process, []);
    const ends = free.get(bar.process);
    let line = ends.findIndex((end) => end <= bar.from);
    if (line < 0) line = ends.length;
    ends[line] = bar.to;
    bar.line = line;
  }
  let first = 0;
  view.lanes = [...free.keys()].sort((a, b) => a - b).map((process) => {
    const lane = { process, first };
    first += free.get(process).length;
    return lane;
  });
  view.lines = Math.min(first, MAX_LINES);
  const of = new Map(view.lanes.map((lane) => [lane.process, lane.first]));
  for (const bar of view.bars) bar.line += of.get(bar.process);
}

function arrange() {
  view.bars = get("only").checked ? failing : bars;
  (get("time").checked ? byTime : byOrder)();
  stack();
}

// ---- Looking: `scale` pixels a unit, `left` the unit at the left edge.

const inner = () => Math.max(100, canvas.clientWidth - NAMES);
const toPixel = (x) => NAMES + (x - view.left) * view.scale;
const toUnit = (pixel) => view.left + (pixel - NAMES) / view.scale;

function show(from, to) {
  const margin = (to - from) * 0.03;
  view.scale = inner() / Math.max(to - from + 2 * margin, 1e-9);
  if (!get("time").checked) view.scale = Math.min(view.scale, 1.6);
  view.left = from - margin;
  clamp();
}

const showAll = () => show(0, view.width);

function showFailing() {
  const seen = view.bars.filter((bar) => bar.failing);
  if (!seen.length) return showAll();
  show(Math.min(...seen.map((bar) => bar.from)), Math.max(...seen.map((bar) => bar.end)));
}

function clamp() {
  const least = inner() / (view.width * 1.2);
  view.scale = Math.min(Math.max(view.scale, least), get("time").checked ? 1e3 : 8);
  const span = inner() / view.scale;
  view.left = Math.min(Math.max(view.left, -span * 0.5), view.width - span * 0.5);
  ask();
}

function zoom(factor, pixel = NAMES + inner() / 2) {
  const unit = toUnit(pixel);
  view.scale *= factor;
  clamp();
  view.left = unit - (pixel - NAMES) / view.scale;
  clamp();
}

// ---- Drawing.

let asked = false;
function ask() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; draw(); });
}

const before = (a, b) => a.settled !== null && a.settled < b.call;
const concurrent = (a, b) => a === b || (!before(a, b) && !before(b, a));

function draw() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const width = canvas.clientWidth, height = AXIS + LINE * view.lines + 6, dots = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * dots);
  canvas.height = Math.round(height * dots);
  pen.setTransform(dots, 0, 0, dots, 0, 0);
  pen.font = FONT;
  pen.textBaseline = "middle";

  pen.save();
  pen.beginPath();
  pen.rect(NAMES, 0, width - NAMES, height);
  pen.clip();
  axis(colour, width, height);
  let drawn = 0;
  const focus = view.hover ?? view.kept;
  for (const bar of view.bars) {
    const from = toPixel(bar.from), to = Math.max(toPixel(bar.end), from + 1), whisker = toPixel(bar.to);
    if (bar.line >= view.lines || whisker < NAMES - 1 || from > width) continue;
    drawn += 1;
    one(bar, { from, to, whisker, y: AXIS + LINE * bar.line + (LINE - BAR) / 2 }, colour, focus, width);
  }
  if (view.until !== null) {
    const x = toPixel(view.until);
    pen.strokeStyle = colour("good");
    pen.lineWidth = 2;
    pen.setLineDash([5, 4]);
    pen.beginPath();
    pen.moveTo(x, AXIS - 8);
    pen.lineTo(x, height);
    pen.stroke();
    pen.setLineDash([]);
    pen.fillStyle = colour("good");
    pen.textAlign = x < width - 160 ? "left" : "right";
    pen.fillText(x < width - 160 ? "◂ in order up to here" : "in order up to here ▸", x + (x < width - 160 ? 4 : -4), AXIS - 14);
    pen.textAlign = "left";
  }
  pen.restore();

  pen.fillStyle = colour("faint");
  for (const { process, first } of view.lanes) {
    if (first >= view.lines) break;
    pen.fillText(`process ${process}`, 12, AXIS + LINE * first + LINE / 2);
  }
  // What a test can see.
  Object.assign(document.body.dataset, { drawn, lanes: view.lanes.length, focus: focus ? focus.row : "" });
}

function one(bar, { from, to, whisker, y }, colour, focus, width) {
  const dim = (focus && !concurrent(bar, focus)) || (view.found && !bar.label.includes(view.found));
  pen.globalAlpha = dim ? 0.22 : 1;
  const pending = bar.settled === null && bar.mark !== "failed";
  const edge = bar.failing || bar.mark === "next" ? colour("bad") : bar.mark === "failed" ? colour("faint") : colour("plain-edge");
  let fill = bar.mark === "subject" ? colour("bad") : bar.failing ? colour("broken") : bar.mark === "failed" ? "transparent" : colour("plain");
  if (pending) {
    const fade = pen.createLinearGradient(from, 0, Math.max(to, from + 2), 0);
    fade.addColorStop(0, fill);
    fade.addColorStop(0.55, fill);
    fade.addColorStop(1, colour("card")); // a colour, not "transparent", which is black
    fill = fade;
  }
  pen.lineWidth = bar === focus ? 2.5 : 1;
  pen.strokeStyle = edge;
  pen.fillStyle = fill;
  if (bar.mark === "failed") pen.setLineDash([3, 3]);
  if (bar.mark === "next") pen.setLineDash([5, 3]);
  pen.beginPath();
  if (to - from > 6) pen.roundRect(from, y, to - from, BAR, 4); else pen.rect(from, y, to - from, BAR);
  pen.fill();
  pen.stroke();
  pen.setLineDash([]);
  if (whisker > to + 1) {
    pen.beginPath();
    pen.moveTo(to, y + BAR / 2);
    pen.lineTo(whisker, y + BAR / 2);
    pen.stroke();
  }
  const start = Math.max(from, NAMES), space = Math.min(to, width) - start;
  if (space > 24) {
    pen.save();
    pen.beginPath();
    pen.rect(start, y, space - 3, BAR);
    pen.clip();
    pen.fillStyle = bar.mark === "subject" ? colour("on-bad") : bar.mark === "failed" ? colour("faint") : colour("ink");
    pen.fillText(bar.label, start + 8, y + BAR / 2 + 0.5);
    pen.restore();
  }
  if (bar.point !== null) {
    pen.beginPath();
    pen.arc(toPixel(bar.dot), y + BAR, 3.5, 0, 2 * Math.PI);
    pen.fillStyle = colour("good");
    pen.strokeStyle = colour("card");
    pen.lineWidth = 1;
    pen.fill();
    pen.stroke();
  }
  pen.globalAlpha = 1;
}

/** Lines between processes; in true time, round times above. */
function axis(colour, width, height) {
  pen.strokeStyle = colour("rule");
  pen.lineWidth = 1;
  pen.beginPath();
  for (const { first } of view.lanes) {
    pen.moveTo(NAMES, AXIS + LINE * first);
    pen.lineTo(width, AXIS + LINE * first);
  }
  pen.stroke();
  if (!get("time").checked) return;
  const raw = 110 / view.scale, power = 10 ** Math.floor(Math.log10(raw));
  const step = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw));
  pen.fillStyle = colour("faint");
  pen.beginPath();
  for (let at = Math.max(0, Math.ceil(toUnit(NAMES) / step)) * step; toPixel(at) < width; at += step) {
    pen.moveTo(toPixel(at), AXIS - 6);
    pen.lineTo(toPixel(at), height);
    pen.fillText(`+${at.toLocaleString("en")}`, toPixel(at) + 3, 9);
  }
  pen.stroke();
}

// ---- What is under the pointer.

function at(pixelX, pixelY) {
  const line = Math.floor((pixelY - AXIS) / LINE);
  const reach = 3 / view.scale, x = toUnit(pixelX);
  return view.bars.find((bar) => bar.line === line && bar.from - reach <= x && x <= bar.to + reach) ?? null;
}

const absolute = (time) => (BigInt(data.base) + BigInt(time)).toString();

function describe(bar) {
  const lines = [bar.label, `row ${bar.row}, process ${bar.process}`, `called ${absolute(bar.call)}`];
  if (bar.returned === null) lines.push(bar.mark === "failed" ? "no return" : "no return: it may or may not have had its effect");
  else lines.push(`returned ${absolute(bar.returned)}, ${(bar.returned - bar.call).toLocaleString("en")} later`);
  if (bar.settled === null && bar.returned !== null && bar.mark !== "failed") lines.push("outcome unknown");
  if (bar.mark === "failed") lines.push("failed, without effect");
  if (bar.mark === "broken") lines.push("part of the counter-example");
  if (bar.mark === "subject") lines.push("the operation that the reason is about");
  if (bar.mark === "next") lines.push("the first return that cannot be explained");
  if (bar.place !== null) lines.push(`takes effect as number ${bar.place + 1}`);
  return lines.join("\n");
}

function explain(bar, x, y) {
  tip.hidden = !bar;
  if (!bar) return;
  tip.textContent = describe(bar);
  const stage = canvas.parentElement;
  tip.style.left = `${Math.max(0, Math.min(x + 14, stage.clientWidth - tip.offsetWidth - 8))}px`;
  const below = y + 18 + tip.offsetHeight < stage.clientHeight;
  tip.style.top = `${Math.max(0, below ? y + 18 : y - tip.offsetHeight - 8)}px`;
}

function keep(bar) {
  view.kept = bar;
  history.replaceState(null, "", bar ? `#row=${bar.row}` : location.pathname + location.search);
  ask();
}

// ---- What the reader does.

canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    view.left += (event.deltaX || event.deltaY) / view.scale;
    clamp();
  } else {
    zoom(Math.exp(-event.deltaY * 0.0016), event.offsetX);
  }
}, { passive: false });

let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  drag = { x: event.offsetX, left: view.left, moved: false };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (drag && Math.abs(event.offsetX - drag.x) > 3) drag.moved = true;
  if (drag?.moved) {
    view.left = drag.left - (event.offsetX - drag.x) / view.scale;
    explain(null);
    return clamp();
  }
  const bar = at(event.offsetX, event.offsetY);
  explain(bar, event.offsetX, event.offsetY);
  if (bar !== view.hover) { view.hover = bar; ask(); }
});
canvas.addEventListener("pointerup", (event) => {
  if (drag && !drag.moved) keep(at(event.offsetX, event.offsetY));
  drag = null;
});
canvas.addEventListener("pointerleave", () => { view.hover = null; explain(null); ask(); });
canvas.addEventListener("keydown", (event) => {
  const step = inner() / view.scale / 5;
  const act = { ArrowLeft: () => { view.left -= step; clamp(); }, ArrowRight: () => { view.left += step; clamp(); },
    "+": () => zoom(1.4), "=": () => zoom(1.4), "-": () => zoom(1 / 1.4), Home: showAll, f: showFailing, Escape: () => keep(null) }[event.key];
  if (act) { act(); event.preventDefault(); }
});

get("failing").addEventListener("click", () => { arrange(); showFailing(); });
get("all").addEventListener("click", () => { get("only").checked = false; arrange(); showAll(); });
for (const id of ["only", "time"]) get(id).addEventListener("change", () => { arrange(); showFailing(); });
get("find").addEventListener("input", (event) => { view.found = event.target.value; ask(); });
window.addEventListener("resize", clamp);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", ask);

/** `#row=17` leads to an operation. */
function follow() {
  const wanted = /^#row=(\d+)$/.exec(location.hash);
  const bar = wanted && bars.find((bar) => bar.row === Number(wanted[1]));
  if (!bar) return;
  if (!view.bars.includes(bar)) { get("only").checked = false; arrange(); }
  const span = Math.min(inner() / view.scale, view.width);
  if (toPixel(bar.from) < NAMES || toPixel(bar.end) > canvas.clientWidth) show(bar.from - span / 4, bar.end + span / 4);
  view.kept = bar;
  explain(bar, Math.max(NAMES, toPixel(bar.from)), AXIS + LINE * (bar.line + 1) - 14);
  ask();
}
window.addEventListener("hashchange", follow);

// ---- The first view: the failing operations, and only these if they are far apart.

get("failing").disabled = get("only").disabled = failing.length === 0;
const first = bars.indexOf(failing[0]), last = bars.indexOf(failing[failing.length - 1]);
get("only").checked = failing.length > 0 && last - first >= 60;
arrange();
if (failing.length) showFailing();
else show(0, bars.slice(0, 60).reduce((most, bar) => Math.max(most, bar.settled === null ? bar.from : bar.end), 1));
follow();
