// Spans of many lanes on one canvas: a timeline, or the call tree of a step.
//
// data: Uint8Array = [u32 length of header][header, JSON][pad to 8]
//   [f64 start n][f64 length n][i64 id n][u32 name n][u16 lane n][u8 colour n][u8 flags n]
// Spans come sorted by lane and start. Text is drawn or set as textContent: never as markup.
const KEPT = new WeakMap();
const RULER = 24, ROW = 18;
const IN_SLICE = 1, MARK = 2, EVIDENCE = 4;

function decode(bytes) {
  const whole = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const length = new DataView(whole).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(whole, 4, length)));
  const n = head.n;
  let at = (4 + length + 7) & ~7;
  const take = (kind, count) => {
    const part = new kind(whole, at, count);
    at += count * kind.BYTES_PER_ELEMENT;
    return part;
  };
  const d = { head, n, start: take(Float64Array, n), length: take(Float64Array, n) };
  d.id = take(BigInt64Array, n);
  d.name = take(Uint32Array, n);
  d.lane = take(Uint16Array, n);
  d.color = take(Uint8Array, n);
  d.flags = take(Uint8Array, n);
  d.first = new Uint32Array(head.lanes.length + 1);
  for (let i = 0; i < n; i++) d.first[d.lane[i] + 1]++;
  for (let l = 0; l < head.lanes.length; l++) d.first[l + 1] += d.first[l];
  return d;
}

function digest(bytes) {
  let h = 2166136261;
  const every = Math.max(1, (bytes.length / 65536) | 0);
  for (let i = 0; i < bytes.length; i += every) h = Math.imul(h ^ bytes[i], 16777619);
  return `${bytes.length}:${h >>> 0}`;
}

function time(us) {
  const size = Math.abs(us);
  if (size >= 1e6) return `${(us / 1e6).toFixed(3)} s`;
  if (size >= 1e3) return `${(us / 1e3).toFixed(size >= 1e5 ? 0 : 2)} ms`;
  return size >= 1 ? `${us.toFixed(1)} µs` : `${(us * 1e3).toFixed(0)} ns`;
}

function lower(values, low, high, wanted) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

export default function ({ data, parentElement, setStateValue }) {
  let view = KEPT.get(parentElement);
  if (!view) KEPT.set(parentElement, (view = new Timeline(parentElement)));
  view.tell = setStateValue;
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(data);
  const seen = digest(bytes);
  if (seen !== view.seen) view.show(decode(bytes), seen);
  view.draw();
}

class Timeline {
  constructor(parent) {
    this.parent = parent;
    this.root = parent.querySelector(".tl");
    this.canvas = this.root.querySelector("canvas");
    this.tip = this.root.querySelector(".tip");
    this.live = this.root.querySelector(".live");
    this.cx = this.canvas.getContext("2d", { alpha: false });
    this.at = -1;
    this.over = -1;
    this.top = 0;
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.root);
    const watch = new MutationObserver(() => this.draw());
    watch.observe(document.documentElement, { attributes: true });
    watch.observe(document.body, { attributes: true });
  }

  show(d, seen) {
    const same = this.d && this.d.head.key === d.head.key;
    this.d = d;
    this.seen = seen;
    if (!same) {
      this.a = d.head.from;
      this.b = d.head.to;
      this.top = 0;
    }
    this.at = d.head.selected ? d.id.indexOf(BigInt(d.head.selected)) : -1;
    if (!same && this.at >= 0) this.bring(this.at);
    this.root.dataset.spans = d.n;
  }

  resize() {
    const box = this.root.getBoundingClientRect();
    this.ratio = window.devicePixelRatio || 1;
    this.w = Math.max(60, box.width);
    this.h = box.height;
    this.canvas.width = this.w * this.ratio;
    this.canvas.height = this.h * this.ratio;
    this.canvas.style.width = `${this.w}px`;
    this.canvas.style.height = `${this.h}px`;
    this.draw();
  }

  get gutter() { return Math.min(this.d.head.gutter, this.w * 0.4); }
  x(t) { return this.gutter + ((t - this.a) / (this.b - this.a)) * (this.w - this.gutter); }
  t(x) { return this.a + ((x - this.gutter) / (this.w - this.gutter)) * (this.b - this.a); }
  y(lane) { return RULER + lane * ROW - this.top; }

  draw() {
    if (this.waits || !this.d || !this.w) return;
    this.waits = true;
    requestAnimationFrame(() => { this.waits = false; this.render(); });
  }

  css(name, other) {
    return getComputedStyle(this.root).getPropertyValue(name).trim() || other;
  }

  render() {
    const { cx, d } = this;
    const look = {
      paper: this.css("--st-background-color", "#fff"), ink: this.css("--st-text-color", "#222"),
      line: this.css("--st-border-color", "#ddd"), band: this.css("--st-secondary-background-color", "#f4f4f4"),
      accent: this.css("--st-primary-color", "#06c"), font: `11px ${this.css("--st-font", "sans-serif")}`,
    };
    const lanes = d.head.lanes;
    this.top = Math.min(Math.max(0, this.top), Math.max(0, lanes.length * ROW - (this.h - RULER)));
    const from = Math.floor(this.top / ROW);
    const to = Math.min(lanes.length, Math.ceil((this.top + this.h - RULER) / ROW));
    cx.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    cx.fillStyle = look.paper;
    cx.fillRect(0, 0, this.w, this.h);
    cx.font = look.font;
    cx.textBaseline = "middle";
    for (let l = from; l < to; l++)
      if (lanes[l].band) { cx.fillStyle = look.band; cx.fillRect(0, this.y(l), this.w, ROW); }
    cx.save();
    cx.beginPath();
    cx.rect(this.gutter, RULER, this.w - this.gutter, this.h - RULER);
    cx.clip();
    this.zones(look);
    this.spans(from, to, look);
    for (const [i, wide] of [[this.over, 1], [this.at, 2]]) if (i >= 0) this.outline(i, look.ink, wide);
    cx.restore();
    this.labels(from, to, look);
    this.ruler(look);
    if (this.focused) {
      cx.strokeStyle = look.accent;
      cx.lineWidth = 3;
      cx.strokeRect(1.5, 1.5, this.w - 3, this.h - 3);
    }
    this.root.dataset.ready = "1";
  }

  zones(look) {
    for (const zone of this.d.head.zones || []) {
      const x = this.x(zone.from);
      this.cx.globalAlpha = 0.09;
      this.cx.fillStyle = look.accent;
      this.cx.fillRect(x, RULER, this.x(zone.to) - x, this.h);
      this.cx.globalAlpha = 1;
    }
  }

  // A frame costs pixels times lanes: what is under a pixel is one mark, then the next pixel is looked for.
  spans(from, to, look) {
    const { cx, d } = this;
    const colors = d.head.colors, perUs = (this.w - this.gutter) / (this.b - this.a);
    const dims = d.head.dim, said = [], hot = [];
    for (let l = from; l < to; l++) {
      const y = this.y(l), end = d.first[l + 1];
      let i = lower(d.start, d.first[l], end, this.a);
      while (i > d.first[l] && d.start[i - 1] + d.length[i - 1] > this.a) i--;
      while (i < end && d.start[i] <= this.b) {
        const x = this.gutter + (d.start[i] - this.a) * perUs, w = d.length[i] * perUs;
        cx.fillStyle = colors[d.color[i]];
        cx.globalAlpha = dims && !(d.flags[i] & (IN_SLICE | EVIDENCE)) ? 0.28 : 1;
        if (d.flags[i] & MARK) {
          cx.beginPath();
          cx.moveTo(x, y + 3); cx.lineTo(x + 5, y + ROW / 2); cx.lineTo(x, y + ROW - 3); cx.lineTo(x - 5, y + ROW / 2);
          cx.fill();
          i++;
          continue;
        }
        cx.fillRect(x, y + 1, Math.max(w - (w > 4 ? 1 : 0), 1), ROW - 2);
        if (d.flags[i] & EVIDENCE) hot.push(i);
        if (w > 30) said.push(i);
        if (w >= 1) { i++; continue; }
        const next = this.a + (Math.floor(x - this.gutter) + 1) / perUs;
        i = Math.max(i + 1, lower(d.start, i + 1, end, next));
      }
    }
    for (const i of said) this.name(i, colors[d.color[i]], dims && !(d.flags[i] & (IN_SLICE | EVIDENCE)), look);
    cx.globalAlpha = 1;
    for (const i of hot) this.outline(i, d.head.hot, 2);
  }

  name(i, color, faint, look) {
    const { cx, d } = this;
    const x = Math.max(this.x(d.start[i]), this.gutter) + 4;
    const room = Math.min(this.x(d.start[i] + d.length[i]), this.w) - x - 3;
    const most = Math.floor(room / 6);
    if (most < 3) return;
    const text = d.head.names[d.name[i]];
    cx.globalAlpha = faint ? 0.75 : 1;
    cx.fillStyle = faint ? look.ink : d.head.inks[d.color[i]];
    cx.fillText(text.length > most ? `${text.slice(0, most - 1)}…` : text, x, this.y(d.lane[i]) + ROW / 2 + 0.5);
  }

  outline(i, color, wide) {
    const { d } = this;
    if (i >= d.n) return;
    this.cx.strokeStyle = color;
    this.cx.lineWidth = wide;
    this.cx.strokeRect(this.x(d.start[i]) - 0.5, this.y(d.lane[i]) + 0.5,
      Math.max(3, this.x(d.start[i] + d.length[i]) - this.x(d.start[i])), ROW - 1);
  }

  labels(from, to, look) {
    const { cx, d } = this;
    cx.fillStyle = look.paper;
    cx.fillRect(0, RULER, this.gutter, this.h);
    for (let l = from; l < to; l++) {
      const lane = d.head.lanes[l], y = this.y(l);
      if (lane.band) { cx.fillStyle = look.band; cx.fillRect(0, y, this.gutter, ROW); }
      if (lane.rule) { cx.fillStyle = look.line; cx.fillRect(0, y, this.w, 1); }
      if (!lane.label) continue;
      cx.font = lane.strong ? `600 ${look.font}` : look.font;
      cx.fillStyle = look.ink;
      const most = Math.floor((this.gutter - 12) / 6);
      cx.fillText(lane.label.length > most ? `${lane.label.slice(0, most - 1)}…` : lane.label, 8, y + ROW / 2 + 0.5);
    }
    cx.font = look.font;
  }

  ruler(look) {
    const { cx } = this, zero = this.d.head.zero;
    cx.fillStyle = look.paper;
    cx.fillRect(0, 0, this.w, RULER);
    cx.fillStyle = look.line;
    cx.fillRect(0, RULER - 1, this.w, 1);
    cx.fillRect(this.gutter - 1, 0, 1, this.h);
    cx.fillStyle = look.ink;
    cx.fillText(time(this.b - this.a), 8, RULER / 2);
    const rough = (this.b - this.a) / Math.max(1, (this.w - this.gutter) / 110);
    const ten = 10 ** Math.floor(Math.log10(rough));
    const every = [1, 2, 5, 10].map((m) => m * ten).find((s) => s >= rough);
    for (let t = Math.ceil((this.a - zero) / every) * every; zero + t < this.b; t += every) {
      const x = this.x(zero + t);
      cx.fillRect(x, RULER - 6, 1, 6);
      cx.fillText(time(t), x + 4, RULER / 2);
    }
  }

  pick(x, y) {
    const { d } = this;
    const lane = Math.floor((y - RULER + this.top) / ROW);
    if (x < this.gutter || y < RULER || lane < 0 || lane >= d.head.lanes.length) return -1;
    const t = this.t(x), pixel = (this.b - this.a) / (this.w - this.gutter);
    let i = lower(d.start, d.first[lane], d.first[lane + 1], t + 5 * pixel) - 1;
    for (let tries = 0; i >= d.first[lane] && tries < 64; i--, tries++)
      if (d.start[i] + Math.max(d.length[i], 5 * pixel) >= t) return i;
    return -1;
  }

  told(i) {
    const { d } = this;
    const long = d.flags[i] & MARK ? "" : `, ${time(d.length[i])} long`;
    const lane = d.head.lanes[d.lane[i]];
    return [d.head.names[d.name[i]], `${lane.told || lane.label || ""}${long}, at ${time(d.start[i] - d.head.zero)}`];
  }

  choose(i, wait = 0) {
    this.at = i;
    this.live.textContent = i < 0 ? "nothing chosen" : this.told(i).join(", ");
    this.draw();
    clearTimeout(this.choosing);
    this.choosing = setTimeout(() => this.tell("selected", i < 0 ? null : String(this.d.id[i])), wait);
  }

  bring(i) {
    const { d } = this, wide = this.b - this.a;
    if (d.start[i] > this.b || d.start[i] + d.length[i] < this.a) {
      this.a = d.start[i] + d.length[i] / 2 - wide / 2;
      this.b = this.a + wide;
    }
    const y = d.lane[i] * ROW;
    if (y < this.top || y + ROW > this.top + (this.h || 300) - RULER) this.top = y - 3 * ROW;
  }

  look(a, b) {
    const { from, to } = this.d.head, whole = to - from;
    const wide = Math.min(Math.max(b - a, 0.05), whole * 1.02);
    const start = Math.min(Math.max(a, from - whole * 0.01), to + whole * 0.01 - wide);
    this.a = start;
    this.b = start + wide;
    this.draw();
    clearTimeout(this.looking);
    if (this.d.head.asks) this.looking = setTimeout(() => this.tell("view", [this.a, this.b]), 350);
  }

  zoom(factor, x) {
    const t = x === undefined ? (this.a + this.b) / 2 : this.t(x);
    this.look(t - (t - this.a) * factor, t + (this.b - t) * factor);
  }

  fit(i) {
    const room = Math.max(this.d.length[i] * 0.4, 0.05);
    this.look(this.d.start[i] - room, this.d.start[i] + this.d.length[i] + room);
  }

  step(key) {
    const { d } = this;
    if (!d.n) return;
    let i = this.at;
    if (i < 0) i = lower(d.start, d.first[0], d.first[1], this.a);
    else if (key === "ArrowRight") i = Math.min(d.first[d.lane[i] + 1] - 1, i + 1);
    else if (key === "ArrowLeft") i = Math.max(d.first[d.lane[i]], i - 1);
    else {
      const by = key === "ArrowDown" ? 1 : -1, middle = d.start[i] + d.length[i] / 2;
      let l = d.lane[i] + by;
      while (l >= 0 && l < d.head.lanes.length && d.first[l] === d.first[l + 1]) l += by;
      if (l < 0 || l >= d.head.lanes.length) return;
      i = Math.min(d.first[l + 1] - 1, Math.max(d.first[l], lower(d.start, d.first[l], d.first[l + 1], middle) - 1));
    }
    i = Math.min(Math.max(i, 0), d.n - 1);
    this.bring(i);
    this.choose(i, 400);
  }

  keys(e) {
    const wide = this.b - this.a, { from, to } = this.d.head;
    const does = {
      w: () => this.zoom(0.7), "+": () => this.zoom(0.7), s: () => this.zoom(1.43), "-": () => this.zoom(1.43),
      a: () => this.look(this.a - wide * 0.15, this.b - wide * 0.15),
      d: () => this.look(this.a + wide * 0.15, this.b + wide * 0.15),
      0: () => this.look(from, to), Home: () => this.look(from, to), Escape: () => this.choose(-1),
      Enter: () => this.at >= 0 && this.fit(this.at), f: () => this.at >= 0 && this.fit(this.at),
      PageDown: () => { this.top += this.h / 2; this.draw(); }, PageUp: () => { this.top -= this.h / 2; this.draw(); },
    }[e.key] || (e.key.startsWith("Arrow") && (() => this.step(e.key)));
    if (!does || e.ctrlKey || e.metaKey || e.altKey) return;
    does();
    e.preventDefault();
    e.stopPropagation();
  }

  listen() {
    const c = this.canvas;
    let drag = null;
    const place = (e) => { const box = c.getBoundingClientRect(); return [e.clientX - box.left, e.clientY - box.top]; };
    c.addEventListener("keydown", (e) => this.keys(e));
    c.addEventListener("focus", () => { this.focused = true; this.draw(); });
    c.addEventListener("blur", () => { this.focused = false; this.draw(); });
    c.addEventListener("wheel", (e) => {
      if (!this.focused && !e.ctrlKey && !e.shiftKey) return; // the page scrolls until this is clicked
      e.preventDefault();
      if (e.shiftKey) { this.top += e.deltaY || e.deltaX; this.draw(); } else this.zoom(Math.exp(e.deltaY * 0.002), place(e)[0]);
    }, { passive: false });
    c.addEventListener("pointerdown", (e) => {
      c.focus();
      c.setPointerCapture(e.pointerId);
      drag = { x: e.clientX, y: e.clientY, a: this.a, b: this.b, top: this.top, far: false };
    });
    c.addEventListener("pointermove", (e) => {
      if (drag) {
        const dx = e.clientX - drag.x, dy = e.clientY - drag.y;
        drag.far ||= Math.abs(dx) + Math.abs(dy) > 4;
        if (!drag.far) return;
        const by = (-dx / (this.w - this.gutter)) * (drag.b - drag.a);
        this.top = drag.top - dy;
        this.look(drag.a + by, drag.b + by);
      } else this.hover(this.pick(...place(e)), ...place(e));
    });
    c.addEventListener("pointerup", (e) => {
      if (drag && !drag.far) this.choose(this.pick(...place(e)));
      drag = null;
    });
    c.addEventListener("pointerleave", () => this.hover(-1));
    c.addEventListener("dblclick", (e) => { const i = this.pick(...place(e)); if (i >= 0) this.fit(i); });
  }

  hover(i, x, y) {
    if (i !== this.over) { this.over = i; this.draw(); }
    this.tip.hidden = i < 0;
    if (i < 0) return;
    const [name, more] = this.told(i);
    this.tip.textContent = `${name}\n${more}`;
    this.tip.style.left = `${Math.max(4, Math.min(x + 14, this.w - 300))}px`;
    this.tip.style.top = `${y + 60 > this.h ? y - 52 : y + 16}px`;
  }
}
