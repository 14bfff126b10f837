// What stands on the lanes: events, their names, races, what was chosen.

/// Draws the events that are seen, with as many names as there is room for.
function marks(ctx, frame) {
  const { first, end, x, y, height, colours } = frame;
  // how far names reach on each lane: two rows above it, where there is room, and one below
  const rows = [-12, -26, 17].map((offset) => ({ offset, room: new Float64Array(lanes.length).fill(-1e9), kept: [] }));
  const dense = layout.dx < 4;
  const taken = dense ? new Set() : null;
  if (!dense) keepRoom(ctx, frame, rows);
  for (let event = first; event < end; event += 1) {
    const lane = events.lane[event];
    const level = y(lane);
    if (level < -20 || level > height + 20) continue;
    drawn.events += 1;
    const at = x(event);
    const kind = events.class[event];
    if (dense || isFolded(event)) {
      if (taken) {
        const key = Math.round(at) * lanes.length + lane;
        if (taken.has(key)) continue;
        taken.add(key);
      }
      ctx.fillStyle = colours.class[kind];
      const tall = isFolded(event) ? 4 : 9;
      ctx.fillRect(Math.round(at) - 0.5, level - tall / 2, dense ? 1.2 : 2, tall);
      continue;
    }
    mark(ctx, kind, at, level, colours);
    if (layout.dx >= 9 && !isAccess.has(event)) label(ctx, event, { at, level, rows, colours, lane });
  }
}

/// The names and values of what races come first: others stand where these leave room.
function keepRoom(ctx, { first, end, x, y, colours }, rows) {
  if (layout.dx < 9) return;
  for (const event of isAccess) {
    if (event < first || event >= end || isFolded(event)) continue;
    const lane = events.lane[event];
    label(ctx, event, { at: x(event), level: y(lane), rows, colours, lane, keeps: true });
  }
  rows.forEach(({ room }) => room.fill(-1e9));
}

function mark(ctx, kind, x, y, colours) {
  ctx.fillStyle = colours.class[kind];
  ctx.strokeStyle = colours.class[kind];
  ctx.lineWidth = 1.4;
  ctx.beginPath();
  switch (kind) {
    case PUT: case GET: case SIGNAL:
      ctx.arc(x, y, 3.6, 0, 2 * Math.PI);
      ctx.fill();
      break;
    case WAIT:
      ctx.moveTo(x, y - 5);
      ctx.lineTo(x + 4.4, y);
      ctx.lineTo(x, y + 5);
      ctx.lineTo(x - 4.4, y);
      ctx.fill();
      break;
    case ORDER:
      ctx.roundRect(x - 1.8, y - 10, 3.6, 20, 1.6);
      ctx.fill();
      break;
    case MEET:
      ctx.roundRect(x - 1.5, y - 8, 3, 16, 1.4);
      ctx.fill();
      break;
    case LOCAL:
      ctx.rect(x - 3, y - 3, 6, 6);
      ctx.fillStyle = colours.panel;
      ctx.fill();
      ctx.stroke();
      break;
    case SOURCE_READ:
      ctx.arc(x, y, 2.3, 0, 2 * Math.PI);
      ctx.fillStyle = colours.panel;
      ctx.fill();
      ctx.stroke();
      break;
    case ARRIVAL: case SIGNAL_ARRIVAL:
      ctx.moveTo(x, y - 5);
      ctx.lineTo(x, y + 5);
      ctx.stroke();
      break;
    case RETURN:
      ctx.moveTo(x, y - 6);
      ctx.lineTo(x, y + 6);
      ctx.lineWidth = 1;
      ctx.stroke();
      break;
    case ENTRY:
      break; // the line through all who met says it
    default:
      ctx.arc(x, y, 2.2, 0, 2 * Math.PI);
      ctx.fill();
  }
}

/// Names stand above, values below; each only where the one before it has ended.
function label(ctx, event, { at, level, rows, colours, lane, keeps = false }) {
  const kind = events.class[event];
  const write = (text, { offset, room, kept }, colour) => {
    const [from, over] = [at - 3, at + text.length * 5.7];
    if ((!keeps && from < room[lane]) || kept.some((taken) => taken.lane === lane && from < taken.over && over > taken.from)) return false;
    room[lane] = over;
    if (keeps) kept.push({ lane, from, over });
    ctx.fillStyle = colour;
    ctx.fillText(text, from, level + offset);
    drawn.labels += 1;
    return true;
  };
  ctx.textAlign = "left";
  ctx.font = "11px system-ui, sans-serif";
  const peer = events.peer[event] >= 0 && (kind === PUT || kind === GET || kind === SIGNAL);
  const name = peer ? `${nameOf(event)} ${kind === GET ? "←" : "→"} ${events.peer[event]}` : nameOf(event);
  const isPiece = kind === LOCAL && events.of[event] >= 0 && events.class[events.of[event]] === LOCAL;
  if (kind <= LOCAL && !isPiece) {
    const colour = kind === CALL ? colours.faint : colours.class[kind];
    const isWritten = write(name, rows[0], colour);
    if (!isWritten && kind !== CALL && layout.tallness >= 64) write(name, rows[1], colour);
  }
  const values = events.values[event];
  const shows = kind === LOCAL || kind === ARRIVAL || kind === SIGNAL_ARRIVAL || kind === RETURN;
  if (shows && values !== "" && layout.dx >= 15) {
    write(values.length > 18 ? `${values.slice(0, 17)}…` : values, rows[2], colours.faint);
  }
}

/// The two accesses of each race, the order that is missing between them, and where it belongs.
function missingEdges(ctx, frame) {
  const { x, y, left, width, colours } = frame;
  races.forEach((race, number) => {
    const [first, second] = [race.first.event, race.second.event];
    const seen = [first, second].filter((event) => event >= 0);
    if (seen.length === 0) return;
    const isSeen = seen.some((event) => xOf(event) > left - 40 && xOf(event) < left + width + 40);
    const isBetween = seen.length === 2 && Math.min(x(first), x(second)) < 0 && Math.max(x(first), x(second)) > width;
    if (!isSeen && !isBetween) return;
    drawn.races += 1;
    ctx.strokeStyle = colours.wrong;
    ctx.fillStyle = colours.wrong;
    ctx.globalAlpha = number === 0 ? 1 : 0.55;
    ctx.lineWidth = 2;
    for (const event of seen) {
      ctx.beginPath();
      ctx.arc(x(event), y(events.lane[event]), 8.5, 0, 2 * Math.PI);
      ctx.stroke();
    }
    if (number === 0) place(ctx, frame, race);
    if (seen.length < 2) return;
    const [x1, y1, x2, y2] = [x(first), y(events.lane[first]), x(second), y(events.lane[second])];
    ctx.setLineDash([6, 4]);
    ctx.lineWidth = 1.8;
    ctx.beginPath();
    if (y1 === y2) {
      ctx.moveTo(x1, y1 - 8.5);
      const high = Math.min(layout.tallness * 0.8, 22 + Math.abs(x2 - x1) / 4);
      ctx.quadraticCurveTo((x1 + x2) / 2, y1 - 8.5 - high, x2, y2 - 8.5);
    } else {
      ctx.moveTo(x1, y1);
      ctx.lineTo(x2, y2);
    }
    ctx.stroke();
    ctx.setLineDash([]);
  });
  ctx.globalAlpha = 1;
}

/// Where the call belongs that would order a race: a bar that is not there.
function place(ctx, { x, y, colours }, race) {
  if (race.after < 0) return;
  const lane = events.lane[race.after];
  const over = spanOf.get(race.after)?.end ?? -1; // behind the call's end
  const from = x(over >= 0 && (race.before < 0 || over < race.before) ? over : race.after);
  const isBetween = race.before >= 0 && events.lane[race.before] === lane && x(race.before) > from;
  const at = isBetween ? (from + x(race.before)) / 2 : from + layout.dx / 2;
  const level = y(lane);
  const tall = layout.folded.has(lanes[lane].pe) ? 8 : 26;
  ctx.save();
  ctx.globalAlpha = 1;
  ctx.strokeStyle = colours.right;
  ctx.fillStyle = colours.right;
  ctx.lineWidth = 1.8;
  ctx.setLineDash([4, 2.5]);
  ctx.strokeRect(at - 3, level - tall / 2, 6, tall);
  ctx.font = "600 11px system-ui, sans-serif";
  ctx.textAlign = "center";
  if (layout.dx >= 5) {
    ctx.setLineDash([]);
    ctx.strokeStyle = layout.folded.has(lanes[lane].pe) ? colours.panel : colours.band;
    ctx.lineWidth = 4;
    ctx.strokeText(`+ ${race.call}`, at, level + tall / 2 + 13);
    ctx.fillText(`+ ${race.call}`, at, level + tall / 2 + 13);
  }
  ctx.restore();
}

/// How a PE ended that failed.
function endOfTheRun(ctx, { x, y, colours }) {
  const pe = data.verdict.pe;
  if (data.verdict.status === "fine" || pe === null || !/^(failed|panicked|exited)/.test(data.verdict.outcome)) return;
  const lane = lanesOf[pe][0];
  const last = eventsOf[lane].filter((event) => events.class[event] < ARRIVAL || events.class[event] === RETURN).at(-1);
  if (last === undefined) return;
  const [at, level] = [x(last) + Math.max(13, layout.dx * 0.8), y(lane)];
  ctx.strokeStyle = colours.wrong;
  ctx.lineWidth = 2.2;
  ctx.beginPath();
  for (const side of [-1, 1]) {
    ctx.moveTo(at - 4, level - 4 * side);
    ctx.lineTo(at + 4, level + 4 * side);
  }
  ctx.stroke();
}

/// The chosen event, and what belongs to it.
function choice(ctx, { height, chosen, x, y, colours }) {
  const at = Math.round(x(chosen)) + 0.5;
  ctx.strokeStyle = colours.chosen;
  ctx.globalAlpha = 0.25;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(at, TOP - 6);
  ctx.lineTo(at, height);
  ctx.stroke();
  ctx.globalAlpha = 1;
  const call = callOf(chosen);
  ctx.lineWidth = 2.2;
  for (let i = 0; i < transfers.count; i += 1) {
    if (transfers.issue[i] !== call || transfers.arrives[i] < 0 || transfers.class[i] === GET) continue;
    ctx.strokeStyle = colours.class[transfers.class[i]];
    ctx.beginPath();
    ctx.moveTo(x(transfers.leaves[i]), y(transfers.from[i]));
    if (transfers.from[i] !== transfers.to[i]) ctx.lineTo(x(transfers.arrives[i]), y(transfers.to[i]));
    ctx.stroke();
  }
  ctx.strokeStyle = colours.chosen;
  ctx.lineWidth = 1.6;
  ctx.beginPath();
  ctx.arc(at, y(events.lane[chosen]), 6, 0, 2 * Math.PI);
  ctx.stroke();
}
