// Where lanes and events are, in the pixels of the whole diagram. Folding a PE puts its lanes on one thin lane.

const FOLDED = 11, GAP = 8, TOP = 26, BOTTOM = 14, SIDE = 26;
/// The height of a lane: as much as there is room for, between these.
const LOW = 34, HIGH = 118;
/// Room at the end: for the word behind a call that never ended.
const RIGHT = spans.some(({ end }) => end < 0) ? 64 : SIDE;
const LARGEST = 64;

const layout = {
  /// Pixels of a column.
  dx: 24,
  /// Pixels of a lane that is not folded.
  tallness: LOW,
  folded: new Set(),
  /// The middle of each lane, and its height.
  y: new Float64Array(lanes.length),
  height: new Float64Array(lanes.length),
  /// Top and height of each PE.
  top: new Float64Array(data.pes),
  tall: new Float64Array(data.pes),
  total: 0,
};

/// Lanes that are not folded share the height that there is.
function fillHeight(height) {
  const open = lanes.filter((lane) => !layout.folded.has(lane.pe)).length;
  const taken = TOP + BOTTOM + (data.pes - layout.folded.size) * GAP + layout.folded.size * (FOLDED + 2);
  layout.tallness = Math.max(LOW, Math.min(HIGH, Math.floor((height - taken) / Math.max(1, open))));
  placeLanes();
}

function placeLanes() {
  let y = TOP;
  for (let pe = 0; pe < data.pes; pe += 1) {
    const isFolded = layout.folded.has(pe);
    layout.top[pe] = y;
    for (const lane of lanesOf[pe]) {
      const height = isFolded ? FOLDED : layout.tallness;
      layout.y[lane] = isFolded ? layout.top[pe] + FOLDED / 2 : y + height / 2;
      layout.height[lane] = height;
      if (!isFolded) y += height;
    }
    if (isFolded) y += FOLDED;
    layout.tall[pe] = y - layout.top[pe];
    y += isFolded ? 2 : GAP;
  }
  layout.total = y + BOTTOM;
}

const isFolded = (event) => layout.folded.has(lanes[events.lane[event]].pe);
const xOf = (event) => SIDE + (events.column[event] + 0.5) * layout.dx;
const widthOf = () => SIDE + columns * layout.dx + RIGHT;

/// The first event whose column is not left of `column`: events are in the order of their columns.
function firstFrom(column) {
  let [low, high] = [0, events.count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events.column[middle] < column) low = middle + 1;
    else high = middle;
  }
  return low;
}

/// Folds every PE that is not among `pes`.
function foldOthers(pes) {
  const kept = new Set(pes);
  layout.folded = new Set(Array.from({ length: data.pes }, (_, pe) => pe).filter((pe) => !kept.has(pe)));
}

function unfoldAll() {
  layout.folded = new Set();
}

function toggle(pe) {
  if (!layout.folded.delete(pe)) layout.folded.add(pe);
}
