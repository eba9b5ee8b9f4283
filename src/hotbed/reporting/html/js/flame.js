// The flame graph of what is held at the chosen place: outermost frame on top, width is bytes.

import { bytes, byId, element, exactly, percent, whole } from "./format.js";
import { cleared, fitted, hideTip, showTip } from "./canvas.js";

const ROW = 20;
const NARROWEST = 0.6;

export class Flame {
  constructor(page) {
    this.page = page;
    this.canvas = byId("flame");
    this.mode = page.hasStacks ? "stack" : "group";
    byId("flame-by").value = this.mode;
    for (const id of ["flame-by", "flame-search"]) byId(id).disabled = !page.hasStacks;
    this.needle = "";
    byId("flame-key").hidden = !page.hasStacks;
    page.view.listen((changes) => this.update(changes));
    byId("flame-by").addEventListener("change", (event) => this.setMode(event.target.value));
    byId("flame-search").addEventListener("input", (event) => this.search(event.target.value));
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", hideTip);
    this.canvas.addEventListener("click", (event) => this.focus(this.at(event.offsetX, event.offsetY)));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  setMode(mode) {
    this.mode = mode;
    this.build();
  }

  update(changes) {
    if (changes.has("place") || changes.has("groups") || !this.root) this.build();
    else if (changes.has("theme") || changes.has("size")) this.draw();
  }

  /** Builds the graph anew and stays at the node that was looked at, where it still exists. */
  build() {
    const path = [];
    for (let at = this.top; at && at.parent; at = at.parent) path.unshift(at.label);
    this.root = this.page.stacks.flame(this.page.view.place, this.page.groups, this.mode === "group");
    this.top = this.root;
    for (const label of path) this.top = this.top.children.find((node) => node.label === label) ?? this.top;
    this.chosen = this.top;
    this.search(this.needle);
  }

  search(needle) {
    this.needle = needle.trim().toLowerCase();
    this.draw();
    byId("flame-found").textContent = this.needle ? this.foundText() : "";
  }

  matches(node) {
    return this.needle !== "" && node.label.toLowerCase().includes(this.needle);
  }

  /** What the matching nodes hold; a match below a match is not counted again. */
  foundText() {
    let held = 0;
    const open = [this.root];
    while (open.length) {
      const node = open.pop();
      if (this.matches(node)) held += node.bytes;
      else open.push(...node.children);
    }
    return `matches hold ${bytes(held)}, ${percent(held, this.root.bytes) || "nothing"}`;
  }

  /** The visible nodes as boxes, from the root down to where they get too narrow to see. */
  layout(width) {
    const boxes = [], above = [];
    for (let node = this.top.parent; node; node = node.parent) above.unshift(node);
    above.forEach((node, row) => boxes.push({ node, x: 0, y: row * ROW, width, above: true }));
    const open = [[this.top, 0, width, above.length]];
    while (open.length) {
      const [node, x, room, row] = open.pop();
      boxes.push({ node, x, y: row * ROW, width: room, above: false });
      let from = x;
      for (const child of node.children) {
        const share = node.bytes ? (room * child.bytes) / node.bytes : 0;
        if (share >= NARROWEST) open.push([child, from, share, row + 1]);
        from += share;
      }
    }
    return boxes;
  }

  draw() {
    const width = Math.max(Math.floor(this.canvas.parentElement.clientWidth), 50);
    this.boxes = this.layout(width);
    const height = Math.max(...this.boxes.map((box) => box.y)) + ROW;
    const { g } = cleared(this.canvas, height);
    for (const box of this.boxes) this.drawBox(g, box);
    const name = this.top === this.root ? "everything held" : this.top.label;
    byId("flame-at").textContent = `${name}: ${exactly(this.top.bytes)} in ${whole(this.top.blocks)} blocks`;
    byId("flame-up").disabled = this.top === this.root;
  }

  drawBox(g, { node, x, y, width, above }) {
    const { colours } = this.page;
    g.globalAlpha = above ? 0.5 : this.needle && !this.matches(node) ? 0.3 : 1;
    g.fillStyle = this.colour(node);
    g.fillRect(x, y, Math.max(width - 0.6, 0.4), ROW - 1);
    g.globalAlpha = above ? 0.75 : 1;
    if (width > 28) {
      g.fillStyle = node.parent ? this.textColour(node) : colours.text;
      g.textAlign = "left";
      g.textBaseline = "middle";
      g.fillText(fitted(g, `${node.label}  ${bytes(node.bytes)}`, width - 10), x + 5, y + ROW / 2);
    }
    g.globalAlpha = 1;
    if (node === this.chosen && node !== this.root) {
      g.strokeStyle = colours.text;
      g.lineWidth = 2;
      g.strokeRect(x + 1, y + 1, Math.max(width - 2.6, 1), ROW - 3);
    }
  }

  colour(node) {
    const { colours, groups, trace } = this.page;
    if (!node.parent) return colours.line;
    if (this.mode === "group" && node.group >= 0) return colours.groups[groups.colours[node.group]];
    return node.frame >= 0 && trace.columns.frameOwn[node.frame] ? colours.own : colours.library;
  }

  textColour(node) {
    return this.mode === "group" && node.group >= 0 ? "#000" : this.page.colours.text;
  }

  at(x, y) {
    return this.boxes.find((box) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + ROW)?.node ?? null;
  }

  /** Makes `node` as wide as the chart. */
  focus(node) {
    if (!node) return;
    this.top = this.chosen = node;
    this.draw();
    this.tell(node);
  }

  hover(pointer) {
    const node = this.at(pointer.offsetX, pointer.offsetY);
    if (!node) return hideTip();
    showTip(pointer, this.rows(node));
  }

  rows(node) {
    return [
      node.label,
      ...(node.frame >= 0 ? [this.page.stacks.place(node.frame)] : []),
      ["holds", exactly(node.bytes)],
      ["of everything", percent(node.bytes, this.root.bytes)],
      ["blocks", whole(node.blocks)],
    ];
  }

  key(event) {
    const node = this.chosen, siblings = node.parent?.children ?? [node], place = siblings.indexOf(node);
    const next = {
      ArrowDown: () => node.children[0],
      ArrowUp: () => node.parent,
      ArrowLeft: () => siblings[place - 1],
      ArrowRight: () => siblings[place + 1],
      Home: () => this.root,
    }[event.key]?.();
    if (event.key === "Enter" || event.key === " ") this.focus(node);
    else if (event.key === "Escape" || event.key === "Backspace") this.focus(this.root);
    else if (next) {
      this.chosen = next;
      if (!this.boxes.some((box) => box.node === next)) this.top = next.parent ?? next;
      this.draw();
      this.tell(next);
    } else if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
  }

  tell(node) {
    byId("flame-told").replaceChildren(element("span", {}, `${node.label}: ${exactly(node.bytes)}, ${percent(node.bytes, this.root.bytes)}`));
  }
}
