// The events of the page as typed arrays: what happened, to which block, and how much was held behind each event.
// A *place* p is behind the events before p, before event p. Events have the numbers that they have in the trace.

import { hexadecimal } from "./format.js";

export const ACTIONS = [
  "alloc", "free requested", "free completed", "segment alloc", "segment free", "segment map", "segment unmap",
  "out of memory", "snapshot", "annotate", "other",
];
export const ALLOC = 0;
export const FREE_REQUESTED = 1;
export const FREE_COMPLETED = 2;
export const SEGMENT_ALLOC = 3;
export const SEGMENT_FREE = 4;
export const SEGMENT_MAP = 5;
export const SEGMENT_UNMAP = 6;
export const OOM = 7;
const FREED_AT_ONCE = 11;
const MIB = 1 << 20;

export class Trace {
  constructor(header, columns) {
    this.header = header;
    this.columns = columns;
    this.total = header.events;
    [this.first, this.end] = header.window;
    this.readBlocks();
    this.readEvents();
  }

  /** Blocks by number: first those older than the window, then in the order of their allocation. */
  readBlocks() {
    const { size, sizes, address, addresses, olderMade, olderPending, olderRounding } = this.columns;
    const count = size.length;
    this.blocks = count;
    this.older = olderMade.length;
    this.requested = new Float64Array(count);
    this.size = new Float64Array(count);
    this.address = new Float64Array(count);
    this.made = new Int32Array(count);
    this.freed = new Int32Array(count).fill(this.total);
    this.completed = new Int32Array(count).fill(this.total);
    for (let block = 0; block < count; block++) {
      this.requested[block] = sizes[size[block]];
      this.size[block] = Math.max(512, Math.ceil(this.requested[block] / 512) * 512);
      this.address[block] = addresses[address[block]];
    }
    for (let block = 0; block < this.older; block++) {
      this.size[block] = this.requested[block] + olderRounding[block];
      this.made[block] = olderMade[block];
      // Not the event right before the window: what waits then would look like freed at once.
      if (olderPending[block]) this.freed[block] = this.first - 2;
    }
  }

  readEvents() {
    const { action, freed, time } = this.columns;
    const count = this.end - this.first;
    this.kind = new Uint8Array(count);
    this.block = new Int32Array(count).fill(-1);
    this.time = new Float64Array(count);
    this.others = [];
    let event = 0, newest = this.older - 1, free = 0, now = this.header.timeFirst;
    for (let row = 0; row < action.length; row++) {
      now += time[row];
      const kind = action[row];
      this.time[event] = now;
      if (kind === ALLOC) {
        newest++;
        this.made[newest] = this.first + event;
        this.block[event] = newest;
      } else if (kind < SEGMENT_ALLOC || kind === FREED_AT_ONCE) {
        const back = freed[free++];
        const block = back < 0 ? -1 : newest - back;
        this.block[event] = block;
        event = this.readFree(kind, block, event, now);
      } else {
        this.kind[event] = kind;
        this.block[event] = this.others.length;
        this.others.push(this.first + event);
      }
      event++;
    }
    this.addUp();
  }

  /** Notes the end of `block`; gives the last event that belongs to this row. */
  readFree(kind, block, event, now) {
    const at = this.first + event;
    if (kind === FREE_COMPLETED) {
      this.kind[event] = FREE_COMPLETED;
      if (block >= 0) {
        this.completed[block] = at;
        if (this.freed[block] === this.total) this.freed[block] = at;
      }
      return event;
    }
    this.kind[event] = FREE_REQUESTED;
    if (block >= 0) this.freed[block] = at;
    if (kind === FREE_REQUESTED) return event;
    this.kind[event + 1] = FREE_COMPLETED;
    this.block[event + 1] = block;
    this.time[event + 1] = now;
    this.completed[block] = at + 1;
    return event + 1;
  }

  /** Allocated and reserved bytes behind each event. */
  addUp() {
    const count = this.kind.length;
    this.allocated = new Float64Array(count);
    this.reserved = new Float64Array(count);
    let { allocated, reserved } = this.header.begun;
    for (let event = 0; event < count; event++) {
      const kind = this.kind[event], block = this.block[event];
      if (kind === ALLOC) allocated += this.size[block];
      else if (kind <= FREE_COMPLETED) {
        if (block >= 0 && this.freed[block] === this.first + event) allocated -= this.size[block];
      } else if (kind === SEGMENT_ALLOC || kind === SEGMENT_MAP) reserved += this.columns.otherSize[block];
      else if (kind === SEGMENT_FREE || kind === SEGMENT_UNMAP) reserved -= this.columns.otherSize[block];
      this.allocated[event] = allocated;
      this.reserved[event] = reserved;
    }
  }

  has(event) {
    return event >= this.first && event < this.end;
  }

  allocatedAt(place) {
    return place > this.first ? this.allocated[Math.min(place, this.end) - 1 - this.first] : this.header.begun.allocated;
  }

  reservedAt(place) {
    return place > this.first ? this.reserved[Math.min(place, this.end) - 1 - this.first] : this.header.begun.reserved;
  }

  /** Everything there is to say about one event that the page holds. */
  event(number) {
    const i = number - this.first, kind = this.kind[i], at = this.block[i];
    const isBlock = kind <= FREE_COMPLETED;
    const known = at >= 0;
    const { otherSize, otherAddress, otherStack, otherStream, siteStack, siteCategory, siteStream, site } = this.columns;
    return {
      number,
      kind,
      action: ACTIONS[kind],
      time: this.time[i],
      block: isBlock && known ? at : -1,
      size: !known ? null : isBlock ? this.requested[at] : otherSize[at],
      address: !known ? null : isBlock ? this.address[at] : otherAddress[at],
      stack: !known ? -1 : isBlock ? siteStack[site[at]] : otherStack[at],
      stream: !known ? null : isBlock ? siteStream[site[at]] : otherStream[at],
      category: isBlock && known ? this.categoryName(siteCategory[site[at]]) : null,
    };
  }

  categoryName(index) {
    return index >= 0 && this.header.categories.length ? this.header.categories[index] : null;
  }

  categoryOf(block) {
    return this.categoryName(this.columns.siteCategory[this.columns.site[block]]);
  }

  stackOf(block) {
    return this.columns.siteStack[this.columns.site[block]];
  }

  streamOf(block) {
    return this.columns.siteStream[this.columns.site[block]];
  }

  /** Numbers of the blocks that occupy memory at `place`, held or pending. */
  activeAt(place) {
    const found = [];
    for (let block = 0; block < this.blocks; block++) {
      if (this.made[block] < place && this.completed[block] >= place) found.push(block);
    }
    return found;
  }

  isHeld(block, place) {
    return this.freed[block] >= place;
  }

  /** The memory map at `place`: segments by address, each with its parts (blocks and holes) in order. */
  mapAt(place) {
    const segments = this.segmentsAt(place);
    const blocks = this.activeAt(place).sort((a, b) => this.address[a] - this.address[b]);
    let next = 0;
    for (const segment of segments) {
      while (next < blocks.length && this.address[blocks[next]] < segment.address) next++;
      next = this.fill(segment, blocks, next, place);
    }
    return segments;
  }

  segmentsAt(place) {
    const c = this.columns, segments = [];
    for (let piece = 0; piece < c.pieceAddress.length; piece++) {
      if (!(c.pieceTaken[piece] < place && c.pieceReturned[piece] >= place)) continue;
      const made = {
        address: c.pieceAddress[piece],
        size: c.pieceSize[piece],
        stream: c.pieceStream[piece],
        pool: c.piecePool[piece],
        large: (c.pieceFlags[piece] & 1) === 1,
        expandable: (c.pieceFlags[piece] & 2) === 2,
        parts: [],
        held: 0,
        pending: 0,
        holes: 0,
        largestHole: 0,
      };
      const last = segments[segments.length - 1];
      const continues =
        last && last.expandable && made.expandable && last.address + last.size === made.address &&
        last.stream === made.stream && last.pool === made.pool;
      if (continues) last.size += made.size;
      else segments.push(made);
    }
    return segments;
  }

  /** Puts the blocks from number `next` on into `segment`; gives the first that lies behind it. */
  fill(segment, blocks, next, place) {
    const end = segment.address + segment.size;
    const hole = (from, to) => {
      segment.parts.push({ block: -1, address: from, size: to - from });
      segment.holes += to - from;
      segment.largestHole = Math.max(segment.largestHole, to - from);
    };
    let position = segment.address;
    for (; next < blocks.length && this.address[blocks[next]] < end; next++) {
      const block = blocks[next], address = this.address[block];
      const limit = next + 1 < blocks.length ? Math.min(this.address[blocks[next + 1]], end) : end;
      let size = Math.min(this.size[block], limit - address);
      // In the large pool every block is larger than 1 MiB: a smaller gap belongs to the block before it.
      if (segment.large && !segment.expandable && limit - address - size <= MIB) size = limit - address;
      if (position < address) hole(position, address);
      const held = this.isHeld(block, place);
      segment.parts.push({ block, address, size, held });
      if (held) segment.held += size;
      else segment.pending += size;
      position = address + size;
    }
    if (position < end) hole(position, end);
    return next;
  }

  poolName(pool) {
    if (pool < 0) return "default pool";
    const [first, second] = this.header.pools[pool];
    if (first === "0" && second === "0") return "default pool";
    return second === "0" ? `private pool of CUDA graph ${first}` : `private pool ${second} (MemPool)`;
  }

  streamName(stream) {
    return stream === 0 ? "default stream" : `stream ${hexadecimal(stream)}`;
  }
}
