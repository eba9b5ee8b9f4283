// Ways to sort blocks into a few coloured groups, and how much each group holds behind any event.

import { ALLOC, FREE_COMPLETED } from "./trace.js";

// Okabe and Ito's colours, which people with any kind of colour vision tell apart; see page.css for the two themes.
const COLOURS = 8;
/** The colour of everything else. */
export const REST = 8;
const KEY_EVENTS = 64;
const MIB = 1 << 20;
const FIXED = {
  parameters: 0, gradients: 1, "optimizer state": 2, activations: 3, temporaries: 4, inputs: 5,
  "library workspaces": 6, "KV caches": 7, buffers: 7, other: REST,
};
const SIZES = [[MIB, "up to 1 MiB"], [10 * MIB, "1 to 10 MiB"], [100 * MIB, "10 to 100 MiB"], [1024 * MIB, "100 MiB to 1 GiB"]];

/** The ways that say something about this trace: [[name, label]], the most telling first. */
export function schemesOf(trace) {
  const found = [];
  if (trace.header.categories.length) found.push(["category", "category"]);
  if (trace.columns.stackNode.some((at) => at > 0)) found.push(["line", "line of code"]);
  found.push(["size", "size"]);
  if (new Set(trace.columns.siteStream).size > 1) found.push(["stream", "stream"]);
  return found;
}

export class Groups {
  /** `names[g]`, `colours[g]` (index into the palette) of each group, and `of[block]`. */
  constructor(trace, stacks, scheme) {
    this.trace = trace;
    this.of = new Uint8Array(trace.blocks);
    [this.names, this.colours] = this[scheme](trace, stacks);
    this.keep();
  }

  category(trace) {
    const names = [...trace.header.categories, "not recorded"];
    const colours = names.map((name, i) => FIXED[name] ?? (i === names.length - 1 ? REST : i % COLOURS));
    const used = new Array(names.length).fill(false);
    for (let block = 0; block < trace.blocks; block++) {
      const index = trace.columns.siteCategory[trace.columns.site[block]];
      this.of[block] = index < 0 ? names.length - 1 : index;
      used[this.of[block]] = true;
    }
    return this.ordered(names, colours, used);
  }

  /** Groups in a fixed order, what lasts first: it lies at the bottom of the chart. */
  ordered(names, colours, used) {
    const order = [...names.keys()].filter((g) => used[g]).sort((a, b) => colours[a] - colours[b]);
    const place = new Uint8Array(names.length);
    order.forEach((group, at) => (place[group] = at));
    for (let block = 0; block < this.of.length; block++) this.of[block] = place[this.of[block]];
    return [order.map((g) => names[g]), order.map((g) => colours[g])];
  }

  line(trace, stacks) {
    const held = new Map();
    const place = trace.header.peaks.allocated.event + 1;
    for (let block = 0; block < trace.blocks; block++) {
      if (!(trace.made[block] < place && trace.freed[block] >= place)) continue;
      const line = stacks.line(trace.stackOf(block));
      held.set(line, (held.get(line) ?? 0) + trace.size[block]);
    }
    const top = [...held].sort((a, b) => b[1] - a[1]).slice(0, COLOURS).map(([line]) => line);
    const group = new Map(top.map((line, at) => [line, at]));
    for (let block = 0; block < trace.blocks; block++) {
      this.of[block] = group.get(stacks.line(trace.stackOf(block))) ?? top.length;
    }
    return [[...top.map((line) => stacks.lineText(line)), "all other lines"], [...top.keys(), REST]];
  }

  size(trace) {
    for (let block = 0; block < trace.blocks; block++) {
      const at = SIZES.findIndex(([limit]) => trace.size[block] <= limit);
      this.of[block] = at < 0 ? SIZES.length : at;
    }
    return [[...SIZES.map(([, name]) => name), "above 1 GiB"], [4, 3, 0, 1, 6]];
  }

  stream(trace) {
    const streams = [...new Set(trace.columns.siteStream)].sort((a, b) => a - b);
    const group = new Map(streams.map((stream, at) => [stream, Math.min(at, COLOURS)]));
    for (let block = 0; block < trace.blocks; block++) this.of[block] = group.get(trace.streamOf(block));
    const names = streams.slice(0, COLOURS).map((stream) => trace.streamName(stream));
    return [[...names, ...(streams.length > COLOURS ? ["other streams"] : [])], [...names.keys(), REST]];
  }

  /** Notes what the groups hold before every 64th event; the last column is what waits for another stream. */
  keep() {
    const { trace } = this, width = this.names.length + 1, count = trace.end - trace.first;
    this.width = width;
    this.keys = new Float64Array((Math.floor(count / KEY_EVENTS) + 1) * width);
    const now = new Float64Array(width);
    for (let block = 0; block < trace.older; block++) {
      now[trace.isHeld(block, trace.first) ? this.of[block] : width - 1] += trace.size[block];
    }
    for (let i = 0; i <= count; i++) {
      if (i % KEY_EVENTS === 0) this.keys.set(now, (i / KEY_EVENTS) * width);
      if (i < count) this.apply(i, now);
    }
  }

  apply(i, now) {
    const { trace } = this, kind = trace.kind[i], block = trace.block[i];
    if (kind > FREE_COMPLETED || block < 0) return;
    const size = trace.size[block], at = trace.first + i, pending = this.width - 1;
    // A free that is complete at the next event waits for nobody.
    const waits = trace.completed[block] > trace.freed[block] + 1;
    if (kind === ALLOC) now[this.of[block]] += size;
    else if (trace.freed[block] === at) {
      now[this.of[block]] -= size;
      if (waits) now[pending] += size;
    } else if (waits && trace.completed[block] === at) now[pending] -= size;
  }

  /** Bytes of each group behind event number `event`, what is pending last. */
  behind(event) {
    const i = event - this.trace.first + 1;
    const key = Math.floor(i / KEY_EVENTS);
    const now = this.keys.slice(key * this.width, (key + 1) * this.width);
    for (let at = key * KEY_EVENTS; at < i; at++) this.apply(at, now);
    return now;
  }
}
