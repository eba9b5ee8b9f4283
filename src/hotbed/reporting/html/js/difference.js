// Two runs, or one run under two settings, in one chart and one table.

import { byId, bytes, element } from "./format.js";
import { cleared } from "./canvas.js";
import { Table } from "./tables.js";

const HEIGHT = 220, LEFT = 74, TOP = 10, BOTTOM = 10, RIGHT = 14;

export class Difference {
  constructor(page) {
    this.page = page;
    this.about = page.trace.header.difference;
    if (!this.about) return;
    byId("difference-panel").hidden = false;
    this.canvas = byId("difference");
    this.tables();
    page.view.listen((changes) => (changes.has("theme") || changes.has("size") || !this.drawn) && this.draw());
  }

  tables() {
    const [a, b] = this.about.sides.map((side) => side.name);
    byId("difference-what").textContent = `${a}, against ${b}. ${this.about.note}`;
    const size = (name, field) => ({ name, number: true, text: (row) => bytes(row[field]), sort: (row) => row[field] });
    const columns = (name) => [
      { name, text: (row) => row.name },
      size(a, "a"),
      size(b, "b"),
      { name: "difference", number: true, text: (row) => signed(row.b - row.a), sort: (row) => Math.abs(row.b - row.a) },
    ];
    const rows = (...kinds) => this.about.rows.filter((row) => kinds.includes(row.kind));
    const shown = [
      ["table-totals", "Peaks, and free memory at the reserved peak", "figure", rows("peak", "free")],
      ["table-categories", "Held at the peaks, by category", "category", rows("category")],
      ["table-lines-differ", "Held at the peaks, by line", "line", rows("line")],
    ];
    for (const [id, caption, name, found] of shown) {
      byId(id).hidden = !found.length;
      new Table(byId(id), caption, columns(name)).show(found);
    }
    byId("difference-key").replaceChildren(...this.about.sides.map((side, at) => element("li", {}, element("span", { class: `swatch side${at}`, "aria-hidden": "true" }), side.name)));
  }

  draw() {
    this.drawn = true;
    const { g, width, height } = cleared(this.canvas, HEIGHT), { colours } = this.page;
    const box = { left: LEFT, width: width - LEFT - RIGHT, top: TOP, height: height - TOP - BOTTOM };
    const top = 1.06 * Math.max(1, ...this.about.sides.flatMap((side) => [...side.reserved, ...side.allocated]));
    const y = (value) => box.top + box.height * (1 - value / top);
    g.textAlign = "right";
    g.textBaseline = "middle";
    for (let i = 0; i <= 4; i++) {
      const value = (top / 1.06 / 4) * i;
      g.fillStyle = colours.quiet;
      g.fillText(bytes(value), LEFT - 8, y(value));
      g.fillStyle = colours.line;
      g.fillRect(LEFT, Math.round(y(value)), box.width, 1);
    }
    this.about.sides.forEach((side, at) => {
      g.strokeStyle = at ? colours.groups[6] : colours.groups[0];
      for (const [curve, dash] of [[side.allocated, [2, 3]], [side.reserved, []]]) this.curve(g, side, curve, dash, box, y);
    });
    g.setLineDash([]);
  }

  curve(g, side, values, dash, box, y) {
    g.setLineDash(dash);
    g.lineWidth = dash.length ? 1 : 2;
    g.beginPath();
    values.forEach((value, i) => {
      const x = box.left + side.at[i] * box.width;
      if (i) g.lineTo(x, y(values[i - 1]));
      g.lineTo(x, y(value));
    });
    g.stroke();
  }
}

const signed = (count) => (count > 0 ? `+${bytes(count)}` : count < 0 ? `−${bytes(-count)}` : "same");
