// The program's lines: those of the finding are marked, those with events can be chosen.

const source = { file: -1, filesShown: null };

/// Elements, without a word of HTML: every text is text.
function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/// Lines around those that matter that are printed on paper.
const NEAR = 4;

function showPlace(place) {
  const { file, line } = data.places[place];
  if (file >= 0) {
    showFile(file);
    chooseLine(line);
  } else if (source.file !== -1) {
    chooseLine(-1);
  }
}

function showFile(file) {
  if (source.file === file) return;
  source.file = file;
  const section = document.getElementById("source");
  const tabs = element("div", { id: "files" });
  tabs.setAttribute("role", "group");
  tabs.setAttribute("aria-label", "Files");
  data.files.forEach(({ name }, number) => {
    const tab = element("button", { textContent: name.split("/").at(-1), title: name });
    tab.setAttribute("aria-pressed", String(number === file));
    tab.addEventListener("click", () => showFile(number));
    tabs.append(tab);
  });
  const lines = element("div", { id: "lines", tabIndex: 0 });
  lines.setAttribute("role", "region");
  lines.setAttribute("aria-label", data.files[file].name);
  fillLines(lines, file);
  section.replaceChildren(tabs, lines);
}

function fillLines(lines, file) {
  const texts = linesOf(data.files[file]);
  if (!texts) {
    lines.append(element("p", { className: "nothing", textContent: `${data.files[file].name} was not found where the program ran.` }));
    return;
  }
  const numberOf = (place) => (place >= 0 && data.places[place].file === file ? data.places[place].line : -1);
  const withEvents = new Map();
  data.places.forEach((place, number) => {
    if (place.file === file && eventsAt.has(number)) withEvents.set(place.line, number);
  });
  const wrong = new Set(races.flatMap((race) => [race.first.place, race.second.place]).map(numberOf));
  if (races.length === 0 && data.verdict.status !== "fine") wrong.add(numberOf(data.verdict.place));
  const proposed = data.fix
    ? data.fix.edits.map((edit) => ({ ...edit, text: data.fix.text }))
    : races.slice(0, 1).map((race) => race.missing);
  const fixes = new Map(proposed.map((edit) => [numberOf(edit.after), edit]));
  const near = (line) => [...wrong, ...fixes.keys()].some((other) => other > 0 && Math.abs(other - line) <= NEAR);
  const rows = texts.map((text, index) => {
    const line = index + 1;
    const place = withEvents.get(line);
    const number = element(place === undefined ? "span" : "button", { className: "no", textContent: String(line) });
    if (place !== undefined) {
      const count = eventsAt.get(place).length;
      number.title = `${count} event${count === 1 ? "" : "s"}`;
      number.setAttribute("aria-label", `Line ${line}: next of ${number.title}`);
      number.addEventListener("click", () => chooseNextAt(place));
    }
    const row = element("div", { className: "line" }, number, element("pre", { textContent: text === "" ? " " : text }));
    row.dataset.line = String(line);
    row.classList.toggle("wrong", wrong.has(line));
    row.classList.toggle("far", !near(line));
    if (place !== undefined) row.addEventListener("click", (press) => press.target === number || chooseNextAt(place));
    return row;
  });
  for (const [line, edit] of fixes) {
    if (line < 1 || line > texts.length) continue;
    const indent = /^\s*/.exec(texts[line - 1])[0];
    const instead = edit.side === "instead";
    const text = `${indent}${instead ? "" : "+ "}${edit.call}${edit.stream ? " on the stream" : ""}`;
    const row = element("div", { className: "line fix" }, element("span", { className: "no", textContent: instead ? "~" : "+" }),
      element("pre", { textContent: text, title: edit.text }));
    const behind = edit.side === "in-front" ? 0 : 1;
    rows.splice(rows.findIndex((other) => other.dataset.line === String(line)) + behind, 0, row);
  }
  lines.append(...rows);
}

/// Marks the line of what was chosen, and brings it into view.
function chooseLine(line) {
  const lines = document.getElementById("lines");
  lines?.querySelectorAll(".chosen").forEach((row) => row.classList.remove("chosen"));
  const row = lines?.querySelector(`[data-line="${line}"]`);
  if (!row) return;
  row.classList.add("chosen");
  const [top, middle] = [row.offsetTop - lines.offsetTop, lines.clientHeight / 2];
  if (top < lines.scrollTop + 30 || top > lines.scrollTop + lines.clientHeight - 50) lines.scrollTop = top - middle;
}
