// The chart of memory over the run: held bytes by group, reserved and used bytes, steps above, markers below.

import { bytes, byId, duration, element, exactly, shortPath, whole } from "./format.js";
import { cleared, copied, fitted, hatch, hideTip, showTip } from "./canvas.js";
import { REST } from "./groups.js";
import { OOM } from "./trace.js";

const HEIGHT = 340, TOP = 24, BOTTOM = 44, LEFT = 74, RIGHT = 14;
const STRIP = 46;
const APART = 11;

export class Timeline {
  constructor(page) {
    this.page = page;
    this.view = page.view;
    this.canvas = byId("timeline");
    this.strip = byId("strip");
    this.markers = markersOf(page.trace);
    this.view.listen((changes) => this.draw(changes));
    this.listenToPointer();
    this.listenToStrip();
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  draw(changes) {
    const { g, width, height } = cleared(this.canvas, HEIGHT);
    this.box = { left: LEFT, top: TOP, width: width - LEFT - RIGHT, height: height - TOP - BOTTOM };
    const columns = this.columns(this.view.low, this.view.high, this.box.width);
    this.scale = this.ceiling(columns);
    this.drawAxes(g);
    this.drawSteps(g);
    this.drawColumns(g, columns, this.box, this.scale);
    this.drawUsed(g);
    this.drawLimit(g);
    this.drawMarkers(g);
    this.drawPlace(g);
    this.drawDrag(g);
    if (!(changes.size === 1 && changes.has("place"))) this.drawStrip();
    else this.drawStripWindow();
    this.describe();
  }

  /** For each pixel column the extremes of its events, and what each group held at the highest. */
  columns(low, high, count) {
    const { view } = this, { envelope, groups, trace } = this.page, columns = [];
    for (let x = 0; x < count; x++) {
      const from = view.eventAt(low + ((high - low) * x) / count);
      const to = view.eventAt(low + ((high - low) * (x + 1)) / count);
      const found = envelope.over(from, Math.max(to, from + 1));
      found.parts = found.top >= 0 && trace.has(found.top) ? groups.behind(found.top) : null;
      found.from = from;
      found.to = Math.max(to, from + 1);
      columns.push(found);
    }
    return columns;
  }

  ceiling(columns) {
    let top = 1;
    for (const column of columns) top = Math.max(top, column.reservedHigh, column.high);
    const used = this.usedIn(this.view.low, this.view.high);
    for (const [, value] of used) top = Math.max(top, value);
    const total = this.page.trace.header.facts.totalBytes;
    if (this.page.wholeCard && total) top = Math.max(top, total);
    return top * 1.06;
  }

  x(position) {
    return this.box.left + ((position - this.view.low) / (this.view.high - this.view.low)) * this.box.width;
  }

  y(value) {
    return this.box.top + this.box.height * (1 - value / this.scale);
  }

  drawAxes(g) {
    const { colours } = this.page, { left, top, width, height } = this.box;
    g.strokeStyle = colours.line;
    g.fillStyle = colours.quiet;
    g.lineWidth = 1;
    g.textBaseline = "middle";
    g.textAlign = "right";
    for (const value of niceBytes(this.scale, 5)) {
      const y = Math.round(this.y(value)) + 0.5;
      g.beginPath();
      g.moveTo(left, y);
      g.lineTo(left + width, y);
      g.stroke();
      g.fillText(bytes(value), left - 8, y);
    }
    g.textBaseline = "top";
    g.textAlign = "center";
    for (const at of nice(this.view.low, this.view.high, Math.max(Math.floor(width / 130), 2))) {
      const x = this.x(at);
      g.fillRect(Math.round(x), top + height, 1, 4);
      if (x > left + 20 && x < left + width - 30) g.fillText(this.tick(at), x, top + height + 26);
    }
  }

  tick(at) {
    return this.view.axis === "events" ? whole(at) : at ? duration(at) : "0";
  }

  drawSteps(g) {
    const { colours, trace } = this.page, { left, width, top, height } = this.box;
    g.textBaseline = "middle";
    g.textAlign = "left";
    g.save();
    g.beginPath();
    g.rect(left, 0, width, top + height);
    g.clip();
    trace.header.steps.forEach((step, index) => {
      if (!step.events) return;
      const a = this.x(this.view.position(step.events[0]));
      const b = this.x(this.view.position(step.events[1]));
      if (b < left || a > left + width) return;
      g.fillStyle = index % 2 ? colours.sunken : colours.line;
      g.fillRect(a, 3, Math.max(b - a, 0.5), top - 7);
      if (b - a > 3) {
        g.fillStyle = colours.line;
        g.fillRect(Math.round(a), top, 1, height);
      }
      g.fillStyle = colours.text;
      const from = Math.max(a, left);
      g.fillText(fitted(g, stepName(step), Math.min(b, left + width) - from - 8), from + 4, top / 2);
    });
    g.restore();
  }

  /** Groups from the bottom up: full up to the lowest level of a column, paler up to its highest. */
  drawColumns(g, columns, box, scale) {
    const { colours, groups } = this.page;
    const y = (value) => box.top + box.height * (1 - value / scale);
    const fills = [...groups.colours.map((at) => colours.groups[at]), colours.pending];
    columns.forEach((column, x) => {
      if (column.high === -Infinity) return;
      const at = box.left + x;
      g.fillStyle = colours.hole;
      g.fillRect(at, y(column.reservedHigh), 1, box.top + box.height - y(column.reservedHigh));
      if (!column.parts) {
        g.fillStyle = colours.groups[REST];
        g.fillRect(at, y(column.low), 1, y(0) - y(column.low));
        g.globalAlpha = 0.55;
        g.fillRect(at, y(column.high), 1, y(column.low) - y(column.high));
        g.globalAlpha = 1;
        return;
      }
      let sum = 0;
      column.parts.forEach((part, group) => {
        if (part <= 0) return;
        const solid = Math.min(Math.max(column.low - sum, 0), part);
        g.fillStyle = fills[group];
        if (solid > 0) g.fillRect(at, y(sum + solid), 1, y(sum) - y(sum + solid));
        if (part > solid) {
          g.globalAlpha = 0.55;
          g.fillRect(at, y(sum + part), 1, y(sum + solid) - y(sum + part));
          g.globalAlpha = 1;
        }
        sum += part;
      });
    });
    g.strokeStyle = colours.reserved;
    g.lineWidth = 1.5;
    g.beginPath();
    columns.forEach((column, x) => {
      if (column.reservedHigh === -Infinity) return;
      g.lineTo(box.left + x, y(column.reservedHigh));
      g.lineTo(box.left + x + 1, y(column.reservedHigh));
    });
    g.stroke();
  }

  /** [position, bytes] of what the whole device had in use, within a stretch of the axis and one sample on each side. */
  usedIn(low, high) {
    const { usedTime, usedBytes } = this.page.trace.columns, found = [];
    if (!usedTime.length) return found;
    for (let i = 0; i < usedTime.length; i++) {
      found.push([this.view.axis === "time" ? usedTime[i] : this.page.eventAtTime(usedTime[i]), usedBytes[i]]);
    }
    const from = Math.max(found.findLastIndex(([at]) => at <= low), 0);
    const to = found.findIndex(([at]) => at >= high);
    return found.slice(from, to < 0 ? undefined : to + 1);
  }

  drawUsed(g) {
    const used = this.usedIn(this.view.low, this.view.high), { left, width, top, height } = this.box;
    g.save();
    g.beginPath();
    g.rect(left, top, width, height);
    g.clip();
    g.strokeStyle = this.page.colours.used;
    g.lineWidth = 1.5;
    g.setLineDash([5, 3]);
    g.beginPath();
    let before = null;
    for (const [at, value] of used) {
      if (before !== null) g.lineTo(this.x(at), this.y(before));
      g.lineTo(this.x(at), this.y(value));
      before = value;
    }
    if (before !== null) g.lineTo(left + width, this.y(before));
    g.stroke();
    g.restore();
  }

  drawLimit(g) {
    const { colours, trace } = this.page, total = trace.header.facts.totalBytes;
    if (!total || total > this.scale) return;
    const y = Math.round(this.y(total)) + 0.5, { left, width } = this.box;
    g.strokeStyle = g.fillStyle = colours.bad;
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(left, y);
    g.lineTo(left + width, y);
    g.stroke();
    g.textAlign = "right";
    g.textBaseline = "bottom";
    g.fillText(`the card: ${bytes(total)}`, left + width - 4, y - 2);
  }

  drawMarkers(g) {
    const { colours } = this.page, { left, width, top, height } = this.box, y = top + height + 14;
    let last = -10;
    for (const marker of this.markers) {
      const x = this.x(this.view.position(marker.event));
      if (x < left - 1 || x > left + width + 1) continue;
      if (marker.kind === "gap") {
        g.fillStyle = hatch(g, colours.quiet);
        g.fillRect(x - 3, top, 6, height);
      }
      if (marker.kind !== "out of memory" && x - last < APART) continue;
      last = x;
      drawMarker(g, marker.kind, x, y, colours);
      if (marker.kind === "out of memory") {
        g.fillStyle = colours.bad;
        g.fillRect(Math.round(x), top, 1, height);
      }
    }
  }

  drawPlace(g) {
    const { colours } = this.page, { left, width, top, height } = this.box;
    const half = this.view.axis === "events" ? 0.5 : 0;
    const x = Math.round(this.x(this.view.position(this.view.place - 1) + half));
    if (x < left || x > left + width) return;
    g.fillStyle = colours.accent;
    g.fillRect(x - 1, top - 4, 2, height + 4);
    g.beginPath();
    g.moveTo(x - 5, top - 5);
    g.lineTo(x + 5, top - 5);
    g.lineTo(x, top + 2);
    g.fill();
  }

  drawDrag(g) {
    if (!this.drag || !this.drag.moved) return;
    const { top, height } = this.box;
    g.fillStyle = this.page.colours.accent;
    g.globalAlpha = 0.18;
    g.fillRect(Math.min(this.drag.from, this.drag.to), top, Math.abs(this.drag.to - this.drag.from), height);
    g.globalAlpha = 1;
  }

  // --- the strip below, which always shows the whole run

  drawStrip() {
    const { width } = cleared(this.strip, STRIP);
    this.stripBox = { left: LEFT, top: 4, width: width - LEFT - RIGHT, height: STRIP - 8 };
    const columns = this.columns(0, this.view.whole, this.stripBox.width);
    const top = columns.reduce((most, column) => Math.max(most, column.reservedHigh, column.high), 1);
    this.drawColumns(this.strip.getContext("2d"), columns, this.stripBox, top);
    this.stripImage = copied(this.strip);
    this.drawStripWindow();
  }

  drawStripWindow() {
    const { g } = cleared(this.strip, STRIP), { left, top, width, height } = this.stripBox;
    g.drawImage(this.stripImage, 0, 0, left + width + RIGHT, STRIP);
    const a = left + (this.view.low / this.view.whole) * width;
    const b = Math.max(left + (this.view.high / this.view.whole) * width, a + 2);
    g.fillStyle = this.page.colours.panel;
    g.globalAlpha = 0.65;
    g.fillRect(left, top, a - left, height);
    g.fillRect(b, top, left + width - b, height);
    g.globalAlpha = 1;
    g.strokeStyle = this.page.colours.accent;
    g.lineWidth = 1.5;
    g.strokeRect(a, top - 1, b - a, height + 2);
  }

  listenToStrip() {
    let grip = null;
    const at = (event) => ((event.offsetX - this.stripBox.left) / this.stripBox.width) * this.view.whole;
    const move = (event) => {
      const middle = at(event) - grip, half = (this.view.high - this.view.low) / 2;
      this.view.show(middle - half, middle + half);
    };
    this.strip.addEventListener("pointerdown", (event) => {
      const middle = (this.view.low + this.view.high) / 2;
      grip = at(event) >= this.view.low && at(event) <= this.view.high ? at(event) - middle : 0;
      this.strip.setPointerCapture(event.pointerId);
      move(event);
    });
    this.strip.addEventListener("pointermove", (event) => grip !== null && move(event));
    this.strip.addEventListener("pointerup", () => (grip = null));
  }

  // --- pointer and keys

  listenToPointer() {
    const { canvas, view } = this;
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.drag = { from: event.offsetX, to: event.offsetX, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.drag) {
        this.drag.to = event.offsetX;
        this.drag.moved ||= Math.abs(this.drag.to - this.drag.from) > 4;
        if (this.drag.moved) view.change("range");
      }
      this.hover(event);
    });
    canvas.addEventListener("pointerup", (event) => this.released(event));
    canvas.addEventListener("pointerleave", hideTip);
    canvas.addEventListener("dblclick", () => view.show(0, view.whole));
  }

  positionAt(offset) {
    return this.view.low + ((offset - this.box.left) / this.box.width) * (this.view.high - this.view.low);
  }

  wheel(event) {
    const { view } = this;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
      event.preventDefault();
      view.pan((event.deltaX || event.deltaY) / this.box.width);
      return;
    }
    // Where there is nothing left to zoom out of, the page scrolls.
    if (event.deltaY > 0 && view.isWhole) return;
    event.preventDefault();
    view.zoom(Math.exp(Math.max(Math.min(event.deltaY, 200), -200) / 300), this.positionAt(event.offsetX));
  }

  released(event) {
    const drag = this.drag;
    this.drag = null;
    if (!drag) return;
    if (drag.moved) {
      const [a, b] = [drag.from, drag.to].sort((p, q) => p - q).map((x) => this.positionAt(x));
      this.view.show(a, b);
    } else {
      this.view.choose(this.pointed(event).event);
    }
  }

  /** The event under the pointer: of a column that stands for many, the one with most memory held. */
  pointed(pointer) {
    const { view } = this;
    const from = view.eventAt(this.positionAt(pointer.offsetX));
    const to = Math.max(view.eventAt(this.positionAt(pointer.offsetX + 1)), from + 1);
    const found = this.page.envelope.over(from, to);
    return { event: to - from > 1 && found.top >= 0 ? found.top : from, of: to - from, found };
  }

  hover(pointer) {
    const { left, width, top, height } = this.box;
    if (pointer.offsetX < left || pointer.offsetX > left + width) return hideTip();
    if (pointer.offsetY > top + height) {
      const marker = this.nearestMarker(pointer.offsetX);
      if (marker) return showTip(pointer, [marker.kind, ["event", whole(marker.event)], ...marker.rows]);
    }
    const { event, of, found } = this.pointed(pointer);
    if (!this.page.trace.has(event)) {
      return showTip(pointer, [
        `${whole(of)} events, not held one by one`,
        ["allocated", `${bytes(found.low)} to ${bytes(found.high)}`],
        ["reserved", `${bytes(found.reservedLow)} to ${bytes(found.reservedHigh)}`],
      ]);
    }
    showTip(pointer, [...(of > 1 ? [`highest of ${whole(of)} events here`] : []), ...this.page.eventRows(event, true)]);
  }

  nearestMarker(x) {
    let nearest = null, distance = 8;
    for (const marker of this.markers) {
      const away = Math.abs(this.x(this.view.position(marker.event)) - x);
      if (away < distance) [nearest, distance] = [marker, away];
    }
    return nearest;
  }

  key(event) {
    const { view, page } = this, chosen = view.place - 1, peaks = page.trace.header.peaks;
    const actions = {
      ArrowLeft: () => (event.shiftKey ? view.pan(-0.2) : view.choose(chosen - 1)),
      ArrowRight: () => (event.shiftKey ? view.pan(0.2) : view.choose(chosen + 1)),
      PageUp: () => view.choose(chosen - 100),
      PageDown: () => view.choose(chosen + 100),
      Home: () => view.choose(0),
      End: () => view.choose(page.trace.total - 1),
      "+": () => view.zoomToChosen(0.5),
      "=": () => view.zoomToChosen(0.5),
      "-": () => view.zoomToChosen(2),
      0: () => view.show(0, view.whole),
      p: () => view.choose(peaks.allocated.event),
      r: () => view.choose(peaks.reserved.event),
      "[": () => this.toNeighbour(this.stepStarts(), -1),
      "]": () => this.toNeighbour(this.stepStarts(), 1),
      m: () => this.toNeighbour(this.markers.map((marker) => marker.event), 1),
      M: () => this.toNeighbour(this.markers.map((marker) => marker.event), -1),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[event.key]();
  }

  stepStarts() {
    return this.page.trace.header.steps.filter((step) => step.events).map((step) => step.events[0]);
  }

  toNeighbour(events, direction) {
    const chosen = this.view.place - 1;
    const next = direction > 0 ? events.find((at) => at > chosen) : events.findLast((at) => at < chosen);
    if (next !== undefined) this.view.choose(next);
  }

  /** Tells a screen reader where the slider stands. */
  describe() {
    const { trace } = this.page, event = this.view.place - 1;
    this.canvas.setAttribute("aria-valuemin", trace.first);
    this.canvas.setAttribute("aria-valuemax", Math.max(trace.end - 1, 0));
    this.canvas.setAttribute("aria-valuenow", event);
    const text = `event ${whole(event)}: ${bytes(trace.allocatedAt(event + 1))} allocated, ` +
      `${bytes(trace.reservedAt(event + 1))} reserved`;
    this.canvas.setAttribute("aria-valuetext", text);
    const { low, high, axis } = this.view;
    const shown = axis === "events" ? `events ${whole(low)} to ${whole(high)}` : `${duration(low)} to ${duration(high)}`;
    this.canvas.dataset.span = Math.round(high - low);
    byId("shown").textContent = `Showing ${shown} of ${axis === "events" ? whole(this.view.whole) : duration(this.view.whole)}.`;
  }
}

export const stepName = (step) =>
  step.phase === "train" ? `step ${step.number}` : step.phase === "eval" ? "evaluation" : "set-up";

/** Moments worth a mark, in order: {event, kind, rows}. */
export function markersOf(trace) {
  const { calls, gaps, failures } = trace.header, found = [];
  for (const call of calls) {
    if (call.event === null || call.kind === "gc") continue;
    const rows = [["gave back", bytes(call.reserved[0] - call.reserved[1])]];
    if (call.seconds !== null) rows.push(["took", duration(call.seconds * 1e6)]);
    if (call.where) rows.push(["called at", shortPath(call.where)]);
    found.push({ event: call.event, kind: call.skipped ? `${call.kind} (skipped)` : call.kind, rows });
  }
  for (const [event, bridged, allocations] of gaps) {
    found.push({ event, kind: "gap", rows: [["not recorded", `${whole(allocations)} allocations`], ["bridged by", `${whole(bridged)} events`]] });
  }
  const told = new Map(failures.filter((f) => f.event !== null).map((failure) => [failure.event, failure]));
  for (const event of trace.others) {
    if (trace.kind[event - trace.first] !== OOM) continue;
    const failure = told.get(event), about = trace.event(event);
    told.delete(event);
    const rows = [["asked for", exactly(about.size)], ["free on the device", bytes(about.address)]];
    if (failure?.where) rows.push(["at", shortPath(failure.where)]);
    found.push({ event, kind: "out of memory", rows });
  }
  for (const [event, failure] of told) {
    found.push({ event: Math.min(event, trace.total - 1), kind: "out of memory", rows: [["asked for", bytes(failure.requested)]] });
  }
  return found.sort((a, b) => a.event - b.event);
}

/** A shape for each kind, so that colour is not all that tells them apart. */
export function drawMarker(g, kind, x, y, colours) {
  g.lineWidth = 2;
  g.strokeStyle = g.fillStyle = kind === "out of memory" ? colours.bad : colours.text;
  g.beginPath();
  if (kind === "out of memory") {
    g.moveTo(x - 5, y - 5);
    g.lineTo(x + 5, y + 5);
    g.moveTo(x + 5, y - 5);
    g.lineTo(x - 5, y + 5);
    g.stroke();
  } else if (kind === "gap") {
    g.strokeRect(x - 4, y - 4, 8, 8);
  } else {
    g.moveTo(x, y - 6);
    g.lineTo(x + 5, y + 4);
    g.lineTo(x - 5, y + 4);
    g.closePath();
    if (kind.startsWith("empty_cache") && !kind.endsWith("(skipped)")) g.fill();
    else g.stroke();
  }
}

/** Round numbers between `low` and `high`, about `count` of them. */
function nice(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = Math.max([1, 2, 5, 10].find((factor) => factor * power >= raw) * power, 1);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
  return found;
}

/** Round numbers of bytes from 0 up, in powers of two. */
function niceBytes(top, count) {
  const raw = top / count, power = 2 ** Math.floor(Math.log2(Math.max(raw, 1)));
  const step = raw / power > 1.5 ? power * 2 : power;
  const found = [];
  for (let at = 0; at <= top; at += step) found.push(at);
  return found;
}

/** The key to the chart's colours. */
export function legend(page) {
  const swatch = (className, name) =>
    element("li", {}, element("span", { class: `swatch ${className}`, "aria-hidden": "true" }), name);
  const groups = page.groups.names.map((name, at) => swatch(`g${page.groups.colours[at]}`, name)).reverse();
  const lines = [swatch("reserved", "reserved"), swatch("hole", "reserved and free")];
  if (page.trace.columns.usedTime.length) lines.unshift(swatch("used", "in use on the device (NVML)"));
  if (page.trace.header.bucket) lines.push(swatch("g8", "allocated, not held event by event"));
  if (page.hasPending) lines.push(swatch("pending", "freed, waiting for another stream"));
  return [...lines, ...groups];
}
