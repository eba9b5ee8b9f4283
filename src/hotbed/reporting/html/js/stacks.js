// Call stacks: their text, the program's own line of each, and the flame graph of what is held at a place.

import { shortPath } from "./format.js";

export class Stacks {
  constructor(trace) {
    this.trace = trace;
    this.texts = trace.header.texts;
    this.c = trace.columns;
  }

  /** "name  folder/file.py:12" of a frame. */
  frameText(frame) {
    const { frameFile, frameLine, frameName } = this.c;
    const file = this.texts[frameFile[frame]], name = this.texts[frameName[frame]];
    return `${name}  ${file ? `${shortPath(file)}:${frameLine[frame]}` : ""}`.trim();
  }

  /** "file.py:12" of a frame, with the whole path. */
  place(frame) {
    return `${this.texts[this.c.frameFile[frame]]}:${this.c.frameLine[frame]}`;
  }

  /** Frames of a stack, innermost first. */
  frames(stack) {
    const found = [];
    for (let node = stack < 0 ? 0 : this.c.stackNode[stack]; node > 0; node = this.c.nodeParent[node - 1]) {
      found.push(this.c.nodeFrame[node - 1]);
    }
    return found;
  }

  /** Number of the frame that is the program's own line of a stack, -1 where there is none. */
  line(stack) {
    return stack < 0 ? -1 : this.c.stackLine[stack];
  }

  lineText(line) {
    return line < 0 ? "no stack recorded" : `${shortPath(this.place(line))} ${this.texts[this.c.frameName[line]]}`;
  }

  /** The flame graph of what is held at `place`: nodes {label, frame, bytes, blocks, depth, children, group}, the root. */
  flame(place, groups, byGroup) {
    const root = node("everything held", -1, 0, -1);
    const trace = this.trace, known = new Map();
    for (let block = 0; block < trace.blocks; block++) {
      if (!(trace.made[block] < place && trace.freed[block] >= place)) continue;
      const group = groups.of[block];
      const top = byGroup ? child(root, group, groups.names[group], -1, group) : root;
      const stack = trace.stackOf(block);
      const key = byGroup ? group * 0x4000000 + stack + 1 : stack + 1;
      let path = known.get(key);
      if (!path) {
        path = this.path(top, stack, byGroup ? group : -1);
        known.set(key, path);
      }
      for (const step of path) {
        step.bytes += trace.size[block];
        step.blocks += 1;
      }
      if (byGroup) add(root, trace.size[block]);
    }
    sort(root);
    return root;
  }

  path(top, stack, group) {
    const path = [top];
    const frames = this.frames(stack).reverse();
    if (!frames.length && (group < 0 || this.c.nodeFrame.length)) path.push(child(top, -1, "no stack recorded", -1, group));
    for (const frame of frames) path.push(child(path[path.length - 1], frame, this.frameText(frame), frame, group));
    return path;
  }
}

const node = (label, frame, depth, group) => ({
  label, frame, depth, group, bytes: 0, blocks: 0, parent: null, children: [], byKey: new Map(),
});

function child(parent, key, label, frame, group) {
  let found = parent.byKey.get(key);
  if (!found) {
    found = node(label, frame, parent.depth + 1, group);
    found.parent = parent;
    parent.byKey.set(key, found);
    parent.children.push(found);
  }
  return found;
}

function add(at, bytes) {
  at.bytes += bytes;
  at.blocks += 1;
}

/** Largest first. With a stack of its own: recorded stacks may be deeper than the interpreter's. */
function sort(root) {
  const open = [root];
  while (open.length) {
    const at = open.pop();
    at.children.sort((a, b) => b.bytes - a.bytes);
    open.push(...at.children);
  }
}
