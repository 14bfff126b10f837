// Scrolling, keys, pointer, colours, paper: what happens when somebody uses the page.

const view = document.getElementById("view");
const canvas = document.getElementById("canvas");
const overview = document.getElementById("overview");
const context = canvas.getContext("2d", { alpha: false });
const state = { chosen: -1, colours: palette(), wanted: false, size: [0, 0] };
const facts = document.documentElement.dataset; // what is shown, for whoever tests the page

/// Draws soon, once for everything that changed until then.
function redraw() {
  if (state.wanted) return;
  state.wanted = true;
  requestAnimationFrame(() => {
    state.wanted = false;
    draw();
  });
}

function draw() {
  const began = performance.now();
  const [width, height] = state.size;
  picture(context, { width, height, left: view.scrollLeft, up: view.scrollTop, colours: state.colours, chosen: state.chosen });
  drawOverview();
  document.getElementById("names").style.transform = `translateY(${-view.scrollTop}px)`;
  const box = view.getBoundingClientRect();
  Object.assign(facts, {
    events: drawn.events, transfers: drawn.transfers, races: drawn.races, labels: drawn.labels, chosen: state.chosen,
    x: box.left + xOf(Math.max(0, state.chosen)) - view.scrollLeft,
    y: box.top + layout.y[events.lane[Math.max(0, state.chosen)]] - view.scrollTop,
    milliseconds: (performance.now() - began).toFixed(1),
  });
}

/// The sizes of everything, after the window or the lanes have changed.
function resize() {
  fillHeight(view.clientHeight);
  showNames();
  const extent = document.getElementById("extent");
  extent.style.width = `${widthOf()}px`;
  extent.style.height = `${layout.total}px`;
  const [width, height] = [view.clientWidth, view.clientHeight];
  state.size = [width, height];
  fit(canvas, context, width, height);
  fit(overview, overview.getContext("2d"), overview.clientWidth, overview.clientHeight);
  state.density = null;
  redraw();
}

function fit(target, ctx, width, height) {
  const scale = window.devicePixelRatio || 1;
  [target.width, target.height] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  if (target === canvas) [target.style.width, target.style.height] = [`${width}px`, `${height}px`];
  ctx.setTransform(scale, 0, 0, scale, 0, 0);
}

/// The whole run in a strip: how much happens where, the races, and what is seen.
function drawOverview() {
  const ctx = overview.getContext("2d");
  const [width, height] = [overview.clientWidth, overview.clientHeight];
  const { colours } = state;
  ctx.fillStyle = colours.panel;
  ctx.fillRect(0, 0, width, height);
  if (!state.density || state.density.length !== Math.ceil(width)) {
    state.density = new Float64Array(Math.ceil(width));
    for (let event = 0; event < events.count; event += 1) {
      state.density[Math.min(state.density.length - 1, Math.floor((events.column[event] / columns) * width))] += 1;
    }
  }
  const most = state.density.reduce((high, count) => Math.max(high, count), 1);
  ctx.fillStyle = colours.lane;
  state.density.forEach((count, x) => count > 0 && ctx.fillRect(x, height - 4 - (count / most) * (height - 12), 1, (count / most) * (height - 12) + 2));
  const share = (pixels) => (pixels / widthOf()) * width;
  ctx.fillStyle = colours.wrong;
  accesses.forEach((event) => ctx.fillRect(share(xOf(event)) - 1, 2, 2.5, height - 4));
  ctx.fillStyle = colours.put;
  ctx.globalAlpha = 0.12;
  const [left, wide] = [share(view.scrollLeft), Math.max(6, share(state.size[0]))];
  if (wide >= width) ctx.globalAlpha = 0; // all of it is seen
  ctx.fillRect(left, 0, wide, height);
  ctx.globalAlpha *= 5.5;
  ctx.strokeStyle = colours.put;
  ctx.lineWidth = 1;
  ctx.strokeRect(left + 0.5, 0.5, wide - 1, height - 1);
  ctx.globalAlpha = 1;
}

/// Chooses an event: shows it, its line, and itself in the diagram.
function choose(event, centre = false) {
  if (event < 0 || event >= events.count) return;
  state.chosen = event;
  showEvent(event);
  showPlace(events.place[event]);
  const [x, y] = [xOf(event), layout.y[events.lane[event]]];
  const [width, height] = state.size;
  const aside = Math.min(120, width / 4);
  if (centre || x < view.scrollLeft + aside || x > view.scrollLeft + width - aside) view.scrollLeft = x - width / 2;
  if (y < view.scrollTop + TOP + 10 || y > view.scrollTop + height - 30) view.scrollTop = y - height / 2;
  redraw();
}

/// The next event of a line, after the one that is chosen.
function chooseNextAt(place) {
  const all = eventsAt.get(place);
  choose(all.find((event) => event > state.chosen) ?? all[0], true);
}

function chooseOnLane(step) {
  const all = eventsOf[events.lane[Math.max(0, state.chosen)]];
  choose(all[all.indexOf(state.chosen) + step] ?? state.chosen);
}

/// The nearest event on the next lane that has any.
function chooseLane(step) {
  for (let lane = events.lane[state.chosen] + step; lane >= 0 && lane < lanes.length; lane += step) {
    const all = eventsOf[lane];
    if (all.length === 0 || layout.folded.has(lanes[lane].pe)) continue;
    const away = (event) => Math.abs(event - state.chosen);
    choose(all.reduce((best, event) => (away(event) < away(best) ? event : best)));
    return;
  }
}

function chooseRace() {
  if (accesses.length > 0) choose(accesses[(accesses.indexOf(state.chosen) + 1) % accesses.length], true);
}

const chooseCause = () => choose(events.by[state.chosen] >= 0 ? events.by[state.chosen] : events.of[state.chosen], true);

/// Zooms; what is at `x` stays there.
function zoom(dx, x = state.size[0] / 2) {
  const column = (view.scrollLeft + x - SIDE) / layout.dx;
  layout.dx = Math.min(LARGEST, Math.max(dx, smallest()));
  document.getElementById("extent").style.width = `${widthOf()}px`;
  view.scrollLeft = column * layout.dx + SIDE - x;
  redraw();
}

/// The zoom in which the whole run is seen.
const smallest = () => Math.min(LARGEST, (state.size[0] - SIDE - RIGHT) / columns);

function relayout(change) {
  change();
  resize();
  if (state.chosen >= 0) choose(state.chosen);
}

/// Whether some PEs, and not all, are those of the finding.
const canFold = data.focus.length > 0 && data.focus.length < data.pes;

const keys = {
  ArrowLeft: (press) => (press.shiftKey ? chooseOnLane(-1) : choose(state.chosen - 1)),
  ArrowRight: (press) => (press.shiftKey ? chooseOnLane(1) : choose(state.chosen + 1)),
  ArrowUp: () => chooseLane(-1),
  ArrowDown: () => chooseLane(1),
  Home: () => choose(0),
  End: () => choose(events.count - 1),
  r: chooseRace,
  "+": () => zoom(layout.dx * 1.5),
  "=": () => zoom(layout.dx * 1.5),
  "-": () => zoom(layout.dx / 1.5),
  0: () => zoom(0),
  f: () => state.chosen >= 0 && relayout(() => toggle(lanes[events.lane[state.chosen]].pe)),
  o: () => canFold && relayout(() => foldOthers(data.focus)),
  u: () => relayout(unfoldAll),
  "?": () => document.getElementById("help").showModal(),
};

document.addEventListener("keydown", (press) => {
  const inside = press.target.closest("dialog, #lines, #finding");
  if (press.ctrlKey || press.metaKey || press.altKey || (inside && press.key !== "r" && press.key !== "?")) return;
  if (press.key === "Enter" && press.target === view) chooseCause();
  else if (keys[press.key]) keys[press.key](press);
  else return;
  press.preventDefault();
});

/// The event under the pointer.
function eventUnder(press) {
  const box = view.getBoundingClientRect();
  const [x, y] = [press.clientX - box.left + view.scrollLeft, press.clientY - box.top + view.scrollTop];
  const reach = 11;
  let [best, nearest] = [-1, Infinity];
  const end = firstFrom((x + reach - SIDE) / layout.dx + 1);
  for (let event = firstFrom((x - reach - SIDE) / layout.dx - 1); event < end; event += 1) {
    const away = Math.hypot(xOf(event) - x, (layout.y[events.lane[event]] - y) * 0.8);
    if (away < nearest && away <= reach) [best, nearest] = [event, away];
  }
  return best >= 0 ? best : callUnder(x, y);
}

/// The call that waits at a point of the diagram.
function callUnder(x, y) {
  const on = spans.find(({ lane, call, end }) => Math.abs(layout.y[lane] - y) < 7 && x >= xOf(call) && x <= (end < 0 ? widthOf() : xOf(end)));
  return on ? on.call : -1;
}

function showTip(press) {
  const tip = document.getElementById("tip");
  const event = eventUnder(press);
  view.style.cursor = event >= 0 ? "pointer" : "";
  tip.hidden = event < 0;
  if (event < 0) return;
  const { file, line, text } = data.places[events.place[event]];
  const code = file >= 0 ? linesOf(data.files[file])?.[line - 1]?.trim() : undefined;
  tip.replaceChildren(
    element("div", { textContent: `${laneName(lanes[events.lane[event]])} · ${inWords(event)}` }),
    element("div", { className: "faint", textContent: text }),
    ...(code ? [element("code", { textContent: code })] : []),
  );
  const [width, height] = [tip.offsetWidth, tip.offsetHeight];
  tip.style.left = `${Math.min(press.clientX + 14, window.innerWidth - width - 8)}px`;
  tip.style.top = `${press.clientY + 18 + height > window.innerHeight ? press.clientY - height - 10 : press.clientY + 18}px`;
}

view.addEventListener("scroll", redraw, { passive: true });
view.addEventListener("pointermove", showTip);
view.addEventListener("pointerleave", () => (document.getElementById("tip").hidden = true));
view.addEventListener("click", (press) => choose(eventUnder(press)));
view.addEventListener("wheel", (press) => {
  if (!press.ctrlKey) return;
  press.preventDefault();
  zoom(layout.dx * Math.exp(-press.deltaY / 300), press.clientX - view.getBoundingClientRect().left);
}, { passive: false });
const goTo = (press) => {
  if (press.buttons === 1) view.scrollLeft = (press.offsetX / overview.clientWidth) * widthOf() - state.size[0] / 2;
};
overview.addEventListener("pointerdown", goTo);
overview.addEventListener("pointermove", goTo);
document.getElementById("names").addEventListener("click", (press) => {
  const pe = press.target.dataset?.pe;
  if (pe === undefined) return;
  relayout(() => toggle(Number(pe)));
  document.querySelector(`#names [data-pe="${pe}"]`).focus();
});
const press = (id, action) => document.getElementById(id).addEventListener("click", action);
press("previous", () => choose(state.chosen - 1));
press("next", () => choose(state.chosen + 1));
press("race", chooseRace);
press("larger", () => zoom(layout.dx * 1.5));
press("smaller", () => zoom(layout.dx / 1.5));
press("all", () => zoom(0));
press("fold", () => relayout(() => foldOthers(data.focus)));
press("unfold", () => relayout(unfoldAll));
press("keys", () => document.getElementById("help").showModal());
new ResizeObserver(resize).observe(view);

function recolour() {
  state.colours = palette();
  showLegend(state.colours);
  redraw();
}
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);

// On paper the diagram stands in rows, around the finding if the run is long.
const PAPER = { width: 1000, dx: 21, rows: 10 };

function printed() {
  document.documentElement.classList.add("paper");
  const [dx, chosen] = [layout.dx, state.chosen];
  layout.dx = PAPER.dx;
  layout.tallness = Math.max(LOW, Math.min(70, 300 / lanes.length));
  placeLanes();
  const perRow = Math.floor((PAPER.width - 110) / PAPER.dx);
  const all = Math.ceil(columns / perRow);
  const middle = Math.floor((events.column[accesses[0] ?? events.count - 1] ?? 0) / perRow);
  const from = Math.max(0, Math.min(middle - PAPER.rows / 2, all - PAPER.rows));
  const colours = palette();
  const figures = Array.from({ length: Math.min(all, PAPER.rows) }, (_, row) => paperRow(Math.floor(from) + row, perRow, colours));
  [layout.dx, state.chosen] = [dx, chosen];
  fillHeight(view.clientHeight);
  document.getElementById("paper").replaceChildren(...figures);
  document.querySelectorAll("#finding details").forEach((details) => (details.open = true));
}

function paperRow(row, perRow, colours) {
  const [names, height] = [84, layout.total];
  const figure = element("canvas", { width: PAPER.width * 2, height: height * 2 });
  const ctx = figure.getContext("2d", { alpha: false });
  ctx.scale(2, 2);
  ctx.fillStyle = colours.panel;
  ctx.fillRect(0, 0, PAPER.width, height);
  ctx.save();
  ctx.beginPath();
  ctx.rect(names, 0, PAPER.width - names, height);
  ctx.clip();
  ctx.translate(names, 0);
  const left = row * perRow * PAPER.dx + (row === 0 ? 0 : SIDE - 8);
  picture(ctx, { width: PAPER.width - names, height, left, up: 0, colours, chosen: -1 });
  ctx.restore();
  ctx.textAlign = "left";
  ctx.font = "600 12px system-ui, sans-serif";
  for (let lane = 0; lane < lanes.length; lane += 1) {
    if (layout.folded.has(lanes[lane].pe) && lanes[lane].stream >= 0) continue;
    ctx.fillStyle = lanes[lane].stream < 0 ? colours.ink : colours.faint;
    const name = lanes[lane].stream < 0 ? `PE ${lanes[lane].pe}` : `  stream ${lanes[lane].stream}`;
    ctx.fillText(name, 6, layout.y[lane] + 4);
  }
  const last = Math.min(columns, (row + 1) * perRow) - 1;
  const [first, end] = [firstFrom(row * perRow), firstFrom(last + 1) - 1];
  return element("figure", {}, figure, element("figcaption", { textContent: `Events ${first} to ${end} of ${events.count}` }));
}
window.addEventListener("beforeprint", printed);
window.addEventListener("afterprint", () => {
  document.documentElement.classList.remove("paper");
  redraw();
});

/// The zoom in which both accesses of the first race are seen, if names can still be read then.
function closeness() {
  const apart = Math.abs(events.column[accesses[0]] - events.column[accesses[1]]);
  const both = (state.size[0] * 0.7) / Math.max(1, apart);
  return both >= 9 ? Math.min(24, both) : 24;
}

/// What is looked at first: the second access of a race, the last event of a PE that failed, or of all; the first transfer if all is
/// well.
function atFirst() {
  const { status, pe } = data.verdict;
  if (accesses.length > 0) return accesses[1] ?? accesses[0];
  const waits = spans.filter((span) => span.end < 0);
  if (data.verdict.outcome === "deadlock" && waits.length > 0) return (waits.find((span) => span.kind === WAIT) ?? waits[0]).call;
  if (status === "fine") return Math.max(0, events.class.findIndex((kind) => kind === PUT || kind === GET || kind === SIGNAL));
  return (pe === null ? undefined : eventsOf[lanesOf[pe][0]].at(-1)) ?? events.count - 1;
}

function start() {
  showVerdict();
  showFinding();
  document.getElementById("race").disabled = accesses.length === 0;
  document.getElementById("fold").disabled = !canFold;
  view.setAttribute("aria-label", `${data.pes} PEs, ${events.count} events, ${races.length} races`);
  if (data.pes > 12 && data.focus.length > 0) foldOthers(data.focus);
  showLegend(state.colours);
  resize();
  const usual = smallest();
  if (usual > 15) layout.dx = Math.min(usual, 30);
  else if (accesses.length > 1) layout.dx = closeness();
  resize();
  if (data.files.length > 0) showFile(Math.max(0, data.places[data.verdict.place]?.file ?? 0));
  choose(atFirst(), usual <= 15);
  const [first, second] = accesses;
  if (usual <= 15 && accesses.length > 1 && Math.abs(xOf(first) - xOf(second)) < state.size[0]) {
    view.scrollLeft = (xOf(first) + xOf(second)) / 2 - state.size[0] / 2;
  }
  draw();
  Object.assign(facts, { lanes: lanes.length, total: events.count, allTransfers: transfers.count, first: performance.now().toFixed(0) });
}
start();
