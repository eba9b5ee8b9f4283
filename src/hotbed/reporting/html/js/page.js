// Starts everything: unpacks the data, builds the parts, wires the controls, and says when the page is ready.

import { byId, bytes, duration, element, exactly, hexadecimal, shortPath, whole } from "./format.js";
import { unpack } from "./unpack.js";
import { Trace } from "./trace.js";
import { Envelope } from "./envelope.js";
import { Groups, schemesOf } from "./groups.js";
import { Stacks } from "./stacks.js";
import { hideTip, palette } from "./canvas.js";
import { View } from "./view.js";
import { Timeline, legend } from "./timeline.js";
import { Flame } from "./flame.js";
import { MemoryMap } from "./memorymap.js";
import { tables } from "./tables.js";
import { Difference } from "./difference.js";

class Page {
  constructor(header, columns) {
    this.trace = new Trace(header, columns);
    this.stacks = new Stacks(this.trace);
    this.envelope = new Envelope(this.trace);
    this.view = new View(this.trace);
    this.schemes = schemesOf(this.trace);
    this.scheme = this.schemes[0][0];
    this.groups = new Groups(this.trace, this.stacks, this.scheme);
    this.hasPending = this.trace.freed.some((freed, block) => freed + 1 < this.trace.completed[block]);
    this.hasStacks = columns.stackNode.some((node) => node > 0);
    this.wholeCard = false;
    this.colours = palette();
  }

  start() {
    if (this.trace.end > this.trace.first) {
      this.timeline = new Timeline(this);
      this.flame = new Flame(this);
      this.map = new MemoryMap(this);
      tables(this);
      this.view.listen((changes) => (changes.has("place") || !this.told) && this.tell());
    } else {
      for (const id of ["timeline-panel", "chosen-panel", "flame-panel", "map-panel"]) byId(id).hidden = true;
    }
    this.difference = new Difference(this);
    this.controls();
    this.theme();
    this.view.change("range");
  }

  /** The event, the groups and the levels behind it, as rows for the pointer's box or the panel. */
  eventRows(number, brief) {
    const { trace, stacks } = this, event = trace.event(number), place = number + 1;
    const step = trace.header.steps.find((s) => s.events && s.events[0] <= number && number < s.events[1]);
    const reserved = trace.reservedAt(place), allocated = trace.allocatedAt(place);
    const rows = [
      ["event", `${whole(number)}  ${event.action}`],
      ["time", duration(event.time)],
      ...(step ? [["in", step.phase === "train" ? `step ${step.number}` : step.phase]] : []),
      ["size", event.size === null ? "unknown" : exactly(event.size)],
      ...(event.address === null || brief ? [] : [["address", hexadecimal(event.address)]]),
      ...(event.stream === null || brief ? [] : [["stream", trace.streamName(event.stream)]]),
      ...(event.category ? [["category", event.category]] : []),
      ["allocated", exactly(allocated)],
      ["reserved", exactly(reserved)],
      ["reserved, not allocated", exactly(reserved - allocated)],
    ];
    if (!brief) return rows;
    const frames = stacks.frames(event.stack).slice(0, 6).map((frame) => stacks.frameText(frame));
    return [...rows, ...(event.stack >= 0 ? [stacks.lineText(stacks.line(event.stack)), ...frames.map((text) => `  ${text}`)] : [])];
  }

  /** Fills the panel about the chosen event. */
  tell() {
    this.told = true;
    const number = this.view.place - 1, event = this.trace.has(number) ? this.trace.event(number) : null;
    const rows = event ? this.eventRows(number, false) : [["event", "before the first one"]];
    byId("chosen").replaceChildren(...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
    const frames = event ? this.stacks.frames(event.stack) : [];
    const own = event ? this.stacks.line(event.stack) : -1;
    byId("chosen-stack").replaceChildren(...(frames.length
      ? frames.map((frame) => element("li", { class: frame === own ? "own" : null, title: this.stacks.place(frame) }, this.stacks.frameText(frame)))
      : [element("li", {}, "no stack recorded")]));
    byId("chosen-text").textContent = `Chosen: event ${whole(number)}`;
  }

  eventAtTime(time) {
    const { view } = this, axis = view.axis;
    view.axis = "time";
    const event = view.eventAt(time);
    view.axis = axis;
    return event;
  }

  setScheme(scheme) {
    this.scheme = scheme;
    this.groups = new Groups(this.trace, this.stacks, scheme);
    this.nameGroups();
    this.view.change("groups");
  }

  nameGroups() {
    byId("legend").replaceChildren(...legend(this));
    byId("flame-by").options[1].textContent = this.schemes.find(([name]) => name === this.scheme)[1];
  }

  controls() {
    const { view, trace } = this, peaks = trace.header.peaks;
    byId("scheme").replaceChildren(...this.schemes.map(([name, label]) => element("option", { value: name }, label)));
    byId("scheme").addEventListener("change", (event) => this.setScheme(event.target.value));
    this.nameGroups();
    byId("axis").addEventListener("change", (event) => view.setAxis(event.target.value));
    byId("whole-card").addEventListener("change", (event) => {
      this.wholeCard = event.target.checked;
      view.change("range");
    });
    const press = (id, action) => byId(id).addEventListener("click", action);
    press("zoom-in", () => view.zoomToChosen(0.5));
    press("zoom-out", () => view.zoomToChosen(2));
    press("zoom-whole", () => view.show(0, view.whole));
    press("to-allocated", () => view.choose(peaks.allocated.event));
    press("to-reserved", () => view.choose(peaks.reserved.event));
    press("before", () => view.choose(view.place - 2));
    press("after", () => view.choose(view.place));
    press("flame-up", () => this.flame.focus(this.flame.top.parent));
    for (const button of document.querySelectorAll("button[data-from]")) {
      button.addEventListener("click", () => {
        view.jump(Number(button.dataset.from), Number(button.dataset.to), this.envelope);
        byId("timeline-panel").scrollIntoView({ behavior: calm() ? "auto" : "smooth", block: "start" });
        byId("timeline").focus({ preventScroll: true });
      });
    }
    new ResizeObserver(() => view.change("size")).observe(document.querySelector("main"));
    addEventListener("scroll", hideTip, { passive: true });
  }

  /** Follows the system until someone presses the button, which goes around: system, light, dark. */
  theme() {
    const root = document.documentElement, button = byId("theme"), names = ["system", "light", "dark"];
    const set = (name) => {
      root.dataset.theme = name;
      button.textContent = `Theme: ${name}`;
      this.colours = palette();
      this.view.change("theme");
    };
    button.addEventListener("click", () => set(names[(names.indexOf(root.dataset.theme) + 1) % names.length]));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => set(root.dataset.theme));
    set("system");
  }
}

const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

async function begin() {
  const { header, columns } = await unpack(byId("data").textContent);
  byId("data").remove();
  new Page(header, columns).start();
  // Two frames later everything was drawn once.
  requestAnimationFrame(() => requestAnimationFrame(() => {
    document.body.dataset.readyMs = Math.round(performance.now());
    document.body.dataset.state = "ready";
  }));
}

begin().catch((error) => {
  document.body.dataset.state = "failed";
  byId("failed").hidden = false;
  byId("failed").textContent = `This page could not be shown: ${error.message}. It needs a browser of 2023 or later.`;
  throw error;
});
