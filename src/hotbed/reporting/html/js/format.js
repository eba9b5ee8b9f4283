// Numbers in words, and elements of the page. Everything that comes from a trace becomes text, never markup.

const UNITS = ["B", "KiB", "MiB", "GiB"];

/** Bytes in the largest binary unit that keeps a digit before the point, as hotbed's own texts write them. */
export function bytes(count) {
  if (count === null || count === undefined) return "unknown";
  let value = count;
  for (const unit of UNITS) {
    if (Math.abs(value) < 1024) return unit === "B" ? `${value.toFixed(0)} B` : `${tenths(value)} ${unit}`;
    value /= 1024;
  }
  return `${tenths(value)} TiB`;
}

/** One digit behind the point; what lies exactly between two goes to the even one, as Python has it. */
const tenths = (value) => ((Math.abs(value) * 4) % 4 === 1 ? value - 0.01 * Math.sign(value) : value).toFixed(1);

/** A whole number with commas. Not by the locale, whose tables take 90 ms to load. */
export const whole = (number) => String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ",");

/** Bytes both ways, where someone may want to calculate with them. */
export const exactly = (count) => `${bytes(count)} (${whole(count)} B)`;

export const percent = (part, of) => (of > 0 ? `${((100 * part) / of).toFixed(1)} %` : "");

/** Microseconds in words. */
export function duration(us) {
  if (us < 1000) return `${Math.round(us)} µs`;
  if (us < 1e6) return `${(us / 1e3).toFixed(us < 1e4 ? 2 : 1)} ms`;
  if (us < 6e7) return `${(us / 1e6).toFixed(2)} s`;
  return `${Math.floor(us / 6e7)} min ${Math.round((us % 6e7) / 1e6)} s`;
}

export const hexadecimal = (address) => `0x${address.toString(16)}`;

/** The end of a path, which says more than its beginning. */
export function shortPath(path, parts = 2) {
  const pieces = path.split("/");
  return pieces.length > parts ? pieces.slice(-parts).join("/") : path;
}

/** An element with attributes and children; strings become text. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export const byId = (id) => document.getElementById(id);
