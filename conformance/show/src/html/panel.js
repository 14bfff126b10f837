// What stands beside the diagram: the verdict, the races, the event that was chosen.

function showVerdict() {
  const { verdict } = data;
  document.body.classList.toggle("fine", verdict.status === "fine");
  document.getElementById("status").textContent = verdict.status;
  document.getElementById("verdict").textContent = `${data.program}: ${short(verdict.text)}`;
  const nodes = data.nodes > 1 ? ` on ${data.nodes} nodes` : "";
  const given = data.arguments.length === 0 ? "" : ` · ${data.arguments.join(" ")}`;
  const facts = `${data.pes} PEs${nodes} · profile ${data.profile}${given} · ${events.count} events · `;
  document.getElementById("facts").append(facts, element("code", { textContent: data.replay || data.schedule }));
}

/// Text of a place, for a person.
const placeName = (place) => (place < 0 ? "" : short(data.places[place].text));

/// A text with files by their names alone, where that is enough to tell them apart.
function short(text) {
  const bases = data.files.map(({ name }) => name.split("/").at(-1));
  if (new Set(bases).size < bases.length) return text;
  return data.files.reduce((shorter, { name }, number) => shorter.replaceAll(name, bases[number]), text);
}

function showFinding() {
  const section = document.getElementById("finding");
  races.forEach((race, number) => section.append(raceCard(race, number)));
  if (data.exceptions.length > 0) {
    const items = data.exceptions.map(([late, after]) => element("li", {}, short(late), element("br"), `comes after ${short(after)}`));
    section.append(element("details", { id: "exceptions", open: items.length <= 4 },
      element("summary", { textContent: "Other than in order" }), element("ul", {}, ...items)));
  }
  if (data.critical) {
    const text = element("button", { className: "plain", textContent: short(data.critical.text), title: data.critical.text });
    if (data.critical.event >= 0) text.addEventListener("click", () => choose(data.critical.event, true));
    section.append(element("p", { id: "critical" }, element("b", { textContent: "Critical step: " }), text));
  }
  if (data.matters) section.append(element("p", { id: "matters", title: data.matters.replay ?? "" }, short(data.matters.text).replace(/:$/, ".")));
  if (data.fix) {
    const text = element("span", { textContent: short(data.fix.text).replaceAll("`", "") });
    section.append(element("p", { id: "fix", className: "missing", title: data.fix.text }, element("b", { textContent: "Fix: " }), text));
  }
  const list = (title, entries, open) => {
    if (entries.length === 0) return;
    const items = entries.map((entry) => {
      const button = element("button", { className: "plain", textContent: short(entry.text), title: entry.text });
      button.addEventListener("click", () => choose(eventOf(entry), true));
      return element("li", {}, button);
    });
    section.append(element("details", { open }, element("summary", { textContent: title }), element("ul", {}, ...items)));
  };
  list("At the end", data.agents, races.length === 0 && data.agents.length <= 12);
  list("Not delivered", data.undelivered, races.length === 0 && data.undelivered.length <= 12);
  if (!section.hasChildNodes()) section.append(element("p", { textContent: `Every PE checked that ${data.checks}.` }));
}

/// The call that an agent was in at the end, or what a transfer was issued by.
function eventOf({ pe, stream, place }) {
  const open = spans.find((span) => span.end < 0 && lanes[span.lane].pe === pe && lanes[span.lane].stream === (stream ?? -1));
  return stream !== undefined && open ? open.call : eventAt(place, pe, -1);
}

function raceCard(race, number) {
  const of = races.length > 1 ? ` ${number + 1} of ${races.length}` : "";
  const often = race.times > 1 ? `, ${race.times} times` : "";
  const made = race.made < 0 ? "" : `, made at ${placeName(race.made)}`;
  const missing = element("p", { className: "missing" }, element("b", { textContent: "Missing: " }), short(race.missing.text));
  missing.title = race.missing.text;
  return element("div", { className: "race" },
    element("h2", { textContent: `Data race${of}` }),
    element("p", { className: "memory", textContent: `On ${race.memory} of PE ${race.pe}${made}${often}` }),
    side(race.first), side(race.second), missing,
    ...race.known.map((text) => element("p", { className: "memory", textContent: text })));
}

/// One access of a race, which shows its event.
function side(access) {
  const badge = element("span", { className: "badge", textContent: laneName({ pe: access.pe, stream: access.stream }) });
  const what = access.text.split(" at ")[0].replace(/ by PE \d+( stream \d+)?$/, "");
  const where = element("span", { className: "where", textContent: placeName(access.place) });
  const button = element("button", { className: "side" }, badge, element("span", { textContent: `${what} (${access.how})` }),
    element("span"), where);
  button.addEventListener("click", () => (access.event >= 0 ? choose(access.event, true) : showPlace(access.place)));
  return button;
}

/// Shows an event in words, with what it belongs to.
function showEvent(event) {
  const section = document.getElementById("event");
  const lane = lanes[events.lane[event]];
  const head = element("h2", { textContent: `#${event} · ${laneName(lane)} · step ${events.step[event]}` });
  const text = element("p", { className: "text", textContent: inWords(event) });
  const where = element("p", { className: "place", textContent: placeName(events.place[event]) });
  const links = element("div", { className: "links" });
  const link = (label, other) => {
    if (other < 0 || other === undefined || other === event) return;
    const button = element("button", { textContent: `${label} #${other}` });
    button.addEventListener("click", () => choose(other, true));
    links.append(button);
  };
  link("of", events.of[event]);
  link(events.of[event] >= 0 ? "ended by" : "set by", events.by[event]);
  link("ends", spanOf.get(event)?.end);
  arrivalsOf(event).slice(0, 6).forEach((arrival) => link("arrives", arrival));
  section.replaceChildren(head, text, where, links);
  document.getElementById("position").textContent = `#${event} of ${events.count}`;
  document.getElementById("said").textContent = `Event ${event}, ${laneName(lane)}: ${inWords(event)}, ${placeName(events.place[event])}`;
}

/// Where the transfers of a call arrive.
function arrivalsOf(call) {
  const arrivals = [];
  for (let i = 0; i < transfers.count; i += 1) {
    if (transfers.issue[i] === call && transfers.arrives[i] >= 0) arrivals.push(transfers.arrives[i]);
  }
  return arrivals;
}

/// The names of the PEs beside their lanes. A PE's name folds it.
function showNames() {
  const names = document.getElementById("names");
  const meant = new Set(data.focus);
  const all = [];
  for (let pe = 0; pe < data.pes; pe += 1) {
    const folded = layout.folded.has(pe);
    const host = element("button", { textContent: `PE ${pe}` });
    host.classList.toggle("meant", meant.has(pe));
    host.setAttribute("aria-expanded", String(!folded));
    host.setAttribute("aria-label", `PE ${pe}${meant.has(pe) ? ", of the finding" : ""}`);
    host.dataset.pe = String(pe);
    host.style.top = `${layout.top[pe]}px`;
    host.style.height = `${folded ? FOLDED : layout.tallness}px`;
    all.push(host);
    if (folded) continue;
    for (const lane of lanesOf[pe].slice(1)) {
      const stream = element("span", { textContent: `stream ${lanes[lane].stream}` });
      stream.style.top = `${layout.y[lane] - layout.tallness / 2}px`;
      stream.style.height = `${layout.tallness}px`;
      all.push(stream);
    }
  }
  names.replaceChildren(...all);
}

/// What the marks mean: only those that are there.
function showLegend(colours) {
  const kinds = [
    [PUT, "put"], [GET, "get"], [SIGNAL, "signal, atomic"], [WAIT, "wait"], [ORDER, "fence, quiet, flush"], [MEET, "collective"],
    [LOCAL, "own memory"], [SOURCE_READ, "source read"],
  ];
  const there = new Set(events.class);
  if (there.has(SIGNAL_ARRIVAL)) there.add(SIGNAL);
  const items = kinds.filter(([kind]) => there.has(kind)).map(([kind, name]) => legendItem(name, (ctx) => mark(ctx, kind, 11, 7, colours)));
  if (races.length > 0) {
    items.push(legendItem("access of a race", (ctx) => {
      ctx.strokeStyle = colours.wrong;
      ctx.lineWidth = 2;
      ctx.beginPath();
      ctx.arc(11, 7, 5.5, 0, 2 * Math.PI);
      ctx.stroke();
    }));
    items.push(legendItem("what is missing", (ctx) => {
      ctx.strokeStyle = colours.right;
      ctx.lineWidth = 1.6;
      ctx.setLineDash([3, 2]);
      ctx.strokeRect(8, 1, 6, 12);
    }));
  }
  document.getElementById("legend").replaceChildren(...items);
}

function legendItem(name, paint) {
  const canvas = element("canvas", { width: 44, height: 28 });
  const ctx = canvas.getContext("2d");
  ctx.scale(2, 2);
  paint(ctx);
  return element("li", {}, canvas, name);
}
