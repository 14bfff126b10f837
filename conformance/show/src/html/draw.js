// The diagram on a canvas. A frame says which part of the whole is seen: only that is drawn.

/// The colours of the page as it is shown now.
function palette() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  const colours = {};
  for (const name of ["panel", "band", "line", "lane", "ink", "faint", "put", "get", "signal", "meet", "order", "local", "wrong", "right", "chosen"]) {
    colours[name] = of(name);
  }
  colours.class = [
    colours.faint, colours.put, colours.get, colours.signal, colours.signal, colours.order, colours.meet, colours.local,
    colours.put, colours.put, colours.signal, colours.faint, colours.meet, colours.faint,
  ];
  return colours;
}

/// What was drawn in the last frame.
const drawn = { events: 0, transfers: 0, races: 0, labels: 0 };

/// Draws the part of the diagram that begins at (`left`, `up`) and is `width` × `height` pixels.
function picture(ctx, frame) {
  const { width, height, left, up, colours } = frame;
  Object.assign(drawn, { events: 0, transfers: 0, races: 0, labels: 0 });
  frame.first = firstFrom(Math.floor((left - SIDE) / layout.dx) - 1);
  frame.end = firstFrom(Math.ceil((left + width - SIDE) / layout.dx) + 1);
  frame.x = (event) => xOf(event) - left;
  frame.y = (lane) => layout.y[lane] - up;
  ctx.fillStyle = colours.panel;
  ctx.fillRect(0, 0, width, height);
  ctx.lineJoin = "round";
  lanesUnder(ctx, frame);
  meetings(ctx, frame);
  waits(ctx, frame);
  arrows(ctx, frame);
  causes(ctx, frame);
  marks(ctx, frame);
  missingEdges(ctx, frame);
  endOfTheRun(ctx, frame);
  if (frame.chosen >= 0) choice(ctx, frame);
  axis(ctx, frame);
}

function lanesUnder(ctx, { width, height, up, y, colours }) {
  for (let pe = 0; pe < data.pes; pe += 1) {
    const top = layout.top[pe] - up;
    if (top > height || top + layout.tall[pe] < 0) continue;
    ctx.fillStyle = colours.band;
    if (!layout.folded.has(pe)) ctx.fillRect(0, top, width, layout.tall[pe]);
    ctx.strokeStyle = colours.lane;
    ctx.lineWidth = 1;
    ctx.beginPath();
    for (const lane of layout.folded.has(pe) ? lanesOf[pe].slice(0, 1) : lanesOf[pe]) {
      const at = Math.round(y(lane)) + 0.5;
      ctx.moveTo(0, at);
      ctx.lineTo(width, at);
    }
    ctx.stroke();
  }
}

/// A line through those who are in a collective together, where the last of them enters.
function meetings(ctx, { first, end, x, y, colours }) {
  ctx.strokeStyle = colours.meet;
  ctx.globalAlpha = 0.28;
  ctx.lineWidth = Math.min(3, Math.max(1, layout.dx / 8));
  ctx.beginPath();
  for (const entries of data.meetings) {
    const last = entries[entries.length - 1];
    if (last < first || last >= end || entries.some((entry) => spanOf.get(events.of[entry])?.end === -1)) continue;
    const levels = entries.map((entry) => y(events.lane[entry]));
    ctx.moveTo(x(last), Math.min(...levels));
    ctx.lineTo(x(last), Math.max(...levels));
  }
  ctx.stroke();
  ctx.globalAlpha = 1;
}

/// Calls that had to wait: a bar from the call to its end; open where it never ended.
function waits(ctx, { first, end, left, width, x, y, colours }) {
  const over = widthOf() - RIGHT - left;
  for (const span of spans) {
    if (span.call >= end || (span.end >= 0 && span.end < first)) continue;
    const from = Math.max(x(span.call), -9);
    const to = Math.min(span.end < 0 ? over : x(span.end), width + 9);
    const length = to - from;
    if (length < 2) continue;
    const tall = layout.folded.has(lanes[span.lane].pe) ? 3 : 12;
    ctx.fillStyle = colours.class[span.kind];
    ctx.globalAlpha = span.kind === WAIT || span.end < 0 ? 0.24 : 0.16;
    ctx.beginPath();
    ctx.roundRect(from, y(span.lane) - tall / 2, length, tall, span.end < 0 ? [4, 0, 0, 4] : 4);
    ctx.fill();
    ctx.globalAlpha = 1;
    if (span.end < 0 && layout.dx >= 5 && tall > 3) forEver(ctx, to, y(span.lane), colours);
  }
}

/// Behind the bar of a call that never ended.
function forEver(ctx, x, y, colours) {
  ctx.font = "600 11px system-ui, sans-serif";
  ctx.textAlign = "left";
  ctx.fillStyle = colours.wrong;
  ctx.fillText("waits", x + 5, y + 4);
}

/// Transfers: from where they leave to where they arrive. Many that would lie on each other are drawn once.
function arrows(ctx, frame) {
  const { first, end, x, y, colours, height } = frame;
  const [firstColumn, lastColumn] = [columnAt(first), columnAt(end)];
  const seen = layout.dx < 1 ? new Set() : null;
  const paths = new Map();
  const heads = [];
  for (let i = 0; i < transfers.count; i += 1) {
    const [leaves, arrives] = [transfers.leaves[i], transfers.arrives[i]];
    const start = transfers.class[i] === GET ? transfers.issue[i] : leaves;
    if (events.column[start] > lastColumn) continue;
    const endColumn = arrives < 0 ? events.column[start] + 2 : events.column[arrives];
    if (endColumn < firstColumn) continue;
    const [from, to] = [transfers.from[i], transfers.to[i]];
    const [y1, y2] = [y(from), y(to)];
    if ((y1 < 0 && y2 < 0) || (y1 > height && y2 > height)) continue;
    drawn.transfers += 1;
    const [x1, x2] = [x(start), arrives < 0 ? x(start) + Math.max(14, layout.dx * 1.4) : x(arrives)];
    if (seen) {
      const key = ((Math.round(x1) * 4096 + Math.round(x2)) * lanes.length + from) * lanes.length + to;
      if (seen.has(key)) continue;
      seen.add(key);
    }
    const kind = transfers.class[i] * 4 + (arrives < 0 ? 1 : 0) + (transfers.class[i] !== GET && leaves !== transfers.issue[i] ? 2 : 0);
    if (!paths.has(kind)) paths.set(kind, new Path2D());
    arrow(paths.get(kind), i, { x1, x2, y1, y2, from, to, arrives, frame, heads });
  }
  for (const [kind, path] of paths) {
    ctx.strokeStyle = colours.class[kind >> 2];
    ctx.lineWidth = layout.dx < 2 ? 0.8 : 1.35;
    ctx.globalAlpha = kind >> 2 === MEET ? 0.45 : layout.dx < 1 ? 0.4 : 0.85;
    ctx.setLineDash(kind & 1 ? [3, 3] : []);
    ctx.stroke(path);
  }
  ctx.setLineDash([]);
  ctx.globalAlpha = 1;
  if (layout.dx >= 5) heads.forEach(({ at, towards, colour, open }) => head(ctx, at, towards, colours.class[colour], open));
}

const columnAt = (event) => (event < events.count ? events.column[event] : columns);

function arrow(path, i, { x1, x2, y1, y2, from, to, arrives, heads }) {
  const kind = transfers.class[i];
  if (kind === GET && arrives >= 0) {
    // asks its peer, and comes back
    const middle = (x1 + x2) / 2;
    path.moveTo(x1, y2);
    path.lineTo(middle, y1);
    path.lineTo(x2, y2);
    heads.push({ at: [x2, y2], towards: [middle, y1], colour: kind, open: false });
    return;
  }
  if (from === to) {
    // to itself: below the lane
    const deep = Math.min(15, layout.height[from] / 2);
    path.moveTo(x1, y1);
    path.bezierCurveTo(x1 + (x2 - x1) * 0.25, y1 + deep, x1 + (x2 - x1) * 0.75, y1 + deep, x2, y2);
    heads.push({ at: [x2, y2], towards: [x1 + (x2 - x1) * 0.75, y1 + deep], colour: kind, open: arrives < 0 });
    return;
  }
  // what never arrived ends on its way
  const part = arrives < 0 ? 0.45 : 1;
  const end = [x1 + (x2 - x1) * (arrives < 0 ? 1 : part), y1 + (y2 - y1) * part];
  path.moveTo(x1, y1);
  path.lineTo(end[0], end[1]);
  heads.push({ at: end, towards: [x1, y1], colour: kind, open: arrives < 0 });
}

/// The head of an arrow that comes from `towards`; a ring where it never arrived.
function head(ctx, [x, y], [fromX, fromY], colour, open) {
  ctx.fillStyle = colour;
  ctx.strokeStyle = colour;
  ctx.beginPath();
  if (open) {
    ctx.lineWidth = 1.4;
    ctx.arc(x, y, 3.2, 0, 2 * Math.PI);
    ctx.stroke();
    return;
  }
  const turn = Math.atan2(y - fromY, x - fromX);
  const long = Math.min(8.5, 4 + layout.dx / 4);
  ctx.moveTo(x, y);
  ctx.lineTo(x - long * Math.cos(turn - 0.36), y - long * Math.sin(turn - 0.36));
  ctx.lineTo(x - long * Math.cos(turn + 0.36), y - long * Math.sin(turn + 0.36));
  ctx.fill();
}

/// What ended a wait on another lane; and, of the chosen event, what was enqueued.
function causes(ctx, { first, end, chosen, x, y, colours }) {
  if (layout.dx < 3) return;
  for (const { from, to, enqueues } of edges) {
    if (enqueues && from !== chosen && to !== chosen) continue;
    if (to < first || from >= end || events.lane[from] === events.lane[to]) continue;
    const [x1, y1, x2, y2] = [x(from), y(events.lane[from]), x(to), y(events.lane[to])];
    ctx.strokeStyle = enqueues ? colours.faint : colours.signal;
    ctx.globalAlpha = 0.9;
    ctx.lineWidth = 1;
    ctx.setLineDash(enqueues ? [2, 3] : []);
    ctx.beginPath();
    ctx.moveTo(x1, y1);
    const middle = (x1 + x2) / 2;
    ctx.bezierCurveTo(middle, y1, middle, y2, x2, y2);
    ctx.stroke();
  }
  ctx.setLineDash([]);
  ctx.globalAlpha = 1;
}

/// Numbers of events above the lanes.
function axis(ctx, { width, first, end, x, colours }) {
  ctx.fillStyle = colours.panel;
  ctx.fillRect(0, 0, width, TOP - 6);
  ctx.fillStyle = colours.line;
  ctx.fillRect(0, TOP - 7, width, 1);
  ctx.fillStyle = colours.faint;
  ctx.font = "10.5px system-ui, sans-serif";
  ctx.textAlign = "center";
  const apart = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000].find((step) => step * layout.dx >= 56) ?? 20000;
  let last = -Infinity;
  for (let event = Math.ceil(first / apart) * apart; event < end; event += apart) {
    if (x(event) - last < 24) continue; // several events in a column
    last = x(event);
    ctx.fillText(String(event), last, 13);
  }
}
