"use strict";
// Messages against time, in a report and in pages of a server. `source` gives what is drawn: `runs`, each described;
// `columns(asked)` of a window; `story(asked)` of a message; `address`, which is the view; and where it can,
// `distribution(asked)` of a window and `save(kind, asked, picture)`. Each answers with a promise.
const drawMessages = (source) => {
  const page = document.getElementById("zoom");
  let about, flows, titles;
  const enter = (run) => {
    about = source.runs.find((one) => String(one.run) === run) || source.runs[0];
    flows = new Map(about.flows.map((flow) => [flow.key, flow]));
    titles = new Map(about.measures.map((one) => [one.name, one]));
  };
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const dark = matchMedia("(prefers-color-scheme: dark)");
  // Colours are chosen for white paper; where it is dark they are mixed with 28 % of white.
  const shade = (colour) => dark.matches ? `#${[1, 3, 5].map((at) => Math.round(0.72 * parseInt(colour.slice(at, at + 2), 16) + 0.28 * 255).toString(16).padStart(2, "0")).join("")}` : colour;
  const onScreen = { style, shade };
  const SHAPES = ["circle", "square", "diamond", "triangle"];
  const HEIGHT = 240, MOST_ROWS = 400, WORST = 5, NONE = 0.7;

  // -- the view is the address --------------------------------------------------------------------------------
  const read = () => {
    const given = new URLSearchParams(source.address.read());
    enter(given.get("run"));
    const list = (name, usual, known) => {
      const found = (given.get(name) || "").split(",").filter((one) => known.has(one));
      return found.length ? found : usual;
    };
    const window = (given.get("t") || "").split(",").map(Number);
    return {
      flows: list("f", about.shown, flows),
      measures: list("m", about.drawn, titles),
      t: window.length === 2 && window[0] < window[1] ? window : null,
      log: given.get("y") === "log",
      spread: list("p", [], titles),
      told: given.get("at") ? { flow: given.get("of"), measure: given.get("by"), at: given.get("at") } : null,
    };
  };
  let view = read();
  const panels = new Map();
  const address = (more = {}) => {
    const given = new URLSearchParams({ run: about.run, f: view.flows.join(","), m: view.measures.join(",") });
    if (view.t) given.set("t", view.t.join(","));
    if (view.log) given.set("y", "log");
    if (view.spread.length) given.set("p", view.spread.join(","));
    for (const [name, value] of Object.entries(more)) given.set(name, value);
    return `?${given}`;
  };
  const asking = (measure) => ({ about, address: address({ m: measure }), measure, flows: view.flows, t: view.t });
  const state = () => address(view.told ? { of: view.told.flow, by: view.told.measure, at: view.told.at } : {});
  const move = (change) => {
    Object.assign(view, change);
    source.address.write(state(), true);
    show();
  };
  const again = () => {
    const before = about.run;
    view = read();
    if (about.run !== before) empty();
    show();
    tell(view.told, false);
  };
  source.address.changed(again);

  // -- numbers ------------------------------------------------------------------------------------------------
  const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  const unitOf = (ns) => UNITS.find(([size]) => Math.abs(ns) >= size * 0.9995) || UNITS[3];
  const digits = (value, count = 4) => {
    const whole = Math.abs(value) >= 1 ? Math.floor(Math.log10(Math.abs(value))) + 1 : 1;
    return value.toFixed(Math.max(count - whole, 0));
  };
  const time = (ns) => { const [size, unit] = unitOf(ns); return `${digits(ns / size)} ${unit}`; };
  const instant = (s, span) => {
    const decimals = Math.min(Math.max(2 - Math.floor(Math.log10(span || 1)) + 1, 3), 12);
    return `${s.toFixed(decimals)} s`;
  };
  const spanned = (count) => count.toString().replace(/\B(?=(\d{3})+$)/g, "\u00a0");

  // -- the window ---------------------------------------------------------------------------------------------
  const whole = () => about.span;
  const seen = () => view.t || whole();
  const bounded = (begin, end) => {
    const [low, high] = whole();
    const least = 2e-9, width = Math.min(Math.max(end - begin, least), high - low);
    const from = Math.min(Math.max(begin, low), high - width);
    return width >= high - low ? null : [from, from + width];
  };
  const pan = (share) => { const [b, e] = seen(); move({ t: bounded(b + share * (e - b), e + share * (e - b)) }); };
  const zoom = (factor, at) => {
    const [b, e] = seen(), middle = at ?? (b + e) / 2;
    move({ t: bounded(middle - (middle - b) * factor, middle + (e - middle) * factor) });
  };

  // -- panels -------------------------------------------------------------------------------------------------
  const make = (tag, content = {}, ...inside) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(content)) {
      if (name === "class") element.className = value;
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name in element && name !== "list") element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...inside);
    return element;
  };

  class Panel {
    constructor(measure) {
      this.measure = measure;
      const title = titles.get(measure);
      this.title = title.title;
      const name = `panel-${measure}`;
      this.canvas = make("div", { class: "canvas", tabIndex: 0, role: "group" });
      this.canvas.setAttribute("aria-labelledby", name);
      this.canvas.setAttribute("aria-describedby", `${name}-note keys`);
      this.readout = make("output", { class: "readout" });
      this.worst = make("p", { class: "worst" });
      this.note = make("figcaption", { id: `${name}-note` });
      this.rows = make("div", { class: "scroll", tabIndex: 0, role: "region" });
      this.rows.setAttribute("aria-label", `Table of ${title.title}`);
      this.table = make("details", { class: "fold" }, make("summary", { textContent: "The picture as a table" }), this.rows);
      this.table.addEventListener("toggle", () => this.tabulate());
      this.spread = source.distribution ? new Distribution(measure, title.title) : null;
      const folds = [this.spread?.place, this.table].filter(Boolean);
      this.figure = make("figure", { class: "view" }, make("h2", { id: name, textContent: title.title }), this.canvas, this.readout, this.worst, this.note, ...folds);
      this.canvas.addEventListener("keydown", (event) => this.key(event));
      this.data = null;
      this.marked = -1;
      panels.set(measure, this);
    }

    async load() {
      this.spread?.load();
      const columns = Math.max(Math.round(this.canvas.clientWidth - 70), 100);
      const asked = address({ m: this.measure, columns });
      if (asked === this.asked) return this.draw();
      this.asked = asked;
      this.canvas.classList.add("waiting");
      this.abort?.abort();
      this.abort = new AbortController();
      try {
        this.data = await source.columns({ ...asking(this.measure), columns, signal: this.abort.signal });
      } catch (error) {
        if (error.name === "AbortError") return;
        this.data = null;
        this.asked = "";
        this.note.textContent = `Nothing is drawn: ${error.message}`;
      }
      this.canvas.classList.remove("waiting");
      this.draw();
    }

    get shown() { return this.data ? Object.entries(this.data.flows).filter(([key]) => view.flows.includes(key)) : []; }

    range() {
      let low = Infinity, high = -Infinity;
      for (const [, one] of this.shown) {
        for (const value of one.least) if (value !== null && value < low && (!view.log || value > 0)) low = value;
        for (const value of one.greatest) if (value !== null && value > high) high = value;
      }
      if (!(low <= high)) return [0, 1];
      if (view.log) return [low / 1.1, Math.max(high, low) * 1.1];
      const margin = (high - low) * 0.06 || Math.abs(high) * 1e-3 || 1;
      return [low - margin, high + margin];
    }

    draw() {
      this.plot?.destroy();
      this.plot = null;
      const [low, high] = this.range(), [size, unit] = unitOf(Math.max(Math.abs(low), Math.abs(high)));
      const [b, e] = seen();
      const axis = { stroke: style("--soft"), grid: { stroke: style("--row"), width: 1 }, ticks: { stroke: style("--line"), width: 1 }, font: "12px system-ui, sans-serif" };
      this.plot = new uPlot({
        width: Math.max(this.canvas.clientWidth, 200), height: HEIGHT, pxAlign: 0,
        legend: { show: false },
        cursor: { sync: { key: "zoom" }, drag: { x: true, y: false, setScale: false }, points: { show: false } },
        scales: { x: { time: false, range: () => [b, e] }, y: { distr: view.log ? 3 : 1, range: () => [low, high] } },
        axes: [
          { ...axis, label: "time in the run, s", labelSize: 18, size: 32, values: (_, splits) => splits.map((at) => String(Number(at.toPrecision(13)))) },
          { ...axis, label: unit, labelSize: 18, size: 56, values: (_, splits) => splits.map((at) => at === null ? "" : String(Number((at / size).toPrecision(5)))) },
        ],
        series: [{}, { paths: () => null, points: { show: false } }],
        hooks: {
          draw: [(plot) => this.paint(plot)],
          setSelect: [(plot) => {
            if (plot.select.width < 3) return;
            const from = plot.posToVal(plot.select.left, "x"), to = plot.posToVal(plot.select.left + plot.select.width, "x");
            plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            move({ t: bounded(from, to) });
          }],
          setCursor: [(plot) => this.point(plot)],
        },
      }, [[b, e], [low, high]], this.canvas);
      this.plot.root.querySelector("canvas").setAttribute("aria-hidden", "true");
      this.plot.over.addEventListener("dblclick", () => move({ t: null }));
      this.plot.over.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.shiftKey) return;
        event.preventDefault();
        zoom(event.deltaY > 0 ? 1.5 : 1 / 1.5, this.plot.posToVal(this.plot.cursor.left, "x"));
      }, { passive: false });
      this.plot.over.addEventListener("click", () => this.select());
      if (this.data) this.note.textContent = this.data.note;
      this.mark();
      this.tabulate();
    }

    paint(plot, ctx = plot.ctx, { style, shade } = onScreen) {
      const ratio = devicePixelRatio || 1;
      ctx.save();
      ctx.beginPath();
      ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
      ctx.clip();
      const x = (at) => plot.valToPos(at, "x", true), y = (value) => plot.valToPos(value, "y", true);
      const bottom = plot.bbox.top + plot.bbox.height;
      this.shown.forEach(([key, one]) => {
        const colour = flows.get(key).colour, shape = shapeOf(key);
        ctx.fillStyle = ctx.strokeStyle = shade(colour);
        for (let k = 0; k < one.n.length; k++) {
          if (!one.n[k]) continue;
          const low = view.log && one.least[k] <= 0 ? bottom : y(one.least[k]), high = y(one.greatest[k]);
          if (one.n[k] === 1) { dot(ctx, shape, x(one.greatest_at[k]), high, 2.6 * ratio); continue; }
          const left = x(one.begin[k]), width = Math.max(x(one.end[k]) - left, ratio);
          ctx.globalAlpha = 0.55;
          ctx.fillRect(left, high, width, Math.max(low - high, ratio));
          ctx.globalAlpha = 1;
          ctx.fillRect(x(one.greatest_at[k]) - ratio / 2, high - ratio / 2, Math.max(ratio, 1.5), 1.5 * ratio);
          ctx.fillRect(x(one.least_at[k]) - ratio / 2, low - ratio / 2, Math.max(ratio, 1.5), 1.5 * ratio);
        }
        // Lost and unknown messages have no value: ticks at the bottom show where they were sent.
        ctx.fillStyle = style("--bad");
        for (let k = 0; k < one.n.length; k++) if (one.lost[k] || one.unknown[k]) ctx.fillRect(x((one.begin[k] + one.end[k]) / 2) - ratio, bottom - 9 * ratio, 2 * ratio, 9 * ratio);
      });
      ctx.font = `${11 * ratio}px system-ui, sans-serif`;
      ctx.textAlign = "center";
      // Marks that would lie upon each other share their numbers.
      const groups = [];
      (this.slowest || []).forEach((one, place) => {
        const at = x(one.at), top = y(one.value);
        const near = groups.find((group) => Math.abs(group.at - at) < 18 * ratio && Math.abs(group.top - top) < 10 * ratio);
        if (near) { near.places.push(place); near.right = Math.max(near.right, at); } else groups.push({ at, top, right: at, places: [place] });
        ctx.strokeStyle = style("--ink");
        ctx.lineWidth = (place === this.marked ? 2.4 : 1.2) * ratio;
        ctx.beginPath();
        ctx.arc(at, top, 6 * ratio, 0, 7);
        ctx.stroke();
      });
      ctx.fillStyle = style("--ink");
      ctx.textAlign = "left";
      groups.forEach(({ right, top, places }) => ctx.fillText(places.map((place) => place + 1).join(", "), right + 8 * ratio, top + 4 * ratio));
      (about.notes || []).forEach((note) => {
        if (note.at === null || (note.flow && !view.flows.includes(note.flow))) return;
        const at = x(note.at);
        ctx.strokeStyle = ctx.fillStyle = style("--link");
        ctx.lineWidth = ratio;
        ctx.setLineDash([4 * ratio, 3 * ratio]);
        ctx.beginPath();
        ctx.moveTo(at, plot.bbox.top);
        ctx.lineTo(at, bottom);
        ctx.stroke();
        ctx.setLineDash([]);
        ctx.textAlign = "left";
        ctx.fillText(note.text.length > 40 ? `${note.text.slice(0, 40)}…` : note.text, at + 4 * ratio, plot.bbox.top + 12 * ratio);
      });
      ctx.restore();
    }

    // -- marks: the greatest of the window, each once ---------------------------------------------------------
    mark() {
      const all = this.shown.flatMap(([key, one]) => one.greatest.map((value, k) => ({ key, value, at: one.greatest_at[k] })));
      this.slowest = all.filter((one) => one.value !== null).sort((a, b) => b.value - a.value || a.at - b.at).slice(0, WORST);
      this.marked = Math.min(this.marked, this.slowest.length - 1);
      this.worst.replaceChildren(this.slowest.length ? "Greatest in view:" : "", ...this.slowest.map((one, place) => make("button", {
        type: "button", textContent: `${place + 1}: ${time(one.value)}, flow ${flows.get(one.key).label}, at ${instant(one.at, seen()[1] - seen()[0])}`,
        onclick: () => tell({ flow: one.key, measure: this.measure, at: one.at }),
      })));
      this.plot?.redraw(false);
    }

    nearest(left, top) {
      let best = null, least = Infinity;
      for (const [key, one] of this.shown) {
        for (let k = 0; k < one.n.length; k++) {
          if (!one.n[k]) continue;
          for (const [value, at] of [[one.greatest[k], one.greatest_at[k]], [one.least[k], one.least_at[k]]]) {
            const x = this.plot.valToPos(at, "x") - left, y = (this.plot.valToPos(value, "y") - top) / 3;
            const apart = x * x + y * y;
            if (apart < least) { least = apart; best = { key, k, value, at, one }; }
          }
        }
      }
      return best;
    }

    point(plot) {
      const { left, top } = plot.cursor;
      if (left === undefined || left < 0 || !this.data) { this.readout.textContent = ""; return; }
      const near = this.nearest(left, top);
      if (!near) { this.readout.textContent = ""; return; }
      const { one, k, key } = near, span = seen()[1] - seen()[0];
      const of = one.n[k] === 1 ? "one message" : `${spanned(one.n[k])} messages, ${time(one.least[k])} to ${time(one.greatest[k])}`;
      const gone = (one.lost[k] ? `, ${spanned(one.lost[k])} lost` : "") + (one.unknown[k] ? `, ${spanned(one.unknown[k])} of unknown fate` : "");
      this.readout.textContent = `${instant(near.at, span)}: ${time(near.value)}, flow ${flows.get(key).label}; ${of}${gone}`;
    }

    select() {
      const { left, top } = this.plot.cursor;
      const near = left >= 0 ? this.nearest(left, top) : null;
      if (near) tell({ flow: near.key, measure: this.measure, at: near.at });
    }

    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const steps = { ArrowLeft: () => pan(-0.25), ArrowRight: () => pan(0.25), "+": () => this.closer(0.5), "=": () => this.closer(0.5), "-": () => this.closer(2), "0": () => move({ t: null }), l: () => move({ log: !view.log }) };
      if (event.key === "[" || event.key === "]") {
        if (!this.slowest?.length) return;
        const count = this.slowest.length;
        this.marked = (this.marked + (event.key === "]" ? 1 : -1) + count) % count;
        const one = this.slowest[this.marked];
        this.readout.textContent = `${this.marked + 1}: ${instant(one.at, seen()[1] - seen()[0])}: ${time(one.value)}, flow ${flows.get(one.key).label}. Enter: its story; +: closer.`;
        this.plot.redraw(false);
      } else if (event.key === "Enter" && this.slowest?.[this.marked]) {
        const one = this.slowest[this.marked];
        tell({ flow: one.key, measure: this.measure, at: one.at });
      } else if (steps[event.key]) {
        steps[event.key]();
      } else return;
      event.preventDefault();
    }

    closer(factor) { zoom(factor, this.slowest?.[this.marked]?.at); }

    tabulate() {
      if (!this.table.open || !this.data) return;
      const heads = ["flow", "from, s", "to, s", "messages", "lost", "unknown", "least", "greatest", "greatest at, s"];
      const rows = this.shown.flatMap(([key, one]) => one.n.map((n, k) => [
        flows.get(key).label, one.begin[k], one.end[k], one.messages[k], one.lost[k], one.unknown[k], n ? time(one.least[k]) : "–", n ? time(one.greatest[k]) : "–", n ? one.greatest_at[k] : "–",
      ]));
      const table = tableOf(heads, rows.slice(0, MOST_ROWS));
      const more = rows.length > MOST_ROWS ? [make("p", { class: "note", textContent: `The first ${MOST_ROWS} of ${rows.length} rows; the CSV file has all.` })] : [];
      this.rows.replaceChildren(table, ...more);
    }
  }

  // -- the distribution of a window: percentiles up to the greatest value, and how many values lie where -----------
  class Distribution {
    constructor(measure, title) {
      this.measure = measure;
      this.curve = make("div", { class: "canvas" });
      this.density = make("div", { class: "canvas" });
      this.note = make("p", { class: "note", role: "status" });
      this.rows = make("div", { class: "scroll", tabIndex: 0, role: "region" });
      this.rows.setAttribute("aria-label", `Percentiles of ${title} in the window`);
      this.hops = make("div", { class: "scroll", tabIndex: 0, role: "region" });
      this.hops.setAttribute("aria-label", `Where the time of ${title} went in the window`);
      this.place = make("details", { class: "fold", open: view.spread.includes(measure) },
        make("summary", { textContent: "Percentiles of the window" }),
        make("div", { class: "pair" }, this.curve, this.density), this.note, this.rows, this.hops);
      this.place.addEventListener("toggle", () => {
        const others = view.spread.filter((one) => one !== measure);
        view.spread = this.place.open ? [...others, measure] : others;
        source.address.write(state(), false);
        this.load();
      });
    }

    async load() {
      if (!this.place.open) return;
      const asked = address({ m: this.measure });
      if (asked === this.asked) return this.draw();
      this.asked = asked;
      this.abort?.abort();
      this.abort = new AbortController();
      this.note.textContent = "The values of the window are read…";
      try {
        this.data = await source.distribution({ ...asking(this.measure), signal: this.abort.signal });
      } catch (error) {
        if (error.name === "AbortError") return;
        this.asked = "";
        this.data = { flows: {}, note: `Nothing is drawn: ${error.message}` };
      }
      this.draw();
    }

    draw() {
      this.curves?.forEach((plot) => plot.destroy());
      this.curves = [];
      if (!this.data) return;
      this.note.textContent = this.data.note;
      const drawn = Object.entries(this.data.flows).filter(([key]) => view.flows.includes(key));
      this.tabulate(drawn);
      if (!drawn.length) return;
      const greatest = Math.max(...drawn.map(([, one]) => one.greatest)), [size, unit] = unitOf(greatest);
      const scaled = (values) => values.map((value) => value / size);
      // Percentiles against the share above, so that each nine of the tail has the same room.
      this.curves.push(lines(this.curve, drawn.map(([key, one]) => ({ key, x: one.above.map((part) => -Math.log10(part)), y: scaled(one.value) })),
        { x: "percentile", y: unit, log: view.log, ticks: (at) => `${Number((100 * (1 - 10 ** -at)).toPrecision(Math.max(2, Math.ceil(at) + 1)))} %`, whole: true }));
      // The last count once more: a step goes from each edge to the next. A logarithm has no zero: none is below one.
      this.curves.push(lines(this.density, drawn.map(([key, one]) => ({ key, x: scaled(this.data.edges), y: [...one.counts, one.counts.at(-1)].map((n) => n || NONE) })), { x: unit, y: "values", log: true, steps: true }));
    }

    tabulate(drawn) {
      const names = drawn.map(([, one]) => Object.keys(one.percentiles)).reduce((most, one) => one.length > most.length ? one : most, []);
      const cell = (value, low, high) => value === undefined ? "–" : `${time(value)}${low === undefined ? "" : ` [${low === null ? "–" : time(low)}, ${high === null ? "–" : time(high)}]`}`;
      const rows = drawn.map(([key, one]) => [flows.get(key).label, spanned(one.n), spanned(one.lost), spanned(one.unknown), time(one.least), ...names.map((name) => cell(...(one.percentiles[name] || []))), time(one.greatest), one.mean[1] === null ? time(one.mean[0]) : `${time(one.mean[0])} ± ${time(one.mean[1])}`]);
      const heads = ["flow", "n", "lost", "unknown", "least", ...names, "greatest", "mean"];
      this.rows.replaceChildren(...(rows.length ? [tableOf(heads, rows)] : []));
      // Switches are a share of the whole way only: of latency and round trip.
      const isWhole = ["latency", "rtt"].includes(this.measure);
      const hops = drawn.flatMap(([key, one]) => (this.data.hops?.[key] || []).map((hop) => [flows.get(key).label, `${hop.node}, out of port ${hop.port}${hop.returning ? ", on the way back" : ""}`, spanned(hop.n), time(hop.mean), time(hop.greatest), isWhole && one.mean[0] > 0 ? `${digits(100 * hop.mean / one.mean[0], 3)} %` : "–"]));
      this.hops.hidden = !hops.length;
      this.hops.replaceChildren(...(hops.length ? [
        make("p", { class: "note", textContent: "Stays in switches, of passages that ended in the window; the share is that of their mean in the mean of the flow. Copies on a second network are passages of their own." }),
        tableOf(["flow", "switch", "n", "mean stay", "greatest stay", "share"], hops),
      ] : []));
    }
  }

  const lines = (place, series, axes) => {
    const all = [...new Set(series.flatMap((one) => one.x))].sort((a, b) => a - b);
    const aligned = series.map((one) => { const of = new Map(one.x.map((x, k) => [x, one.y[k]])); return all.map((x) => of.get(x)); });
    const axis = { stroke: style("--soft"), grid: { stroke: style("--row"), width: 1 }, ticks: { stroke: style("--line"), width: 1 }, font: "12px system-ui, sans-serif", labelSize: 18 };
    const plot = new uPlot({
      width: Math.max(place.clientWidth, 200), height: HEIGHT, legend: { show: false },
      cursor: { drag: { x: false, y: false } },
      scales: { x: { time: false }, y: { distr: axes.log && aligned.every((y) => y.every((value) => value === null || value === undefined || value > 0)) ? 3 : 1 } },
      axes: [
        { ...axis, label: axes.x, size: 32, values: (_, splits) => splits.map((at) => axes.ticks ? axes.ticks(at) : String(Number(at.toPrecision(6)))), incrs: axes.whole ? [1, 2, 4] : undefined },
        { ...axis, label: axes.y, size: 56, values: (_, splits) => splits.map((at) => at === null || (axes.steps && at < 1) ? "" : String(Number(at.toPrecision(5)))) },
      ],
      series: [{}, ...series.map((one) => {
        return { stroke: shade(flows.get(one.key).colour), width: 1.5, spanGaps: !axes.steps, points: { show: false }, ...(axes.steps ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}) };
      })],
    }, [all, ...aligned], place);
    plot.root.querySelector("canvas").setAttribute("aria-hidden", "true");
    return plot;
  };

  const tableOf = (heads, rows) => make("table", { class: "data dense" },
    make("thead", {}, make("tr", {}, ...heads.map((text, k) => make("th", { textContent: text, class: k ? "" : "text", scope: "col" })))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell, k) => make("td", { textContent: cell, class: k ? "" : "text" }))))));

  const dot = (ctx, shape, x, y, r) => {
    ctx.beginPath();
    if (shape === "square") ctx.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
    else if (shape === "diamond") { ctx.moveTo(x, y - r * 1.3); ctx.lineTo(x + r * 1.3, y); ctx.lineTo(x, y + r * 1.3); ctx.lineTo(x - r * 1.3, y); }
    else if (shape === "triangle") { ctx.moveTo(x, y - r * 1.2); ctx.lineTo(x + r * 1.2, y + r); ctx.lineTo(x - r * 1.2, y + r); }
    else ctx.arc(x, y, r, 0, 7);
    ctx.fill();
  };

  // The colour of a flow and the mark of its single messages.
  const sampleOf = (flow) => {
    const sample = make("canvas", { class: "sample", width: 28, height: 28 }), ctx = sample.getContext("2d");
    sample.setAttribute("aria-hidden", "true");
    ctx.fillStyle = shade(flow.colour);
    dot(ctx, shapeOf(flow.key), 14, 14, 9);
    return sample;
  };
  const shapeOf = (key) => SHAPES[Math.max(view.flows.indexOf(key), 0) % SHAPES.length];

  // -- the whole page -----------------------------------------------------------------------------------------
  const place = document.getElementById("panels");
  const toggled = (list, name, most) => {
    if (list.includes(name)) return list.length > 1 ? list.filter((one) => one !== name) : list;
    return list.length < most ? [...list, name] : list;
  };
  const choices = () => {
    const measures = document.getElementById("measures"), chosen = document.getElementById("flows");
    const there = new Set(view.flows.flatMap((key) => flows.get(key).measures));
    measures.querySelectorAll("button").forEach((button) => button.remove());
    measures.append(...about.measures.filter((one) => there.has(one.name)).map((one) => {
      const button = make("button", { type: "button", textContent: one.title, title: one.definition, onclick: () => move({ measures: toggled(view.measures, one.name, 8) }) });
      button.setAttribute("aria-pressed", String(view.measures.includes(one.name)));
      return button;
    }));
    const words = document.getElementById("flow-search")?.value.toLowerCase().trim() || "";
    const listed = about.flows.filter((flow) => view.flows.includes(flow.key) || (words && flow.label.toLowerCase().includes(words)) || (!words && about.flows.length <= 60)).slice(0, 80);
    chosen.querySelectorAll("button").forEach((button) => button.remove());
    chosen.append(...listed.map((flow) => {
      const sample = sampleOf(flow);
      const button = make("button", { type: "button", onclick: () => move({ flows: toggled(view.flows, flow.key, about.most) }) }, sample, flow.label);
      button.setAttribute("aria-pressed", String(view.flows.includes(flow.key)));
      return button;
    }));
    document.getElementById("log").setAttribute("aria-pressed", String(view.log));
    document.querySelectorAll("a[data-export]").forEach((link) => { link.href = `${link.dataset.export}${address()}`; });
    const run = document.getElementById("run");
    if (run) run.value = about.run;
    const [b, e] = seen();
    document.getElementById("window").textContent = view.t ? `${instant(b, e - b)} to ${instant(e, e - b)}` : "the whole run";
    document.dispatchEvent(new CustomEvent("viewed", { detail: { t: view.t, flows: view.flows, told: view.told } }));
  };
  const empty = () => {
    for (const panel of panels.values()) { panel.plot?.destroy(); panel.figure.remove(); }
    panels.clear();
  };
  const show = () => {
    const focused = document.activeElement?.closest("#measures, #flows")?.id;
    const text = document.activeElement?.textContent;
    choices();
    if (focused) [...document.querySelectorAll(`#${focused} button`)].find((button) => button.textContent === text)?.focus();
    for (const [measure, panel] of panels) if (!view.measures.includes(measure)) { panel.plot?.destroy(); panel.figure.remove(); panels.delete(measure); }
    view.measures.forEach((measure) => { if (!panels.has(measure)) place.append(new Panel(measure).figure); });
    for (const panel of panels.values()) panel.load();
  };

  // -- the story of one message -------------------------------------------------------------------------------
  const story = document.getElementById("story");
  const tell = async (asked, push = true) => {
    view.told = asked;
    page.classList.toggle("told", Boolean(asked));
    if (push) source.address.write(state(), true);
    if (!asked) { story.replaceChildren(); requestAnimationFrame(show); return; }
    story.replaceChildren(make("p", { class: "note", role: "status", textContent: "The message is looked up…" }));
    requestAnimationFrame(show);
    try {
      story.replaceChildren(...await source.story({ about, ...asked }));
    } catch (error) {
      story.replaceChildren(make("p", { class: "empty", textContent: `It cannot be told: ${error.message}` }));
    }
    story.prepend(make("button", { type: "button", textContent: "Close the story", onclick: () => tell(null) }));
    story.querySelectorAll("a[data-at]").forEach((link) => link.addEventListener("click", (event) => {
      event.preventDefault();
      tell({ flow: asked.flow, measure: link.dataset.by, at: link.dataset.at });
    }));
    story.querySelector("[data-show]")?.addEventListener("click", (event) => {
      const at = Number(event.currentTarget.dataset.show), width = Number(event.currentTarget.dataset.width);
      move({ t: bounded(at - width, at + width) });
    });
    story.focus({ preventScroll: false });
    document.dispatchEvent(new CustomEvent("viewed", { detail: { t: view.t, flows: view.flows, told: view.told } }));
  };

  // A note is on the message whose story is told, or on the middle of the window.
  const note = document.getElementById("note");
  if (note) {
    document.addEventListener("viewed", ({ detail }) => {
      const { at, flow, text, view: place } = note.elements;
      place.value = state();
      if (text.value) return;
      at.value = detail.told?.at ?? (detail.t ? String((detail.t[0] + detail.t[1]) / 2) : "");
      const chosen = detail.told?.flow ?? "";
      flow.replaceChildren(make("option", { value: "", textContent: "all" }), ...view.flows.map((key) => make("option", { value: key, textContent: flows.get(key).label })));
      flow.value = chosen;
    });
  }

  document.getElementById("closer").addEventListener("click", () => zoom(0.5));
  document.getElementById("farther").addEventListener("click", () => zoom(2));
  document.getElementById("earlier").addEventListener("click", () => pan(-0.5));
  document.getElementById("later").addEventListener("click", () => pan(0.5));
  document.getElementById("whole").addEventListener("click", () => move({ t: null }));
  document.getElementById("log").addEventListener("click", () => move({ log: !view.log }));
  document.getElementById("flow-search")?.addEventListener("input", choices);
  if (source.save) {
    document.querySelectorAll("button[data-export]").forEach((button) => button.addEventListener("click", () => source.save(button.dataset.export, view.measures.map(asking), [...panels.values()])));
    document.getElementById("run")?.addEventListener("change", (event) => { source.address.write(`?run=${event.target.value}`, true); again(); });
  }
  dark.addEventListener("change", () => panels.forEach((panel) => panel.draw()));
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; show(); } });
  show();
  if (view.told) tell(view.told, false);
};
