// Highest and lowest levels of any stretch of events, at the cost of a few comparisons: a tree over leaves of 16 events.
// Of a thinned trace the outline answers where single events are not there.

const LEAF = 16;

export class Envelope {
  constructor(trace) {
    this.trace = trace;
    this.leaves = Math.ceil((trace.end - trace.first) / LEAF);
    const nodes = 2 * this.leaves;
    this.low = new Float64Array(nodes).fill(Infinity);
    this.high = new Float64Array(nodes).fill(-Infinity);
    this.top = new Int32Array(nodes).fill(-1);
    this.reservedLow = new Float64Array(nodes).fill(Infinity);
    this.reservedHigh = new Float64Array(nodes).fill(-Infinity);
    for (let leaf = 0; leaf < this.leaves; leaf++) this.addLeaf(leaf);
    for (let node = this.leaves - 1; node > 0; node--) this.join(node);
  }

  addLeaf(leaf) {
    const into = blank(), count = this.trace.end - this.trace.first;
    this.scan(leaf * LEAF, Math.min((leaf + 1) * LEAF, count), into);
    const node = this.leaves + leaf;
    this.low[node] = into.low;
    this.high[node] = into.high;
    this.top[node] = into.top;
    this.reservedLow[node] = into.reservedLow;
    this.reservedHigh[node] = into.reservedHigh;
  }

  join(node) {
    const a = 2 * node, b = a + 1;
    const higher = this.high[a] >= this.high[b] ? a : b;
    this.low[node] = Math.min(this.low[a], this.low[b]);
    this.high[node] = this.high[higher];
    this.top[node] = this.top[higher];
    this.reservedLow[node] = Math.min(this.reservedLow[a], this.reservedLow[b]);
    this.reservedHigh[node] = Math.max(this.reservedHigh[a], this.reservedHigh[b]);
  }

  /** Of the events [from, to): lowest and highest allocated, the event `top` of the highest (-1: not held), reserved. */
  over(from, to) {
    const { first, end, header } = this.trace, into = blank();
    from = Math.max(from, 0);
    to = Math.min(Math.max(to, from + 1), this.trace.total);
    if (header.bucket && from < first) this.outline(from, Math.min(to, first), into);
    this.inside(Math.max(from, first) - first, Math.min(to, end) - first, into);
    if (header.bucket && to > end) this.outline(Math.max(from, end), to, into);
    return into;
  }

  inside(from, to, into) {
    if (to - from <= 2 * LEAF) return this.scan(from, to, into);
    const firstLeaf = Math.ceil(from / LEAF), lastLeaf = Math.floor(to / LEAF);
    this.scan(from, firstLeaf * LEAF, into);
    this.scan(lastLeaf * LEAF, to, into);
    let a = firstLeaf + this.leaves, b = lastLeaf + this.leaves;
    for (; a < b; a >>= 1, b >>= 1) {
      if (a & 1) this.take(a++, into);
      if (b & 1) this.take(--b, into);
    }
  }

  scan(from, to, into) {
    const { allocated, reserved, first } = this.trace;
    for (let i = from; i < to; i++) {
      into.low = Math.min(into.low, allocated[i]);
      if (allocated[i] > into.high) {
        into.high = allocated[i];
        into.top = first + i;
      }
      into.reservedLow = Math.min(into.reservedLow, reserved[i]);
      into.reservedHigh = Math.max(into.reservedHigh, reserved[i]);
    }
  }

  take(node, into) {
    into.low = Math.min(into.low, this.low[node]);
    if (this.high[node] > into.high) {
      into.high = this.high[node];
      into.top = this.top[node];
    }
    into.reservedLow = Math.min(into.reservedLow, this.reservedLow[node]);
    into.reservedHigh = Math.max(into.reservedHigh, this.reservedHigh[node]);
  }

  outline(from, to, into) {
    const c = this.trace.columns, bucket = this.trace.header.bucket;
    for (let at = Math.floor(from / bucket); at * bucket < to; at++) {
      into.low = Math.min(into.low, c.outline_allocated_low[at]);
      if (c.outline_allocated_high[at] > into.high) {
        into.high = c.outline_allocated_high[at];
        into.top = -1;
      }
      into.reservedLow = Math.min(into.reservedLow, c.outline_reserved_low[at]);
      into.reservedHigh = Math.max(into.reservedHigh, c.outline_reserved_high[at]);
    }
  }
}

const blank = () => ({ low: Infinity, high: -Infinity, top: -1, reservedLow: Infinity, reservedHigh: -Infinity });
