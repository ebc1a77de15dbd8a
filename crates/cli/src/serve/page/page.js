// The page of a run: live, or frozen with the run's last state as its report. Names of the flow and texts of units are
// untrusted: they enter the document only as text nodes and attributes, and never as markup.
'use strict';

const SVG = 'http://www.w3.org/2000/svg';
const LANE_S = 300;
const LANE_STEP_S = 2;
/** The colours of parts; the last one serves all further parts. */
const COLOURS = 8;
const byId = (id) => document.getElementById(id);

/** An element with attributes and children; strings become text. */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}
function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}
function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const grouped = new Intl.NumberFormat('en');
const count = (n) => (n < 1e6 ? grouped.format(n) : n < 1e9 ? (n / 1e6).toPrecision(3) + ' M' : (n / 1e9).toPrecision(3) + ' G');
const rate = (n) => (n >= 100 ? count(Math.round(n)) : n >= 10 ? n.toFixed(0) : n > 0 ? n.toFixed(1) : '0') + '/s';
function span(s) {
  if (s === 0) return '0 s';
  if (s < 1e-3) return (s * 1e6).toPrecision(3) + ' µs';
  if (s < 1) return (s * 1e3).toPrecision(3) + ' ms';
  if (s < 60) return s.toPrecision(3) + ' s';
  if (s < 5400) return Math.floor(s / 60) + ' min ' + Math.floor(s % 60) + ' s';
  if (s < 172800) return Math.floor(s / 3600) + ' h ' + Math.floor((s % 3600) / 60) + ' min';
  return (s / 86400).toFixed(1) + ' days';
}
function bytes(n) {
  for (const [unit, size] of [['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]]) if (n >= size) return (n / size).toPrecision(3) + ' ' + unit;
  return n + ' B';
}
function cut(text, length) {
  const all = [...text];
  return all.length > length ? all.slice(0, length - 1).join('') + '…' : text;
}

/** The data of the page of a finished run. It has no stream of states, and has sliders only if it was made from a trace. */
const frozen = byId('frozen') ? JSON.parse(byId('frozen').textContent) : null;
let flow = null;
const now = {};
let lanes = [];
let over = false;
let token = null;

// ---- The run as a whole ----

const PHASES = { ready: 'not started', running: 'running', draining: 'finishing', abandoned: 'abandoned', done: 'done' };

function showRun() {
  const t = now.totals;
  const held = t.phase === 'ready' ? 'The run has not started.' : 'Held by ' + t.held_by + '.';
  if (!frozen) say(byId('limit'), over ? 'The run is over: this is its last state.' : held);
  const phase = byId('phase');
  say(phase, PHASES[t.phase] || t.phase);
  phase.className = 'phase ' + t.phase;
  document.title = (over ? 'over' : rate(t.rate)) + ' – ' + flow.flow;
  showTiles(frozen ? reportTiles(frozen.report) : [
    ['retired', count(t.retired)],
    ['leaving now', rate(t.rate)],
    ['time left', t.left_s === null ? '–' : span(t.left_s)],
    ['elapsed', span(Math.round(t.wall_s))],
    ['in flight', count(t.in_flight) + ' of ' + count(t.inflight_cap)],
    ['bytes in flight', bytes(t.bytes) + (t.memory_cap === null ? '' : ' of ' + bytes(t.memory_cap))],
    ['workers busy', count(t.workers_busy)],
    ['dead-lettered', count(t.dead), t.dead > 0],
  ]);
  const left = ['admitted ' + count(t.admitted)].concat(t.split ? ['split ' + count(t.split)] : []);
  const right = ['retired ' + count(t.retired), 'dead-lettered ' + count(t.dead)]
    .concat(t.gathered ? ['gathered ' + count(t.gathered)] : [], [(frozen ? 'left ' : 'in flight ') + count(t.in_flight)]);
  say(byId('balance'), left.join(' + ') + ' = ' + right.join(' + '));
}

/** Names and values, and whether a value is bad. */
function showTiles(tiles) {
  const list = byId('tiles');
  if (!list.children.length) for (const [name] of tiles) list.append(el('div', {}, el('dt', {}, name), el('dd')));
  tiles.forEach(([, value, isBad], i) => {
    say(list.children[i].lastChild, value);
    list.children[i].lastChild.className = isBad ? 'bad' : '';
  });
}

// ---- The report of a finished run ----

function reportTiles(report) {
  return [
    ['units retired', count(report.retired)],
    ['dead-lettered', count(report.dead_lettered), report.dead_lettered > 0],
    ['left', count(report.left), report.left > 0],
    ['retired, on average', rate(report.wall_s > 0 ? report.retired / report.wall_s : 0)],
    ['in flight at most', count(report.peak_in_flight) + ' of ' + count(report.inflight_cap)],
    ['bytes in flight at most', bytes(report.peak_bytes_in_flight) + (report.memory_cap === null ? '' : ' of ' + bytes(report.memory_cap))],
  ];
}

/** The nodes of a message, in which backticks mark names and commands. */
function prose(message) {
  const parts = message.split('`');
  const paired = parts.length - (parts.length % 2 === 0 ? 1 : 0);
  return parts.map((part, i) => (i >= paired ? '`' + part : i % 2 === 1 ? el('code', {}, part) : part));
}

function showReport(report) {
  document.title = flow.flow + ' – millstream report';
  byId('limit').replaceChildren(el('b', {}, 'Bottleneck '), ...prose(report.bottleneck));
  say(byId('phase'), report.outcome);
  byId('phase').className = report.good ? 'phase running' : 'phase lost';
  say(byId('run'), `in ${span(report.wall_s)}, with ${count(report.workers)} ${report.workers === 1 ? 'worker' : 'workers'} shared by its stages`);
  const identity = byId('identity');
  identity.hidden = false;
  identity.replaceChildren(...report.identity.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, value))));
  byId('facts').replaceChildren(...report.facts.map((fact) => el('li', {}, fact)));
}

// ---- The graph ----

const NODE = { width: 168, height: 68, gapX: 44, gapY: 16, rowGap: 26, letters: 24 };
let drawnFor = 0;
let nodes = [];

/** The layer of each stage: the longest path from the first stage, without the edges that lead back. */
function layers() {
  const layer = flow.stages.map(() => 0);
  const state = flow.stages.map(() => 0);
  const order = [];
  const ways = flow.stages.map((stage) => stage.next.slice());
  const visit = (i) => {
    state[i] = 1;
    ways[i] = ways[i].filter((j) => state[j] !== 1);
    for (const j of ways[i]) if (state[j] === 0) visit(j);
    state[i] = 2;
    order.unshift(i);
  };
  flow.stages.forEach((_, i) => state[i] === 0 && visit(i));
  for (const i of order) for (const j of ways[i]) layer[j] = Math.max(layer[j], layer[i] + 1);
  return layer;
}

function drawGraph() {
  const room = byId('graph').clientWidth;
  if (!flow || byId('graph-section').hidden || room === drawnFor) return;
  drawnFor = room;
  const columns = Math.max(1, Math.floor((room + NODE.gapX - 24) / (NODE.width + NODE.gapX)));
  const layer = layers();
  const members = [];
  layer.forEach((l, i) => (members[l] = members[l] || []).push(i));
  const place = [];
  let top = 12;
  for (let from = 0; from < members.length; from += columns) {
    const row = members.slice(from, from + columns);
    const tall = Math.max(...row.map((m) => m.length));
    const height = tall * (NODE.height + NODE.gapY) - NODE.gapY;
    row.forEach((m, column) => {
      const own = m.length * (NODE.height + NODE.gapY) - NODE.gapY;
      m.forEach((i, k) => {
        place[i] = { x: 12 + column * (NODE.width + NODE.gapX), y: top + (height - own) / 2 + k * (NODE.height + NODE.gapY), row: from, column };
      });
    });
    top += height + NODE.rowGap;
  }
  const picture = svg('svg', { viewBox: `0 0 ${room} ${top}`, height: top, role: 'group', 'aria-label': 'The stages of the flow and the ways between them' });
  flow.stages.forEach((stage, i) => stage.next.forEach((j) => picture.append(edge(place[i], place[j], layer[j] <= layer[i]))));
  nodes = flow.stages.map((stage, i) => node(stage, place[i]));
  picture.append(...nodes.map((n) => n.group));
  byId('graph').replaceChildren(picture);
  if (now.stages) showGraph();
}

function edge(a, b, isBack) {
  const [x1, y1, x2, y2] = [a.x + NODE.width, a.y + NODE.height / 2, b.x, b.y + NODE.height / 2];
  let way;
  if (a.row === b.row && b.column === a.column + 1) {
    const middle = (x1 + x2) / 2;
    way = `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2 - 5} ${y2}`;
  } else {
    // A line that passes other stages or leads to another row leaves to the right, follows the gap below the lower end, and enters
    // from the left.
    const low = Math.max(a.y, a.row === b.row ? b.y : a.y) + NODE.height + NODE.gapY / 2 + 3;
    const gap = a.row === b.row ? low : b.row > a.row ? Math.max(low, b.y - NODE.rowGap / 2) : b.y + NODE.height + NODE.gapY / 2 + 3;
    const [out, inn] = [x1 + 12, Math.max(4, x2 - 10)];
    way = `M${x1} ${y1}H${out}V${gap}H${inn}V${y2}H${x2 - 5}`;
  }
  const tip = `M${x2} ${y2}l-7 -4v8z`;
  return svg('g', { 'aria-hidden': 'true' }, svg('path', { class: isBack ? 'edge back' : 'edge', d: way }), svg('path', { class: 'head', d: tip }));
}

function node(stage, { x, y }) {
  const title = svg('title');
  const heat = svg('rect', { class: 'heat', x: 1, y: 1, width: 0, height: NODE.height - 2, rx: 5 });
  const lines = [24, 42, 58].map((line) => svg('text', { x: 10, y: line - 4, class: line === 24 ? 'title' : '' }));
  const failed = svg('text', { x: NODE.width - 10, y: 20, 'text-anchor': 'end', class: 'failed' });
  lines[0].textContent = cut(stage.name, 19);
  const group = svg('g', { class: 'node', transform: `translate(${x} ${y})`, role: 'img' }, title,
    svg('rect', { width: NODE.width, height: NODE.height, rx: 6 }), heat, ...lines, failed);
  return { group, title, heat, lines, failed };
}

/** Units done a second: now, or over the whole run if it is over. */
const pace = (s) => (!frozen ? s.rate : now.totals.wall_s > 0 ? s.done / now.totals.wall_s : 0);

function showGraph() {
  const most = now.stages.reduce((sum, s) => sum + s.waiting, 0);
  nodes.forEach((n, i) => {
    const s = now.stages[i];
    n.heat.setAttribute('width', most > 0 ? ((NODE.width - 2) * s.waiting) / most : 0);
    n.group.classList.toggle('limits', now.totals.limit === flow.stages[i].name && !over);
    const where = count(s.waiting) + ' waiting · ' + count(s.running) + ' running';
    say(n.lines[1], where.length > NODE.letters ? count(s.waiting) + ' wait · ' + count(s.running) + ' run' : where);
    say(n.lines[2], count(s.done) + ' done · ' + rate(pace(s)));
    const dead = s.dead > 0 ? count(s.dead) + ' ✗' : '';
    say(n.failed, dead);
    say(n.lines[0], cut(flow.stages[i].name, dead ? Math.max(4, 18 - dead.length) : 19));
    const words = `${flow.stages[i].name}: ${s.waiting} waiting, ${s.running} running, ${s.done} done, ${s.failed} failed attempts, ${s.dead} dead-lettered, ${rate(pace(s))}`;
    say(n.title, words);
    if (n.group.getAttribute('aria-label') !== words) n.group.setAttribute('aria-label', words);
  });
}

// ---- What waits for what ----

function showWaits() {
  const by = new Map();
  now.waits.forEach(([stage, resource, units, s]) => {
    const bar = by.get(resource) || { s: 0, units: 0, parts: [] };
    bar.s += s;
    bar.units += units;
    bar.parts.push([stage, s]);
    by.set(resource, bar);
  });
  const rows = [...by].filter(([, bar]) => bar.s > 0 || bar.units > 0).sort((a, b) => b[1].s - a[1].s).slice(0, 8);
  if (!rows.length) return byId('waits').replaceChildren(el('p', {}, 'No unit has waited.'));
  const words = (bar) => span(bar.s) + (bar.units ? ' · ' + count(bar.units) + ' now' : '');
  bars(byId('waits'), rows.map(([name, bar]) => ({ name, words: words(bar), parts: bar.parts })), (stage) => flow.stages[stage].name, 'other stages');
}

/** Bars on one scale, with a legend. Each has a name, words after it, and parts, which are a key and seconds. */
function bars(home, rows, nameOf, others) {
  const sums = new Map();
  for (const row of rows) for (const [key, s] of row.parts) sums.set(key, (sums.get(key) || 0) + s);
  // The keys with the longest times have colours of their own.
  const keys = [...sums].filter(([, s]) => s > 0).sort((a, b) => b[1] - a[1]).map(([key]) => key);
  const named = keys.slice(0, keys.length > COLOURS ? COLOURS - 1 : COLOURS);
  const colour = (key) => 'p' + (named.includes(key) ? named.indexOf(key) : COLOURS - 1);
  const sum = (row) => row.parts.reduce((total, [, s]) => total + s, 0);
  const most = Math.max(1e-9, ...rows.map(sum));
  const grid = el('div', { class: 'bars' });
  for (const row of rows) {
    let x = 0;
    const words = row.parts.map(([key, s]) => nameOf(key) + ' ' + span(s)).join(', ');
    const picture = svg('svg', { viewBox: '0 0 1000 18', preserveAspectRatio: 'none', role: 'img', 'aria-label': row.name + ': ' + words });
    for (const [key, s] of [...row.parts].sort((a, b) => named.indexOf(b[0]) < 0 ? -1 : named.indexOf(a[0]) < 0 ? 1 : named.indexOf(a[0]) - named.indexOf(b[0]))) {
      const width = (1000 * s) / most;
      picture.append(svg('rect', { class: colour(key), x, width, height: 18 }, svg('title', {}, nameOf(key) + ' ' + span(s))));
      x += width;
    }
    grid.append(el('span', {}, row.name), picture, el('span', {}, row.words));
  }
  home.replaceChildren(grid, legend(named.map((key) => [colour(key), nameOf(key)]).concat(keys.length > named.length ? [['p' + (COLOURS - 1), others]] : [])));
}

function legend(entries) {
  const key = ([kind, words]) => el('span', {}, svg('svg', { viewBox: '0 0 10 10' }, svg('rect', { class: kind, width: 10, height: 10 })), words);
  return el('div', { class: 'legend', 'aria-hidden': 'true' }, ...entries.map(key));
}

// ---- Where the time went, by stage ----

function showTime() {
  const parts = flow.stages.map((_, i) => [['running', now.stages[i].busy_s]]);
  now.waits.forEach(([stage, resource, , s]) => parts[stage].push([resource, s]));
  const rows = flow.stages.map((stage, i) => {
    const waited = parts[i].slice(1).reduce((sum, [, s]) => sum + s, 0);
    return { name: stage.name, words: span(parts[i][0][1]) + ' running' + (waited > 0 ? ' · ' + span(waited) + ' waiting' : ''), parts: parts[i] };
  });
  bars(byId('time'), rows, (key) => (key === 'running' ? key : 'waiting for ' + key), 'waiting for something else');
}

// ---- Over time ----

/** Areas stacked on each other; each layer has a class and a value for each span between two times. */
function areas(times, layers, words, unit) {
  const end = times[times.length - 1];
  const sums = layers.reduce((sum, { values }) => sum.map((n, i) => n + values[i]), times.slice(1).map(() => 0));
  const most = Math.max(0, ...sums);
  const x = (i) => ((1000 * times[i]) / end).toFixed(1);
  const y = (n) => (100 - (100 * n) / Math.max(most, 1e-9)).toFixed(1);
  const picture = svg('svg', { viewBox: '0 0 1000 100', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${words}, at most ${unit(most)}` });
  let base = sums.map(() => 0);
  for (const { kind, values } of layers) {
    const top = base.map((n, i) => n + values[i]);
    const there = top.map((n, i) => `V${y(n)}H${x(i + 1)}`).join('');
    const back = base.map((n, i) => `V${y(n)}H${x(i)}`).reverse().join('');
    picture.append(svg('path', { class: kind, d: `M0 ${y(base[0])}${there}${back}Z` }));
    base = top;
  }
  return el('div', { class: 'chart' }, el('p', { class: 'faint' }, `${words}: at most ${unit(most)}`), picture,
    el('p', { class: 'axis faint' }, el('span', {}, '0'), el('span', {}, span(end))));
}

function showHistory() {
  const { names } = now.history;
  const moments = now.history.moments.slice();
  // The rate over a short span at the end would be arbitrary.
  const spanOf = (i) => moments[i][0] - moments[i - 1][0];
  if (moments.length > 2 && spanOf(moments.length - 1) < spanOf(moments.length - 2) / 2) moments.splice(-2, 1);
  const shown = moments.length >= 4 && moments[moments.length - 1][0] > 0;
  byId('history-section').hidden = !shown;
  if (!shown) return;
  const times = moments.map(([s]) => s);
  const perSecond = (k) => moments.slice(1).map((m, i) => (m[k] - moments[i][k]) / Math.max(1e-9, m[0] - moments[i][0]));
  const waited = names.map((_, k) => moments.slice(1).map((m) => m[3][k]));
  const sums = waited.map((values) => values.reduce((a, b) => a + b, 0));
  const seen = names.map((_, k) => k).filter((k) => sums[k] > 0).sort((a, b) => sums[b] - sums[a]);
  const named = seen.slice(0, seen.length > COLOURS ? COLOURS - 1 : COLOURS);
  const rest = seen.slice(named.length);
  const layers = named.map((k, i) => ({ kind: 'p' + i, values: waited[k] }));
  if (rest.length) layers.push({ kind: 'p' + (COLOURS - 1), values: times.slice(1).map((_, i) => rest.reduce((sum, k) => sum + waited[k][i], 0)) });
  const died = moments[moments.length - 1][2] > 0;
  const left = [{ kind: 'done', values: perSecond(1) }].concat(died ? [{ kind: 'dead', values: perSecond(2) }] : []);
  const nodes = [areas(times, left, 'units that left', rate)];
  if (died) nodes.push(legend([['done', 'retired'], ['dead', 'dead-lettered']]));
  if (seen.length) {
    nodes.push(areas(times, layers, 'units that waited', count));
    nodes.push(legend(named.map((k, i) => ['p' + i, 'for ' + names[k]]).concat(rest.length ? [['p' + (COLOURS - 1), 'for something else']] : [])));
  }
  byId('history').replaceChildren(...nodes);
}

// ---- The lanes of a file of events ----

/** A strip of a lane, on its own scale: the height of a step is the number of concurrent spans, with the failed ones in front. */
function strip(lane) {
  const most = Math.max(1e-9, ...lane.strip);
  const wide = 1000 / lane.strip.length;
  const path = (values) => 'M0 30' + values.map((n, i) => `V${(30 - (30 * n) / most).toFixed(1)}H${((i + 1) * wide).toFixed(1)}`).join('') + 'V30Z';
  const picture = svg('svg', { viewBox: '0 0 1000 30', preserveAspectRatio: 'none', role: 'img', 'aria-label': lane.name + ': ' + laneWords(lane) },
    svg('path', { class: 'part', d: path(lane.strip) }));
  if (lane.failed) picture.append(svg('path', { class: 'dead', d: path(lane.failed_strip) }));
  return picture;
}
const laneWords = (lane) => `${count(lane.spans)}× · ${span(lane.busy_s)} · up to ${count(lane.most)} at once${lane.failed ? ` · ${count(lane.failed)} failed` : ''}`;

function showTimeline(timeline) {
  for (const section of document.querySelectorAll('main > section')) section.hidden = section.id !== 'timeline-section';
  for (const id of ['tiles', 'balance']) byId(id).hidden = true;
  say(byId('flow'), timeline.name);
  say(byId('run'), `${timeline.file}: ${count(timeline.spans)} spans in ${span(timeline.wall_s)}`);
  say(byId('phase'), timeline.is_ours ? 'events of a run' : 'events of another program');
  byId('phase').className = 'phase';
  document.title = timeline.name + ' – millstream events';
  const busiest = timeline.stages.reduce((most, lane) => (lane.busy_s > (most ? most.busy_s : 0) ? lane : most), null);
  byId('limit').replaceChildren(...(busiest ? ['Most time in ', el('b', {}, busiest.name), `: ${span(busiest.busy_s)} in all.`] : ['Nothing ran.']));
  byId('facts').replaceChildren(...timeline.facts.map((fact) => el('li', {}, ...prose(fact))));
  if (!timeline.is_ours) say(byId('h-threads'), 'By thread');
  for (const [id, lanes] of [['timeline', timeline.stages], ['threads', timeline.threads]]) {
    const rows = lanes.flatMap((lane) => [el('span', {}, lane.name), strip(lane), el('span', {}, laneWords(lane))]);
    const axis = [el('span'), el('p', { class: 'axis faint' }, el('span', {}, '0'), el('span', {}, span(timeline.wall_s))), el('span')];
    byId(id).replaceChildren(el('div', { class: 'bars' }, ...rows, ...axis));
  }
}

// ---- Tables ----

function table(home, heads, names) {
  const head = el('tr');
  heads.forEach(([name, kind]) => head.append(el('th', kind ? { scope: 'col', class: kind } : { scope: 'col' }, name)));
  const rows = names.map((name) => {
    const row = el('tr', {}, el('th', { scope: 'row', title: name }, name));
    const cells = heads.slice(1).map(([, kind]) => el('td', kind ? { class: kind } : {}));
    row.append(...cells);
    return { row, cells };
  });
  home.replaceChildren(el('thead', {}, head), el('tbody', {}, ...rows.map((r) => r.row)));
  return rows;
}

let stageRows = [];
let serviceRows = [];
let resourceRows = [];

function buildTables() {
  stageRows = table(byId('stages'), [['stage'], [frozen ? 'over the run' : 'last five minutes', 'text'], ['waiting'], ['for', 'text'], ['running'], ['done'],
    ['rate'], ['failed'], ['retried'], ['requeued'], ['dead'], ['oldest wait'], ['wait p50'], ['wait p99'], ['busy, mean'], ['workers']], flow.stages.map((s) => s.name));
  say(byId('curves'), `The curves are ${frozen ? 'the whole run' : 'the last five minutes'}: units waiting (area) and units done a second (line), each on its own scale.`);
  for (const { cells } of stageRows) {
    cells[0].append(svg('svg', { class: 'spark', viewBox: '0 0 150 26', role: 'img' },
      svg('path', { class: 'area' }), svg('path', { class: 'rate' })));
    cells[14].append(el('span'));
  }
  resourceRows = table(byId('resources'), [['resource'], ['used', 'text'], ['of'], ['at most'], ['waiting'], ['keys'], ['kind', 'text']], flow.resources.map((r) => r.name));
  for (const { cells } of resourceRows) {
    cells[0].append(el('span'), svg('svg', { class: 'use', viewBox: '0 0 100 8', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
      svg('rect', { class: 'all', width: 100, height: 8, rx: 3 }), svg('rect', { class: 'part', width: 0, height: 8, rx: 3 })));
    cells[1].append(el('span'));
  }
  byId('resources-section').hidden = flow.resources.length === 0;
  serviceRows = table(byId('service'), [['stage'], ['', 'text'], ['p50'], ['p90'], ['p99'], ['max']], flow.stages.map((s) => s.name));
  for (const { cells } of serviceRows) cells[0].append(svg('svg', { class: 'spread', viewBox: '0 0 260 16', role: 'img' }));
}

function showStages() {
  const lack = flow.stages.map(() => []);
  now.waits.forEach(([stage, resource, units]) => units && lack[stage].push(count(units) + ' ' + resource));
  stageRows.forEach(({ cells }, i) => {
    const s = now.stages[i];
    [null, count(s.waiting), lack[i].join(', ') || (s.granted ? 'a worker' : ''), count(s.running), count(s.done), rate(pace(s)), count(s.failed),
      count(s.retried), count(s.requeued), count(s.dead), s.waiting ? span(s.oldest_s) : '–', span(s.wait[0]), span(s.wait[1]),
      (now.totals.wall_s > 0 ? s.busy_s / now.totals.wall_s : 0).toFixed(2)]
      .forEach((text, k) => text !== null && say(cells[k], text));
    cells[9].className = s.dead > 0 ? 'bad' : '';
    say(cells[14].firstChild, frozen ? `at most ${s.max}` : `${s.busy} of ${s.min === s.max ? s.max : s.min + ' to ' + s.max}`);
  });
}

/** The spread of service times, on one logarithmic scale for all stages. */
function showService() {
  const run = now.stages.filter((s) => s.service[3] > 0);
  if (!run.length) return;
  const first = Math.floor(Math.log10(Math.max(1e-9, Math.min(...run.map((s) => s.service[0])))));
  const last = Math.max(first + 1, Math.ceil(Math.log10(Math.max(...run.map((s) => s.service[3])))));
  const x = (s) => Math.min(260, Math.max(0, (260 * (Math.log10(Math.max(1e-9, s)) - first)) / (last - first)));
  serviceRows.forEach(({ cells }, i) => {
    const times = now.stages[i].service;
    const measured = times[3] > 0;
    times.forEach((s, k) => say(cells[k + 1], measured ? span(s) : '–'));
    const [picture] = cells[0].children;
    const words = measured ? `median ${span(times[0])}, 99th percentile ${span(times[2])}; from ${span(10 ** first)} to ${span(10 ** last)}` : 'no unit has run';
    if (picture.getAttribute('aria-label') === words) return;
    picture.setAttribute('aria-label', words);
    const lines = [];
    for (let d = first; d <= last; d++) lines.push(svg('path', { class: 'grid', d: `M${x(10 ** d).toFixed(1)} 0v16` }));
    picture.replaceChildren(svg('title', {}, words), ...lines);
    if (!measured) return;
    picture.append(svg('rect', { class: 'part', x: x(times[0]), y: 3, width: Math.max(2, x(times[2]) - x(times[0])), height: 10, rx: 3 }),
      svg('rect', { class: 'slowest', x: Math.min(257, x(times[3])), y: 1, width: 3, height: 14, rx: 1 }));
  });
  say(byId('service').querySelectorAll('th')[1], `${span(10 ** first)} to ${span(10 ** last)}`);
}

function showLanes() {
  const end = lanes.length ? lanes[lanes.length - 1][0] : 0;
  const all = frozen ? Math.max(end, 1e-3) : LANE_S;
  const shown = lanes.filter(([s]) => s > end - all);
  const x = (s) => (150 * (1 - (end - s) / all)).toFixed(1);
  stageRows.forEach(({ cells }, i) => {
    const [picture] = cells[0].children;
    const line = (k) => {
      const most = Math.max(1e-9, ...shown.map((lane) => lane[k][i]));
      return shown.map((lane) => x(lane[0]) + ' ' + (25 - (24 * lane[k][i]) / most).toFixed(1));
    };
    const [waiting, done] = [line(1), line(2)];
    if (!waiting.length) return;
    picture.children[0].setAttribute('d', `M${x(shown[0][0])} 25L${waiting.join('L')}L150 25z`);
    picture.children[1].setAttribute('d', 'M' + done.join('L'));
    const most = Math.max(...shown.map((lane) => lane[1][i]));
    picture.setAttribute('aria-label', `at most ${count(most)} waiting ${frozen ? 'in the run' : 'in the last five minutes'}`);
  });
}

function showResources() {
  resourceRows.forEach(({ cells }, i) => {
    const r = now.resources[i];
    const keyed = r.keys > 0 || flow.resources[i].kind.startsWith('keyed');
    say(cells[0].children[0], r.rate === null ? count(r.used) : '');
    const share = r.rate === null && !keyed && r.cap > 0 ? Math.min(1, r.used / r.cap) : 0;
    cells[0].children[1].children[1].setAttribute('width', 100 * share);
    cells[0].children[1].toggleAttribute('hidden', r.rate !== null || keyed);
    cells[0].children[1].style.display = r.rate !== null || keyed ? 'none' : '';
    say(cells[1].firstChild, (r.rate === null ? count(r.cap) : rate(r.rate) + ', burst ' + count(r.cap)) + (keyed ? ' for each key' : ''));
    say(cells[2], r.rate === null ? count(r.peak) : '–');
    say(cells[3], count(r.waiting));
    say(cells[4], keyed ? count(r.keys) : '–');
    say(cells[5], flow.resources[i].kind);
  });
}

function showList(id, items, words) {
  byId(id + '-section').hidden = items.length === 0;
  byId(id).replaceChildren(...items.map((item) => el('li', {}, ...words(item))));
}

// ---- Changes ----

let dialogKey = null;

function openChange(key, old) {
  dialogKey = key;
  say(byId('change-key'), key);
  say(byId('change-old'), old);
  byId('change-new').value = old;
  say(byId('change-error'), '');
  byId('change').showModal();
  byId('change-new').select();
}

async function applyChange() {
  const value = byId('change-new').value.trim();
  const answer = await steer([`${dialogKey}=${value}`]);
  if (answer.ok) byId('change').close();
  else say(byId('change-error'), answer.error);
}

const steer = (settings) => post('settings', { settings });

async function post(path, body) {
  try {
    const answer = await fetch(path, {
      method: 'POST',
      headers: { Authorization: 'Bearer ' + token, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    return answer.headers.get('Content-Type').startsWith('application/json') ? JSON.parse(text) : { ok: false, error: text };
  } catch (error) {
    return { ok: false, error: 'the run does not answer' };
  }
}

function changeButton(key, old) {
  const button = el('button', { type: 'button', 'aria-label': 'change ' + key }, 'change');
  button.addEventListener('click', () => openChange(key, old()));
  return button;
}

async function unlock(event) {
  event.preventDefault();
  token = byId('token').value;
  // An empty change tests the token.
  const answer = await steer([]);
  say(byId('unlocked'), answer.ok ? 'The run can be changed.' : answer.error);
  if (!answer.ok || !byId('caps').hidden) return;
  byId('token').value = '';
  byId('caps').hidden = false;
  // The page can now do what an earlier answer suggested as a command.
  byId('whatif-do').hidden = byId('whatif-answer').hidden;
  if (!byId('whatif-answer').hidden) say(byId('whatif-command'), '');
  showRetry();
  const caps = [['inflight', () => String(now.totals.inflight_cap)], ['workers', () => String(now.totals.workers)],
    ['memory', () => (now.totals.memory_cap === null ? 'none' : String(now.totals.memory_cap))]];
  byId('caps').replaceChildren(...caps.map(([key, old]) => el('li', {}, el('b', {}, key), changeButton(key, old))));
  stageRows.forEach(({ cells }, i) => {
    cells[14].append(changeButton(`stage.${flow.stages[i].name}.workers`, () => now.stages[i].min + '..' + now.stages[i].max));
  });
  resourceRows.forEach(({ cells }, i) => {
    if (flow.resources[i].kind === 'pool') return;
    const old = () => (now.resources[i].rate === null ? String(now.resources[i].cap) : now.resources[i].rate + '/s');
    cells[1].append(changeButton('resource.' + flow.resources[i].name, old));
  });
}

// ---- What if ----
// Sliders for the settings; each answer is a replay of the newest units by the run. One question is asked at a time, and the
// newest one waits for its answer.

const QUIET_MS = 120;
const STEPS = 33;
const client = String(Math.random()).slice(2);
const unlocked = () => !byId('caps').hidden;
/** Whether there are units to replay: those of a live run, or of a trace. */
const canAsk = () => (frozen ? Boolean(frozen.whatif) : !over);
let sliders = [];
let asking = false;
let askAgain = false;
let quiet = 0;

function showWhatIf() {
  for (const id of ['whatif-section', 'to-whatif']) byId(id).hidden = !canAsk();
}

/** The values of a slider, from a few up to several times the current value, which is among them. */
function choices(value, least, most) {
  const top = Math.min(most, Math.max(4 * value, 8));
  if (top - least < STEPS) return Array.from({ length: top - least + 1 }, (_, i) => least + i);
  const low = Math.max(least, value / 8);
  const all = Array.from({ length: STEPS }, (_, i) => Math.round(low * (top / low) ** (i / (STEPS - 1))));
  return [...new Set([...all, value])].sort((a, b) => a - b);
}
function rates(value) {
  const all = Array.from({ length: STEPS }, (_, i) => Number((value * 8 ** (i / 16 - 1)).toPrecision(3)));
  return [...new Set([...all.filter((n) => n > 0), value])].sort((a, b) => a - b);
}

function buildSliders() {
  const of = (key, now, list, unit = '') => ({ key, now, list, unit });
  sliders = [];
  flow.resources.forEach(({ name, kind }, i) => {
    if (kind === 'pool') return;
    const isRate = now.resources[i].rate !== null;
    sliders.push(isRate ? of('resource.' + name, () => now.resources[i].rate, rates, '/s')
      : of('resource.' + name, () => now.resources[i].cap, (n) => choices(n, 1, 1e6)));
  });
  sliders.push(of('workers', () => now.totals.workers, (n) => choices(n, 1, 1024)));
  sliders.push(of('inflight', () => now.totals.inflight_cap, (n) => choices(n, 1, 1e6)));
  const rows = sliders.map((slider, i) => {
    slider.input = el('input', { type: 'range', id: 'slider-' + i, min: '0', step: '1' });
    slider.shown = el('output', { for: 'slider-' + i });
    slider.input.addEventListener('input', () => {
      showSlider(slider);
      clearTimeout(quiet);
      quiet = setTimeout(ask, QUIET_MS);
    });
    return [el('label', { for: 'slider-' + i }, slider.key), slider.input, slider.shown];
  });
  byId('sliders').replaceChildren(...rows.flat());
  resetSliders();
}

/** Moves a slider to the current value of its setting. */
function restSlider(slider) {
  slider.from = slider.now();
  slider.values = slider.list(Math.max(slider.from, slider.unit ? 1e-9 : 1));
  slider.input.max = String(slider.values.length - 1);
  slider.input.value = String(Math.max(0, slider.values.indexOf(slider.from)));
  showSlider(slider);
}
const chosen = (slider) => slider.values[Number(slider.input.value)];
const isMoved = (slider) => chosen(slider) !== slider.from;
function showSlider(slider) {
  const text = count(chosen(slider)) + slider.unit;
  say(slider.shown, isMoved(slider) ? `${text} (is ${count(slider.from)}${slider.unit})` : text);
  slider.shown.className = isMoved(slider) ? 'moved' : '';
  slider.input.setAttribute('aria-valuetext', text);
}
function resetSliders() {
  sliders.forEach(restSlider);
  say(byId('whatif-said'), 'Move a slider.');
  for (const id of ['whatif-answer', 'whatif-reset', 'whatif-do']) byId(id).hidden = true;
  say(byId('whatif-command'), '');
}

/** The settings that the sliders ask for. */
const wanted = () => sliders.filter(isMoved).map((slider) => `${slider.key}=${chosen(slider)}${slider.unit}`);

/** The run's answer to settings. A newer question of the same client replaces one that waits. */
async function answerTo(client, settings) {
  try {
    const response = await fetch('whatif', {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ client, settings }),
    });
    const text = await response.text();
    return response.ok ? JSON.parse(text) : { ok: false, error: text };
  } catch (error) {
    return { ok: false, error: 'the run does not answer' };
  }
}

async function ask() {
  if (asking) {
    askAgain = true;
    return;
  }
  const settings = wanted();
  if (!settings.length) return resetSliders();
  asking = true;
  const answer = await answerTo(client, settings);
  asking = false;
  if (canAsk()) showAnswer(answer, settings);
  if (askAgain && canAsk()) {
    askAgain = false;
    ask();
  }
}

/** A sentence for an answer whose replay with the run's own settings has another pace than the run. */
function doubt(answer) {
  if (answer.contradiction) return ` This is a guess: ${answer.contradiction}.`;
  const miss = Math.abs(answer.miss) * 100;
  if (miss <= 5) return '';
  return ` The replay misses the ${frozen ? 'time' : 'pace'} that was measured by ${miss.toFixed(0)} %: this is a guess.`;
}

/** A change: +12 %, −3 %. */
const percent = (change) => (change > 0 ? '+' : '') + change.toFixed(0).replace('-', '−') + ' %';

function showAnswer(answer, settings) {
  byId('whatif-answer').hidden = !answer.ok;
  byId('whatif-reset').hidden = false;
  byId('whatif-do').hidden = !answer.ok || !unlocked();
  const command = frozen ? frozen.whatif.command : !unlocked() && flow.reach && 'millstream set ' + flow.reach;
  say(byId('whatif-command'), answer.ok && command ? [command, ...settings].join(' ') : '');
  if (!answer.ok) return say(byId('whatif-said'), 'No answer: ' + answer.error.trim() + '.');
  const units = answer.of > answer.units ? `a sample, ${count(answer.units)} of the ${count(answer.of)} traced units` : `the ${frozen ? 'trace:' : 'newest'} ${count(answer.units)} units${answer.waiting ? ` that left, and ${count(answer.waiting)} that wait` : ''}`;
  say(byId('whatif-said'), `A replay of ${units}, in ${answer.took_ms} ms. It takes for granted that units come as they came, and that a disk or a server answers as fast to more requests as to fewer.${doubt(answer)}`);
  const lines = [...(frozen ? [['time in all', 'wall_s', span]] : []), ['throughput', 'throughput', rate], ['latency p50', 'p50_s', span], ['latency p99', 'p99_s', span], ['limited by', 'limit', String]];
  const row = ([name, member, words]) => {
    const [before, after] = [answer.before[member], answer.after[member]];
    const change = typeof before === 'number' && before > 0 ? percent((100 * after) / before - 100) : '';
    const cell = (value) => el('td', { class: 'text' }, ...prose(words(value)));
    return el('tr', {}, el('th', { scope: 'row' }, name), cell(before), cell(after), el('td', {}, change));
  };
  const head = el('tr', {}, ...['', 'as it is', 'then', 'change'].map((name, i) => el('th', { scope: 'col', class: i === 3 ? '' : 'text' }, name)));
  byId('whatif-answer').replaceChildren(el('thead', {}, head), el('tbody', {}, ...lines.map(row)));
}

/** Asks for each setting doubled, and lists those that raise the throughput by 1 % and more, the best first. */
async function findHelp() {
  byId('helps-ask').disabled = true;
  const found = [];
  let answered = 0;
  let refused = '';
  let last = null;
  let withheld = null;
  for (const [i, slider] of sliders.entries()) {
    if (!canAsk()) break;
    say(byId('helps-said'), `Tries ${slider.key}, ${i + 1} of ${count(sliders.length)}.`);
    const to = 2 * slider.now();
    const answer = await answerTo(client + '-helps', [`${slider.key}=${to}${slider.unit}`]);
    if (!answer.ok) {
      refused = answer.error.trim();
      continue;
    }
    answered += 1;
    last = answer;
    if (answer.contradiction) {
      withheld = answer.contradiction;
      break;
    }
    const gain = answer.after.throughput / answer.before.throughput - 1;
    if (gain >= 0.01) found.push({ slider, to, gain, answer });
  }
  byId('helps-ask').disabled = false;
  byId('helps').hidden = true;
  if (withheld) return say(byId('helps-said'), `Nothing that can be said: ${withheld}. Ask again later.`);
  found.sort((a, b) => b.gain - a.gain);
  const none = 'Doubling any single setting gives nothing: change two at once, or make a stage faster.';
  const said = found.length ? 'Each alone, doubled:' : answered ? none : `No answer: ${refused || 'the run is over'}.`;
  const missing = answered && refused ? ` ${count(sliders.length - answered)} of ${count(sliders.length)} had no answer: ${refused}.` : '';
  say(byId('helps-said'), said + missing + (last ? doubt(last) : ''));
  byId('helps').hidden = found.length === 0;
  byId('helps').replaceChildren(...found.map(helpLine));
}
function helpLine({ slider, to, gain, answer }) {
  const choose = el('button', { type: 'button' }, `${slider.key}=${count(to)}${slider.unit}`);
  choose.addEventListener('click', () => {
    sliders.forEach(restSlider);
    slider.values = [...new Set([...slider.values, to])].sort((a, b) => a - b);
    slider.input.max = String(slider.values.length - 1);
    slider.input.value = String(slider.values.indexOf(to));
    showSlider(slider);
    ask();
  });
  const change = `${rate(answer.before.throughput)} → ${rate(answer.after.throughput)}, ${percent(100 * gain)}`;
  return el('li', {}, choose, ` ${change}; then limited by `, ...prose(answer.after.limit));
}

async function doIt() {
  const answer = await steer(wanted());
  if (!answer.ok) return say(byId('whatif-said'), answer.error);
  say(byId('whatif-said'), 'Done: ' + answer.changed.join(', ') + '.');
  for (const id of ['whatif-answer', 'whatif-reset', 'whatif-do', 'helps']) byId(id).hidden = true;
  say(byId('helps-said'), 'The settings have changed: ask again.');
}

/** Moves the sliders that the user has not moved to the run's current settings. */
function followRun() {
  if (!sliders.length || byId('sliders').contains(document.activeElement)) return;
  for (const slider of sliders) {
    const moved = isMoved(slider) ? chosen(slider) : null;
    if (slider.now() === slider.from || (moved !== null && moved !== slider.now())) continue;
    restSlider(slider);
  }
}
// ---- End of: What if ----
// ---- Dead letters, run again ----

function showRetry() {
  const r = now.retry;
  const nodes = [];
  if (r.again > 0) nodes.push(`${count(r.again)} dead ${r.again === 1 ? 'letter was' : 'letters were'} run again. `);
  if (r.letters > 0) {
    const command = el('code', { class: 'copied' }, r.command);
    if (over) nodes.push(command, ' runs ', count(r.letters), r.letters === 1 ? ' unit' : ' units', ' again.');
    else if (r.refused) nodes.push(r.refused + '. When the run is over, ', command, ' runs them again.');
    else if (byId('caps').hidden) nodes.push('With the token, they can be run again here; when the run is over, with ', command, '.');
    else nodes.push(againButton());
  }
  byId('letters-section').hidden = nodes.length === 0 && now.letters.length === 0;
  byId('retry').replaceChildren(...nodes);
}

let again = null;
function againButton() {
  if (again) return again;
  again = el('button', { type: 'button' }, 'Run them again');
  again.addEventListener('click', () => {
    say(byId('again-what'), `The units of ${count(now.retry.letters)} dead ${now.retry.letters === 1 ? 'letter' : 'letters'} start over at the first stage of this run.`);
    say(byId('again-error'), '');
    byId('again').showModal();
  });
  return again;
}

async function runAgain() {
  const answer = await post('retry', {});
  if (answer.ok) byId('again').close();
  else say(byId('again-error'), answer.error);
}

byId('again-cancel').addEventListener('click', () => byId('again').close());
byId('again-apply').addEventListener('click', (event) => {
  event.preventDefault();
  runAgain();
});

// ---- Events ----

function receive(state) {
  Object.assign(now, state);
  if (state.totals) showRun();
  if (state.stages || state.totals) showGraph();
  if (state.waits) showWaits();
  if (state.stages || state.waits) showStages();
  if (state.resources) showResources();
  if (state.stages || state.waits) showTime();
  if (state.stages) showService();
  if (state.history) showHistory();
  if (state.causes) showList('causes', state.causes, causeWords);
  if (state.letters) showList('letters', state.letters, (l) => [el('b', {}, l.stage), l.unit + ' – ', ...prose(l.message)]);
  if (state.retry || state.letters) showRetry();
  if (state.changes) showList('changes', state.changes, (c) => [el('b', {}, 'after ' + span(Math.round(c.at_s))), c.did.join(', ') + ' ', el('span', { class: 'faint' }, 'by user ' + c.user)]);
  if (!sliders.length && canAsk()) {
    showWhatIf();
    if (frozen) say(byId('whatif-of'), 'The traced units are replayed under other settings.');
    buildSliders();
  } else if (state.totals || state.resources) followRun();
  const last = lanes.length ? lanes[lanes.length - 1][0] : -LANE_STEP_S;
  if (!frozen && now.totals.wall_s >= last + LANE_STEP_S) {
    lanes.push([now.totals.wall_s, now.stages.map((s) => s.waiting), now.stages.map((s) => s.rate)]);
    lanes = lanes.slice(-LANE_S / LANE_STEP_S - 1);
    showLanes();
  }
}

function causeWords(c) {
  const reason = c.cause === 'error' ? c.message : c.cause + ': ' + c.message;
  const example = c.example ? [el('span', { class: 'faint' }, ' for example ' + cut(c.example, 120))] : [];
  return [el('b', {}, count(c.units) + '×'), c.stage + ': ', ...prose(reason), ...example];
}

function begin(facts) {
  flow = facts;
  lanes = flow.lanes;
  drawnFor = 0;
  say(byId('flow'), flow.flow);
  say(byId('run'), flow.run);
  byId('steer-section').hidden = !flow.steerable;
  // A report has neither the edges between stages nor their history.
  byId('graph-section').hidden = flow.stages.some((stage) => !stage.next);
  byId('stages').classList.toggle('no-curves', Boolean(frozen) && !lanes.length);
  byId('curves').hidden = Boolean(frozen) && !lanes.length;
  sliders = [];
  buildTables();
  drawGraph();
  showLanes();
}

function end() {
  over = true;
  showWhatIf();
  if (events) events.close();
  byId('steer-section').hidden = true;
  if (!now.totals) return;
  showRun();
  showGraph();
  showRetry();
}

byId('unlock').addEventListener('submit', unlock);
byId('whatif-reset').addEventListener('click', resetSliders);
byId('whatif-do').addEventListener('click', doIt);
byId('helps-ask').addEventListener('click', findHelp);
byId('to-whatif').addEventListener('click', () => byId('helps-ask').click());
byId('change-cancel').addEventListener('click', () => byId('change').close());
byId('change-apply').addEventListener('click', (event) => {
  event.preventDefault();
  applyChange();
});
new ResizeObserver(drawGraph).observe(byId('graph'));

const events = frozen ? null : new EventSource('events');
if (events) {
  events.addEventListener('flow', (event) => begin(JSON.parse(event.data)));
  events.addEventListener('state', (event) => receive(JSON.parse(event.data)));
  events.addEventListener('end', end);
  events.addEventListener('error', () => {
    if (over) return;
    say(byId('phase'), 'no connection');
    byId('phase').className = 'phase lost';
  });
} else if (frozen.timeline) {
  showTimeline(frozen.timeline);
} else {
  begin(frozen.flow);
  receive(frozen.state);
  end();
  showReport(frozen.report);
}
