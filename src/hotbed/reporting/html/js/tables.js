// Everything that is drawn, as tables: for screen readers, for copying, and for whoever prefers them.

import { byId, bytes, duration, element, exactly, hexadecimal, percent, whole } from "./format.js";
import { stepName } from "./timeline.js";

const PAGE_ROWS = 50;

/** A table with a caption that sorts by any column and shows 50 rows at a time, from row `at` on. */
export class Table {
  constructor(holder, caption, columns) {
    this.holder = holder;
    this.caption = caption;
    this.columns = columns;
    this.rows = [];
    this.at = 0;
    this.sorted = null;
  }

  /** `rows` is an array, or {length, row(i)} where there are too many to hold. */
  show(rows, at = 0) {
    this.rows = rows;
    this.order = null;
    if (this.sorted) this.sort(this.sorted.column, this.sorted.down);
    this.at = Math.max(Math.floor(at / PAGE_ROWS) * PAGE_ROWS, 0);
    this.draw();
  }

  row(i) {
    const index = this.order ? this.order[i] : i;
    return Array.isArray(this.rows) ? this.rows[index] : this.rows.row(index);
  }

  sort(column, down) {
    this.sorted = { column, down };
    if (!Array.isArray(this.rows)) return;
    const value = (row) => (this.columns[column].sort ?? this.columns[column].text)(row);
    this.order = [...this.rows.keys()].sort((a, b) => {
      const x = value(this.rows[a]), y = value(this.rows[b]);
      return (x < y ? -1 : x > y ? 1 : a - b) * (down ? -1 : 1);
    });
  }

  draw() {
    const head = element("tr", {}, ...this.columns.map((column, index) => this.heading(column, index)));
    const body = element("tbody");
    for (let i = this.at; i < Math.min(this.at + PAGE_ROWS, this.rows.length); i++) {
      const row = this.row(i);
      body.append(element("tr", row.marked ? { class: "marked" } : {}, ...this.columns.map((column) =>
        element("td", { class: column.number ? "number" : null }, column.text(row)))));
    }
    if (!this.rows.length) body.append(element("tr", {}, element("td", { colspan: this.columns.length }, "nothing")));
    const table = element("table", {}, element("caption", {}, this.caption), element("thead", {}, head), body);
    this.holder.replaceChildren(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": this.caption }, table), ...this.pager());
  }

  heading(column, index) {
    const sorted = this.sorted?.column === index;
    const direction = sorted ? (this.sorted.down ? "descending" : "ascending") : null;
    const attributes = { scope: "col", class: column.number ? "number" : null, "aria-sort": direction };
    if (!Array.isArray(this.rows)) return element("th", attributes, column.name);
    const again = () => {
      this.sort(index, sorted ? !this.sorted.down : Boolean(column.number));
      this.at = 0;
      this.draw();
    };
    return element("th", attributes, element("button", { type: "button", class: "sorter", onclick: again }, column.name));
  }

  pager() {
    if (this.rows.length <= PAGE_ROWS) return [];
    const turn = (by) => () => {
      this.at = Math.min(Math.max(this.at + by, 0), Math.floor((this.rows.length - 1) / PAGE_ROWS) * PAGE_ROWS);
      this.draw();
    };
    const last = Math.min(this.at + PAGE_ROWS, this.rows.length);
    return [element("p", { class: "pager" },
      element("button", { type: "button", onclick: turn(-PAGE_ROWS), disabled: this.at === 0 }, "Previous"),
      element("span", {}, `rows ${whole(this.at + 1)} to ${whole(last)} of ${whole(this.rows.length)}`),
      element("button", { type: "button", onclick: turn(PAGE_ROWS), disabled: last === this.rows.length }, "Next"))];
  }
}

/** Fills a <details> with tables when it is opened, and again while it stays open. */
function whenOpen(page, id, fill) {
  const details = byId(id);
  const update = () => details.open && fill();
  details.addEventListener("toggle", update);
  page.view.listen((changes) => (changes.has("place") || changes.has("groups")) && update());
}

export function tables(page) {
  timelineTables(page);
  flameTable(page);
  mapTables(page);
}

function timelineTables(page) {
  const { trace, view } = page;
  const number = (name, field) => ({ name, number: true, text: (row) => (row[field] === null ? "–" : bytes(row[field])), sort: (row) => row[field] });
  const levels = new Table(byId("table-levels"), "Held behind the chosen event, by group", [
    { name: "group", text: (row) => row.name },
    number("bytes", "held"),
  ]);
  const steps = new Table(byId("table-steps"), "Steps", [
    { name: "stretch", text: (row) => stepName(row), sort: (row) => row.events?.[0] ?? -1 },
    { name: "events", number: true, text: (row) => (row.events ? `${whole(row.events[0])}–${whole(row.events[1])}` : "–"), sort: (row) => row.events?.[0] ?? -1 },
    { name: "time", number: true, text: (row) => duration(row.seconds * 1e6), sort: (row) => row.seconds },
    number("highest allocated", "peakAllocated"),
    number("highest reserved", "peakReserved"),
    { name: "allocations", number: true, text: (row) => (row.allocations === null ? "–" : whole(row.allocations)), sort: (row) => row.allocations },
    { name: "cudaMalloc calls", number: true, text: (row) => (row.deviceMallocs === null ? "–" : whole(row.deviceMallocs)), sort: (row) => row.deviceMallocs },
  ]);
  const markers = new Table(byId("table-markers"), "Calls, memory errors and gaps", [
    { name: "event", number: true, text: (row) => whole(row.event), sort: (row) => row.event },
    { name: "what", text: (row) => row.kind },
    { name: "details", text: (row) => row.rows.map((pair) => pair.join(" ")).join("; ") },
  ]);
  const events = new Table(byId("table-events"), "Events around the chosen one", eventColumns(page));
  whenOpen(page, "tables-timeline", () => {
    const held = page.groups.behind(view.place - 1);
    levels.show([...page.groups.names.map((name, at) => ({ name, held: held[at] })), { name: "freed, waiting for another stream", held: held[held.length - 1] }]);
    steps.show(trace.header.steps);
    markers.show(page.timeline.markers);
    const rows = { length: trace.end - trace.first, row: (i) => ({ ...trace.event(trace.first + i), marked: trace.first + i === view.place - 1 }) };
    events.show(rows, view.place - 1 - trace.first);
  });
}

function eventColumns(page) {
  const { trace, stacks } = page;
  return [
    { name: "event", number: true, text: (row) => whole(row.number) },
    { name: "time", number: true, text: (row) => duration(row.time) },
    { name: "action", text: (row) => row.action },
    { name: "size", number: true, text: (row) => (row.size === null ? "–" : bytes(row.size)) },
    { name: "address", number: true, text: (row) => (row.address === null ? "–" : hexadecimal(row.address)) },
    { name: "category", text: (row) => row.category ?? "–" },
    { name: "line", text: (row) => (row.stack >= 0 ? stacks.lineText(stacks.line(row.stack)) : "–") },
    { name: "allocated", number: true, text: (row) => bytes(trace.allocatedAt(row.number + 1)) },
    { name: "reserved", number: true, text: (row) => bytes(trace.reservedAt(row.number + 1)) },
  ];
}

function flameTable(page) {
  const lines = new Table(byId("table-lines"), "Lines that hold memory at the chosen event", [
    { name: "line", text: (row) => row.name },
    { name: "holds", number: true, text: (row) => exactly(row.bytes), sort: (row) => row.bytes },
    { name: "share", number: true, text: (row) => percent(row.bytes, row.of), sort: (row) => row.bytes },
    { name: "blocks", number: true, text: (row) => whole(row.blocks), sort: (row) => row.blocks },
  ]);
  whenOpen(page, "tables-flame", () => lines.show(linesAt(page)));
}

/** What each line of the program holds at the chosen place, most first. */
function linesAt({ trace, stacks, view }) {
  const found = new Map();
  let all = 0;
  for (const block of trace.activeAt(view.place)) {
    if (!trace.isHeld(block, view.place)) continue;
    const line = stacks.line(trace.stackOf(block));
    const row = found.get(line) ?? { name: stacks.lineText(line), bytes: 0, blocks: 0 };
    row.bytes += trace.size[block];
    row.blocks += 1;
    all += trace.size[block];
    found.set(line, row);
  }
  return [...found.values()].sort((a, b) => b.bytes - a.bytes).map((row) => ({ ...row, of: all }));
}

function mapTables(page) {
  const { trace, stacks } = page;
  const size = (name, field) => ({ name, number: true, text: (row) => bytes(row[field]), sort: (row) => row[field] });
  const segments = new Table(byId("table-segments"), "Segments at the chosen event", [
    { name: "address", text: (row) => hexadecimal(row.address), sort: (row) => row.address },
    size("size", "size"),
    size("held", "held"),
    size("free", "holes"),
    size("largest hole", "largestHole"),
    { name: "kind", text: (row) => `${row.large ? "large" : "small"}${row.expandable ? ", expandable" : ""}` },
    { name: "pool", text: (row) => trace.poolName(row.pool) },
    { name: "stream", text: (row) => trace.streamName(row.stream) },
  ]);
  const blocks = new Table(byId("table-blocks"), "Blocks and holes at the chosen event", [
    { name: "address", text: (row) => hexadecimal(row.address), sort: (row) => row.address },
    size("size", "size"),
    { name: "state", text: (row) => (row.block < 0 ? "free" : row.held ? "held" : "waiting for another stream") },
    { name: "group", text: (row) => (row.block < 0 ? "–" : page.groups.names[page.groups.of[row.block]]) },
    { name: "line", text: (row) => (row.block < 0 ? "–" : stacks.lineText(stacks.line(trace.stackOf(row.block)))) },
    { name: "made at event", number: true, text: (row) => (row.block < 0 ? "–" : trace.made[row.block] < 0 ? "before" : whole(trace.made[row.block])), sort: (row) => (row.block < 0 ? -2 : trace.made[row.block]) },
  ]);
  whenOpen(page, "tables-map", () => {
    segments.show(page.map.segments);
    blocks.show(page.map.segments.flatMap((segment) => segment.parts));
  });
}
