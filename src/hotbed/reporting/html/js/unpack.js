// Reads what reporting/html/packing.py wrote: base64 of deflate of a JSON header and columns of numbers.

/** {header, columns}: columns by name, as Int32Array, or Float64Array where numbers are larger. */
export async function unpack(text) {
  const raw = atob(text.trim());
  const packed = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) packed[i] = raw.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const all = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(all.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(all.subarray(4, 4 + length)));
  const columns = {};
  let at = 4 + length;
  for (const [name, count, width] of header.columns) {
    columns[name] = joined(all, at, count, width);
    at += count * width;
  }
  return { header, columns };
}

/** One column: its bytes lie in planes, the lowest first, and every number was stored plus one. */
function joined(all, start, count, width) {
  const column = width < 4 ? new Int32Array(count) : new Float64Array(count);
  let weight = 1;
  for (let plane = 0; plane < width; plane++, weight *= 256) {
    const from = start + plane * count;
    for (let i = 0; i < count; i++) column[i] += all[from + i] * weight;
  }
  for (let i = 0; i < count; i++) column[i] -= 1;
  return column;
}
