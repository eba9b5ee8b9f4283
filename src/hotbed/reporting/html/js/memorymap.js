// The memory map at the chosen place: a row for each segment, with its blocks, its holes and what is pending.

import { bytes, byId, duration, exactly, hexadecimal, percent, whole } from "./format.js";
import { cleared, fitted, hatch, hideTip, showTip } from "./canvas.js";

const ROW = 22, HEADING = 30, LABEL = 168, RIGHT = 12, HEIGHT = 460;

export class MemoryMap {
  constructor(page) {
    this.page = page;
    this.canvas = byId("map");
    this.scroller = byId("map-scroll");
    this.order = "size";
    this.scale = "segment";
    this.chosen = { row: 0, part: -1 };
    page.view.listen((changes) => this.update(changes));
    this.scroller.addEventListener("scroll", () => this.draw());
    byId("map-order").addEventListener("change", (event) => this.set("order", event.target.value));
    byId("map-scale").addEventListener("change", (event) => this.set("scale", event.target.value));
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", hideTip);
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  set(name, value) {
    this[name] = value;
    this.build();
  }

  update(changes) {
    if (changes.has("place") || !this.rows) this.build();
    else if (changes.has("groups") || changes.has("theme") || changes.has("size")) this.draw();
  }

  build() {
    const { trace, view } = this.page;
    this.segments = trace.mapAt(view.place);
    const pools = new Map();
    for (const segment of this.segments) {
      const key = `${trace.poolName(segment.pool)} · ${trace.streamName(segment.stream)}`;
      if (!pools.has(key)) pools.set(key, []);
      pools.get(key).push(segment);
    }
    this.rows = [];
    let y = 0;
    for (const [name, segments] of [...pools].sort((a, b) => total(b[1]) - total(a[1]))) {
      this.rows.push({ y, height: HEADING, heading: name, segments });
      y += HEADING;
      for (const segment of this.ordered(segments)) {
        this.rows.push({ y, height: ROW, segment });
        y += ROW;
      }
    }
    this.height = y;
    this.largest = Math.max(1, ...this.segments.map((segment) => segment.size));
    byId("map-space").style.height = `${Math.max(y, 40)}px`;
    this.chosen = { row: Math.min(this.chosen.row, Math.max(this.segments.length - 1, 0)), part: -1 };
    this.draw();
    byId("map-summary").textContent = this.summary();
  }

  ordered(segments) {
    return this.order === "size"
      ? [...segments].sort((a, b) => b.size - a.size || a.address - b.address)
      : this.order === "holes" ? [...segments].sort((a, b) => b.holes - a.holes) : segments;
  }

  summary() {
    const held = sum(this.segments, "held"), holes = sum(this.segments, "holes"), pending = sum(this.segments, "pending");
    const largest = Math.max(0, ...this.segments.map((segment) => segment.largestHole));
    return `${whole(this.segments.length)} segments, ${bytes(total(this.segments))}: ${bytes(held)} in blocks` +
      `${pending ? `, ${bytes(pending)} waiting for another stream` : ""}, ${bytes(holes)} free` +
      `${holes ? ` (largest hole ${bytes(largest)})` : ""}`;
  }

  draw() {
    const { g, width } = cleared(this.canvas, Math.min(HEIGHT, Math.max(this.height, 40)));
    this.width = width - LABEL - RIGHT;
    const top = this.scroller.scrollTop;
    const striped = hatch(g, this.page.colours.pending);
    for (const row of this.rows) {
      const y = row.y - top;
      if (y > HEIGHT || y + row.height < 0) continue;
      if (row.heading) this.drawHeading(g, row, y);
      else this.drawSegment(g, row.segment, y, striped);
    }
  }

  drawHeading(g, row, y) {
    g.fillStyle = this.page.colours.quiet;
    g.textAlign = "left";
    g.textBaseline = "bottom";
    const count = `${row.segments.length} segment${row.segments.length === 1 ? "" : "s"}`;
    g.fillText(`${row.heading} · ${count}, ${bytes(total(row.segments))}`, 4, y + HEADING - 5);
  }

  drawSegment(g, segment, y, striped) {
    const { colours, groups } = this.page;
    const width = this.barWidth(segment);
    g.fillStyle = colours.text;
    g.textAlign = "left";
    g.textBaseline = "middle";
    g.fillText(bytes(segment.size), 4, y + ROW / 2);
    g.fillStyle = colours.quiet;
    g.textAlign = "right";
    g.fillText(`${percent(segment.held, segment.size)} held`, LABEL - 10, y + ROW / 2);
    g.fillStyle = colours.hole;
    g.fillRect(LABEL, y + 2, width, ROW - 4);
    const current = this.chosenPart(segment);
    for (const part of segment.parts) {
      if (part.block < 0 && part !== current) continue;
      const x = LABEL + ((part.address - segment.address) / segment.size) * width;
      const w = (part.size / segment.size) * width;
      if (part.block >= 0) {
        g.fillStyle = colours.groups[groups.colours[groups.of[part.block]]];
        if (part.held) g.fillRect(x, y + 2, Math.max(w - (w > 3 ? 1 : 0), 0.5), ROW - 4);
        else {
          g.fillStyle = striped;
          g.fillRect(x, y + 2, Math.max(w, 0.5), ROW - 4);
        }
        if (w > 60 && part.held) {
          g.fillStyle = "#000";
          g.textAlign = "left";
          g.fillText(fitted(g, bytes(part.size), w - 8), x + 5, y + ROW / 2);
        }
      }
      if (part === current) {
        g.strokeStyle = colours.text;
        g.lineWidth = 2;
        g.strokeRect(x, y + 1, Math.max(w, 2), ROW - 2);
      }
    }
    g.strokeStyle = colours.line;
    g.lineWidth = 1;
    g.strokeRect(LABEL + 0.5, y + 1.5, width - 1, ROW - 3);
  }

  barWidth(segment) {
    return this.scale === "segment" ? this.width : Math.max((segment.size / this.largest) * this.width, 3);
  }

  segmentRows() {
    return this.rows.filter((row) => row.segment);
  }

  chosenPart(segment) {
    if (this.chosen.part < 0 || this.segmentRows()[this.chosen.row]?.segment !== segment) return null;
    return segment.parts[this.chosen.part] ?? null;
  }

  hover(pointer) {
    const y = pointer.offsetY + this.scroller.scrollTop;
    const row = this.rows.find((candidate) => y >= candidate.y && y < candidate.y + candidate.height);
    if (!row || row.heading) return hideTip();
    const offset = (pointer.offsetX - LABEL) / this.barWidth(row.segment);
    if (offset > 1) return hideTip();
    if (offset < 0) return showTip(pointer, this.segmentText(row.segment));
    const address = row.segment.address + offset * row.segment.size;
    const part = row.segment.parts.find((p) => address >= p.address && address < p.address + p.size);
    return part ? showTip(pointer, this.partRows(part, row.segment)) : hideTip();
  }

  segmentText(segment) {
    const { trace } = this.page;
    return [
      `${segment.expandable ? "expandable " : ""}segment at ${hexadecimal(segment.address)}`,
      ["size", exactly(segment.size)],
      ["held", exactly(segment.held)],
      ["free", exactly(segment.holes)],
      ["largest hole", bytes(segment.largestHole)],
      ["serves", segment.large ? "large requests (above 1 MiB)" : "small requests (up to 1 MiB)"],
      ["pool", trace.poolName(segment.pool)],
      ["stream", trace.streamName(segment.stream)],
    ];
  }

  partRows(part, segment) {
    const { trace, stacks, view } = this.page;
    if (part.block < 0) {
      return ["free hole", ["size", exactly(part.size)], ["at", hexadecimal(part.address)],
        ["in", part.size === segment.size ? "a segment that is wholly free" : `a segment of ${bytes(segment.size)}`]];
    }
    const block = part.block, made = trace.made[block], stack = trace.stackOf(block);
    const age = made < 0 ? "older than the recording"
      : `${whole(view.place - 1 - made)} events, ${duration(view.timeOf(view.place - 1) - view.timeOf(made))}`;
    return [
      part.held ? "block" : "block, freed and waiting for another stream",
      ["size", exactly(part.size)],
      ["requested", exactly(trace.requested[block])],
      ...(trace.categoryOf(block) ? [["category", trace.categoryOf(block)]] : []),
      ...(stack >= 0 ? [["line", stacks.lineText(stacks.line(stack))]] : []),
      ["age", age],
      ["at", hexadecimal(part.address)],
      ["stream", trace.streamName(trace.streamOf(block))],
    ];
  }

  key(event) {
    const rows = this.segmentRows(), { row, part } = this.chosen;
    if (!rows.length) return;
    const last = rows[row].segment.parts.length - 1;
    const next = {
      ArrowDown: { row: Math.min(row + 1, rows.length - 1), part: 0 },
      ArrowUp: { row: Math.max(row - 1, 0), part: 0 },
      ArrowRight: { row, part: Math.min(part + 1, last) },
      ArrowLeft: { row, part: Math.max(part - 1, 0) },
      Home: { row, part: 0 },
      End: { row, part: last },
    }[event.key];
    if (!next) return;
    event.preventDefault();
    this.chosen = next;
    const at = rows[next.row], scroll = this.scroller;
    if (at.y < scroll.scrollTop) scroll.scrollTop = at.y;
    if (at.y + ROW > scroll.scrollTop + HEIGHT) scroll.scrollTop = at.y + ROW - HEIGHT;
    this.draw();
    const told = this.partRows(at.segment.parts[next.part], at.segment);
    byId("map-told").textContent = told.map((line) => (Array.isArray(line) ? line.join(" ") : line)).join(", ");
  }
}

const sum = (segments, field) => segments.reduce((all, segment) => all + segment[field], 0);
const total = (segments) => sum(segments, "size");
