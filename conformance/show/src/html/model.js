// The data of the page, read once. Events are numbers; what is known of them lies in arrays.

const data = JSON.parse(document.getElementById("data").textContent);

// What an event is: as the list in data.rs.
const CALL = 0, PUT = 1, GET = 2, SIGNAL = 3, WAIT = 4, ORDER = 5, MEET = 6, LOCAL = 7, ARRIVAL = 8, SOURCE_READ = 9,
  SIGNAL_ARRIVAL = 10, RETURN = 11, ENTRY = 12, ENQUEUE = 13;

const events = {
  count: data.events.class.length,
  class: Uint8Array.from(data.events.class),
  lane: Int32Array.from(data.events.lane),
  column: Int32Array.from(data.events.column),
  of: Int32Array.from(data.events.of),
  by: Int32Array.from(data.events.by),
  peer: Int32Array.from(data.events.peer),
  place: Int32Array.from(data.events.place),
  text: data.events.text,
  values: data.events.values,
  step: data.events.step,
};

const columns = events.count === 0 ? 1 : events.column[events.count - 1] + 1;

const transfers = {
  count: data.transfers.length,
  class: Uint8Array.from(data.transfers, (transfer) => transfer[0]),
  issue: Int32Array.from(data.transfers, (transfer) => transfer[1]),
  leaves: Int32Array.from(data.transfers, (transfer) => transfer[2]),
  arrives: Int32Array.from(data.transfers, (transfer) => transfer[3]),
  from: Int32Array.from(data.transfers, (transfer) => transfer[4]),
  to: Int32Array.from(data.transfers, (transfer) => transfer[5]),
};

const spans = data.spans.map(([lane, call, end, kind]) => ({ lane, call, end, kind }));
const spanOf = new Map(spans.map((span) => [span.call, span]));
const edges = data.edges.map(([from, to, enqueues]) => ({ from, to, enqueues: enqueues === 1 }));
const lanes = data.lanes.map(([pe, stream]) => ({ pe, stream }));
const races = data.races;

/// The events that touch the memory of a race, of the first race first.
const accesses = races.flatMap((race) => [race.first.event, race.second.event]).filter((event) => event >= 0);
const isAccess = new Set(accesses);

/// Lanes of each PE.
const lanesOf = Array.from({ length: data.pes }, () => []);
lanes.forEach((lane, number) => lanesOf[lane.pe].push(number));

/// Events of each lane, in order.
const eventsOf = lanes.map(() => []);
for (let event = 0; event < events.count; event += 1) eventsOf[events.lane[event]].push(event);

/// Events of each place, in order.
const eventsAt = new Map();
for (let event = 0; event < events.count; event += 1) {
  const place = events.place[event];
  if (!eventsAt.has(place)) eventsAt.set(place, []);
  eventsAt.get(place).push(event);
}

const nameOf = (event) => data.events.names[data.events.name[event]];
const laneName = ({ pe, stream }) => (stream < 0 ? `PE ${pe}` : `PE ${pe} stream ${stream}`);

/// The call that an event belongs to in the end.
function callOf(event) {
  let call = event;
  while (events.of[call] >= 0 && events.class[events.of[call]] !== ENQUEUE) call = events.of[call];
  return call;
}

/// An event in words.
function inWords(event) {
  const values = events.values[event] === "" ? "" : `: ${events.values[event]}`;
  const text = events.text[event];
  const call = () => nameOf(callOf(event));
  switch (events.class[event]) {
    case ARRIVAL: return `${call()} delivered ${text}${values}`;
    case SIGNAL_ARRIVAL: return `${call()} delivered ${text}${values}`;
    case SOURCE_READ: return `source of ${call()} read: ${text}${values}`;
    case ENTRY: return `${call()} entered ${text}`;
    case RETURN: return `${text}${values}`;
    case ENQUEUE: return `enqueued ${text}`;
    default: return `${text}${values}`;
  }
}

/// Where the call of `place` stands that belongs to the side of a race: the last event there up to `event`, on its PE if it can be.
function eventAt(place, pe, event) {
  const all = (eventsAt.get(place) ?? []).filter((other) => events.of[other] < 0 || events.class[other] < ARRIVAL);
  const mine = all.filter((other) => lanes[events.lane[other]].pe === pe);
  const before = mine.filter((other) => event < 0 || other <= event);
  return before.at(-1) ?? mine[0] ?? all[0] ?? -1;
}

/// The call that would order a race, and the events between which it belongs: of the fix that was tried, or of the missing edge.
races.forEach((race, number) => {
  const tried = number === 0 ? data.fix?.edits[0] : undefined;
  const edit = tried?.side === "behind" ? tried : race.missing;
  race.call = (tried ?? race.missing).call;
  race.after = eventAt(edit.after, race.first.pe, race.first.event);
  const behind = (eventsAt.get(edit.before) ?? []).find((event) => event > race.after);
  race.before = behind ?? -1;
});

/// The lines of a file.
const linesOf = (file) => file.text?.replace(/\n$/, "").split("\n");
