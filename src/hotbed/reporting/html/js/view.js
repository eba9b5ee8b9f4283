// What is looked at: the visible stretch, the chosen place, the way of sorting. Whoever draws listens here.

export class View {
  constructor(trace) {
    this.trace = trace;
    this.axis = "events";
    this.low = 0;
    this.high = Math.max(trace.total, 1);
    this.place = trace.header.peaks.allocated.event + 1;
    this.listeners = [];
    this.changed = new Set();
  }

  /** `listener(changes)` is called once a frame; changes is a set of "range", "place", "groups", "theme", "size". */
  listen(listener) {
    this.listeners.push(listener);
  }

  change(what) {
    if (!this.changed.size) requestAnimationFrame(() => this.tell());
    this.changed.add(what);
  }

  tell() {
    const changes = this.changed;
    this.changed = new Set();
    for (const listener of this.listeners) listener(changes);
  }

  /** The whole trace in units of the axis: events, or microseconds behind the first event. */
  get whole() {
    return this.axis === "events" ? Math.max(this.trace.total, 1) : Math.max(this.timeOf(this.trace.total - 1), 1);
  }

  get isWhole() {
    return this.low <= 0 && this.high >= this.whole;
  }

  show(low, high) {
    const whole = this.whole;
    const least = Math.min(this.axis === "events" ? 4 : 2, whole);
    const span = Math.min(Math.max(high - low, least), whole);
    const middle = (low + high) / 2;
    this.low = Math.min(Math.max(middle - span / 2, 0), whole - span);
    this.high = this.low + span;
    this.change("range");
  }

  /** Zooms so that `about` stays where it is on the screen. */
  zoom(factor, about) {
    this.show(about - (about - this.low) * factor, about + (this.high - about) * factor);
  }

  /** Zooms with the chosen event in the middle. */
  zoomToChosen(factor) {
    const middle = this.position(this.place - 1) + (this.axis === "events" ? 0.5 : 0);
    const half = ((this.high - this.low) * factor) / 2;
    this.show(middle - half, middle + half);
  }

  pan(share) {
    const step = (this.high - this.low) * share;
    this.show(this.low + step, this.high + step);
  }

  setAxis(axis) {
    const from = this.eventAt(this.low), to = this.eventAt(this.high), whole = this.isWhole;
    this.axis = axis;
    if (whole) this.show(0, this.whole);
    else this.show(this.position(from), this.position(to));
  }

  /** Chooses the place behind `event`, and moves it into sight. Only events that the page holds can be chosen. */
  choose(event) {
    const { first, end } = this.trace;
    if (end === first) return;
    this.place = Math.min(Math.max(event, first), end - 1) + 1;
    const at = this.position(this.place - 1);
    if (at < this.low || at >= this.high) {
      const half = (this.high - this.low) / 2;
      this.show(at - half, at + half);
    }
    this.change("place");
  }

  /** Shows events [from, to) with some room on both sides, and chooses the highest of them. */
  jump(from, to, envelope) {
    const a = this.position(from), b = this.position(Math.max(to - 1, from) + (this.axis === "events" ? 1 : 0));
    const room = Math.max((b - a) * 0.1, this.axis === "events" ? 10 : 50);
    this.show(a - room, b + room);
    const top = envelope.over(from, to).top;
    this.choose(top >= 0 ? top : from);
  }

  /** Microseconds behind the first event. */
  timeOf(event) {
    const { trace } = this;
    if (trace.has(event)) return trace.time[event - trace.first];
    const outline = trace.columns.outline_time;
    if (!outline) return trace.time.length ? trace.time[event < trace.first ? 0 : trace.time.length - 1] : 0;
    const at = Math.min(Math.max(event / trace.header.bucket, 0), outline.length - 1);
    const low = Math.floor(at), next = Math.min(low + 1, outline.length - 1);
    return outline[low] + (outline[next] - outline[low]) * (at - low);
  }

  /** Where `event` lies on the axis. */
  position(event) {
    return this.axis === "events" ? event : this.timeOf(event);
  }

  /** The event that is the latest at a position of the axis. */
  eventAt(position) {
    const last = this.trace.total - 1;
    if (this.axis === "events") return Math.min(Math.max(Math.floor(position), 0), last);
    let low = 0, high = last;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.timeOf(middle) <= position) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}
