// Sharp canvases in the page's colours, and the box that follows the pointer.

import { byId, element } from "./format.js";

/** The page's colours as canvas needs them; read again when the theme changes. */
export function palette() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const groups = [];
  for (let i = 0; i <= 8; i++) groups.push(colour(`--group-${i}`));
  return {
    groups,
    text: colour("--text"),
    quiet: colour("--quiet"),
    line: colour("--line"),
    panel: colour("--panel"),
    sunken: colour("--sunken"),
    accent: colour("--accent"),
    bad: colour("--bad"),
    hole: colour("--hole"),
    pending: colour("--pending"),
    reserved: colour("--reserved"),
    used: colour("--used"),
    own: colour("--own"),
    library: colour("--library"),
  };
}

/** Fits `canvas` to its place on the page and clears it: {g, width, height} in CSS pixels. */
export function cleared(canvas, height) {
  const width = Math.max(Math.floor(canvas.parentElement.clientWidth), 50);
  const scale = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const g = canvas.getContext("2d");
  g.setTransform(scale, 0, 0, scale, 0, 0);
  g.clearRect(0, 0, width, height);
  g.font = "12px system-ui, -apple-system, 'Segoe UI', sans-serif";
  return { g, width, height };
}

/** What `canvas` shows now, as a picture to draw again. */
export function copied(canvas) {
  const made = document.createElement("canvas");
  made.width = canvas.width;
  made.height = canvas.height;
  made.getContext("2d").drawImage(canvas, 0, 0);
  return made;
}

/** As much of `text` as fits into `room` pixels; nothing where that would say nothing. */
export function fitted(g, text, room) {
  if (room < 22) return "";
  if (g.measureText(text).width <= room) return text;
  const letter = g.measureText("n").width;
  const count = Math.floor(room / letter) - 1;
  return count < 3 ? "" : `${text.slice(0, count)}…`;
}

/** Diagonal lines, for what is there but of no use. */
export function hatch(g, colour) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const t = tile.getContext("2d");
  t.strokeStyle = colour;
  t.lineWidth = 1;
  t.beginPath();
  t.moveTo(-1, 7);
  t.lineTo(7, -1);
  t.stroke();
  return g.createPattern(tile, "repeat");
}

/** Shows `rows` ([name, value] or a text) in the box beside the pointer. */
export function showTip(pointer, rows) {
  const tip = byId("tip");
  tip.replaceChildren(
    ...rows.map((row) =>
      Array.isArray(row)
        ? element("div", { class: "row" }, element("span", { class: "name" }, row[0]), element("span", {}, row[1]))
        : element("div", { class: "line" }, row),
    ),
  );
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = pointer.clientX + 16 + box.width > innerWidth ? pointer.clientX - box.width - 12 : pointer.clientX + 16;
  const top = Math.min(pointer.clientY + 14, innerHeight - box.height - 6);
  tip.style.left = `${Math.max(left, 4)}px`;
  tip.style.top = `${Math.max(top, 4)}px`;
}

export function hideTip() {
  byId("tip").hidden = true;
}
