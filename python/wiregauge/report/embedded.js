"use strict";
// Messages against time inside a report: every message is in the file, in the form that `embedded.py` describes.
// The view is the fragment of the address.
const drawEmbedded = (about, block) => {
  const NAME = "messages", PS = 1e12;
  const fill = (text, given) => text.replace(/\{(\w+)\}/g, (_, name) => given[name]);

  // -- the numbers --------------------------------------------------------------------------------------------
  const integers = (at, count) => {
    const bytes = new Uint8Array(8 * count), found = new BigInt64Array(bytes.buffer);
    for (let part = 0; part < 8; part++) for (let k = 0; k < count; k++) bytes[8 * k + part] = block[at + part * count + k];
    for (let k = 1; k < count; k++) found[k] += found[k - 1];
    return found;
  };
  let next = 0;
  const series = about.series.map(([run, flow, count, names]) => {
    const first = next;
    next += count * (9 + 9 * names.length);
    return { run, flow, count, names, first, of: {} };
  });
  const seriesOf = (run, flow, measure) => {
    const one = series.find((each) => each.run === run && each.flow === flow && each.names.includes(measure));
    if (!one) return null;
    if (!one.at) {
      one.ps = integers(one.first, one.count);
      one.at = Float64Array.from(one.ps, (ps) => Number(ps) / PS);
      one.fate = block.subarray(one.first + 8 * one.count, one.first + 9 * one.count);
    }
    if (!one.of[measure]) {
      const from = one.first + one.count * (9 + 9 * one.names.indexOf(measure));
      one.of[measure] = {
        value: Float64Array.from(integers(from, one.count), (ps) => Number(ps) / 1e3),
        has: block.subarray(from + 8 * one.count, from + 9 * one.count),
      };
    }
    return { at: one.at, fate: one.fate, ...one.of[measure] };
  };
  // The first element at or after an instant.
  const placeOf = (at, instant) => {
    let low = 0, high = at.length;
    while (low < high) { const middle = (low + high) >> 1; if (at[middle] < instant) low = middle + 1; else high = middle; }
    return low;
  };
  const partOf = (at, window) => window ? [placeOf(at, window[0]), placeOf(at, window[1])] : [0, at.length];
  // A window in columns of equal time, each exact; few elements are a column each. As the store of a run has them.
  const columnsOf = ({ at, fate, value, has }, window, most) => {
    const found = Object.fromEntries(Object.keys(about.heads).map((name) => [name, []]));
    const [first, past] = partOf(at, window);
    const begin = window ? window[0] : at[0], end = window ? window[1] : at[at.length - 1] + 1 / PS;
    const single = past - first <= 2 * most;
    let last = -1, here = -1;
    for (let k = first; k < past; k++) {
      const column = single ? k : Math.min(Math.floor(((at[k] - begin) / (end - begin)) * most), most - 1);
      if (column !== last) {
        last = column;
        here++;
        for (const name in found) found[name].push(/least|greatest/.test(name) ? null : 0);
        found.begin[here] = at[k];
      }
      found.end[here] = at[k];
      found.messages[here]++;
      if (fate[k] === 1) found.lost[here]++;
      if (fate[k] === 2) found.unknown[here]++;
      if (!has[k]) continue;
      found.n[here]++;
      if (found.least[here] === null || value[k] < found.least[here]) { found.least[here] = value[k]; found.least_at[here] = at[k]; }
      if (found.greatest[here] === null || value[k] > found.greatest[here]) { found.greatest[here] = value[k]; found.greatest_at[here] = at[k]; }
    }
    return found;
  };
  const total = (shapes, name) => shapes.reduce((sum, one) => sum + one[name].reduce((all, n) => all + n, 0), 0);
  const noteOf = (measure, shapes, flows) => {
    const { words } = about, what = words[measure] || words.messages, drawn = shapes.filter((one) => one.n.length);
    if (!drawn.length) return fill(words.nothing, { what });
    const most = drawn.reduce((all, one) => one.n.reduce((high, n) => Math.max(high, n), all), 0);
    const said = fill(most <= 2 ? words.each : words.columns, { total: total(drawn, "n"), what, most, columns: drawn.reduce((sum, one) => sum + one.n.length, 0) });
    const gone = ["lost", "unknown"].map((name) => [name, total(drawn, name)]).filter(([, n]) => n).map(([name, n]) => fill(words[name], { n, s: n === 1 ? "" : "s" }));
    return said + (gone.length ? fill(words.gone, { gone: gone.join(words.and) }) : "") + (drawn.length === flows ? "" : fill(words.some, { drawn: drawn.length, flows }));
  };
  const columns = ({ about: run, measure, flows, t, columns: most }) => {
    const found = {};
    for (const key of flows) {
      const one = seriesOf(run.run, key, measure);
      if (one) found[key] = columnsOf(one, t, most);
    }
    return { measure, flows: found, note: noteOf(measure, Object.values(found), run.flows.length) };
  };

  // -- the distribution of a window, as `distributions.py` of the server has it, without intervals -----------------------
  const spreadOf = ({ at, fate, value, has }, t) => {
    const [first, past] = partOf(at, t), values = [], gone = [0, 0, 0];
    for (let k = first; k < past; k++) { if (has[k]) values.push(value[k]); gone[fate[k]]++; }
    values.sort((a, b) => a - b);
    return { values, lost: gone[1], unknown: gone[2] };
  };
  const curveOf = ({ values, lost, unknown }, edges) => {
    const { ranks, greatest, percentiles } = about.window, n = values.length, chosen = new Set([1]);
    for (let k = 0; k < ranks; k++) chosen.add(n + 1 - Math.round(n ** (k / (ranks - 1))));
    for (let rank = Math.max(1, n - greatest + 1); rank <= n; rank++) chosen.add(rank);
    const drawn = [...chosen].sort((a, b) => a - b), counts = edges.slice(1).map(() => 0), low = edges[0], width = edges[1] - low;
    for (const one of values) counts[Math.min(Math.floor((one - low) / width), counts.length - 1)]++;
    return {
      n, lost, unknown, counts, least: values[0], greatest: values[n - 1],
      mean: [values.reduce((sum, one) => sum + one, 0) / n, null],
      percentiles: Object.fromEntries(percentiles.filter(([, , , needed]) => n >= needed).map(([name, part, of]) => [name, [values[Math.ceil(part * n / of) - 1]]])),
      above: drawn.map((rank) => (n - rank + 0.5) / n), value: drawn.map((rank) => values[rank - 1]),
    };
  };
  const distribution = ({ about: run, measure, flows, t }) => {
    const { words, fewest_bins: fewest, most_bins: most } = about.window, spreads = {};
    for (const key of flows) {
      const one = seriesOf(run.run, key, measure), spread = one && spreadOf(one, t);
      if (spread?.values.length) spreads[key] = spread;
    }
    const all = Object.values(spreads).map((one) => one.values), count = all.reduce((sum, one) => sum + one.length, 0);
    if (!count) return { measure, flows: {}, note: words.nothing };
    const least = Math.min(...all.map((one) => one[0])), greatest = Math.max(...all.map((one) => one.at(-1)));
    const bins = Math.floor(Math.min(Math.max(2 * Math.cbrt(Math.max(...all.map((one) => one.length))), fewest), most));
    const wide = (greatest > least ? greatest - least : 1) / bins, edges = Array.from({ length: bins + 1 }, (_, k) => least + k * wide);
    const note = fill(words.all, { values: `${count} value${count === 1 ? "" : "s"}` }) + words.no_intervals + words.unsupported;
    return { measure, edges, note, flows: Object.fromEntries(Object.entries(spreads).map(([key, one]) => [key, curveOf(one, edges)])) };
  };

  // -- files --------------------------------------------------------------------------------------------------
  // What a canvas is told, as elements of SVG.
  class Drawn {
    constructor() { Object.assign(this, { parts: [], path: "", clips: 0, open: 0, globalAlpha: 1, lineWidth: 1, dash: "" }); }
    put(tag, given, text = "") {
      const attributes = Object.entries(given).map(([name, value]) => ` ${name}="${typeof value === "number" ? Number(value.toFixed(2)) : escaped(value)}"`).join("");
      this.parts.push(`<${tag}${attributes}>${escaped(text)}</${tag}>`);
    }
    save() {}
    restore() { this.parts.push("</g>".repeat(this.open)); this.open = 0; }
    beginPath() { this.path = ""; }
    rect(x, y, width, height) { this.path += `M${x} ${y}h${width}v${height}h${-width}z`; }
    moveTo(x, y) { this.path += `M${x} ${y}`; }
    lineTo(x, y) { this.path += `L${x} ${y}`; }
    arc(x, y, r) { this.path += `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`; }
    clip() { const id = `clip${Drawn.clips++}`; this.parts.push(`<clipPath id="${id}"><path d="${this.path}"/></clipPath><g clip-path="url(#${id})">`); this.open++; }
    fill() { this.put("path", { d: this.path, fill: this.fillStyle, opacity: this.globalAlpha }); }
    stroke() { this.put("path", { d: this.path, fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth, "stroke-dasharray": this.dash }); }
    setLineDash(dash) { this.dash = dash.join(" "); }
    fillRect(x, y, width, height) { this.put("rect", { x, y, width, height, fill: this.fillStyle, opacity: this.globalAlpha }); }
    fillText(text, x, y) { this.put("text", { x, y, fill: this.fillStyle, "font-size": parseFloat(this.font), "text-anchor": this.textAlign === "center" ? "middle" : "start" }, String(text)); }
  }
  Drawn.clips = 0;
  const escaped = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  // On paper, whatever the screen has: the first colours of the style are those for white.
  const paper = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).find((rule) => rule.selectorText === ":root").style;
  const look = { style: (name) => paper.getPropertyValue(name).trim(), shade: (colour) => colour };
  const drawing = (panels, asked) => {
    const ratio = devicePixelRatio || 1, ctx = new Drawn(), ink = look.style("--ink"), soft = look.style("--soft"), line = look.style("--line");
    const wide = Math.max(...panels.map(({ plot }) => plot.bbox.left + plot.bbox.width)) + 20 * ratio;
    const text = (words, x, y, size, fill, anchor = "start") => ctx.put("text", { x, y, "font-size": size * ratio, fill, "text-anchor": anchor }, words);
    let down = 0;
    panels.forEach((panel, place) => {
      const { plot } = panel, { left, top, width, height } = plot.bbox, bottom = top + height;
      ctx.parts.push(`<g transform="translate(0 ${down + 30 * ratio})">`);
      text(`${about.name}: ${panel.title}`, left, -10 * ratio, 14, ink);
      const label = plot.axes[1].label, [b, e] = [plot.scales.x.min, plot.scales.x.max];
      plot.axes[0]._splits.forEach((at, k) => {
        if (at < b || at > e) return;
        const x = plot.valToPos(at, "x", true);
        ctx.put("path", { d: `M${x} ${top}V${bottom + 4 * ratio}`, stroke: line });
        text(plot.axes[0]._values[k], x, bottom + 17 * ratio, 11, soft, "middle");
      });
      plot.axes[1]._splits.forEach((value, k) => {
        const y = plot.valToPos(value, "y", true);
        if (value === null || y < top - 1 || y > bottom + 1 || !plot.axes[1]._values[k]) return;
        ctx.put("path", { d: `M${left - 4 * ratio} ${y}H${left + width}`, stroke: line });
        text(plot.axes[1]._values[k], left - 7 * ratio, y + 4 * ratio, 11, soft, "end");
      });
      text(label, left - 7 * ratio, top - 10 * ratio, 11, soft, "end");
      text(plot.axes[0].label, left + width, bottom + 33 * ratio, 11, soft, "end");
      panel.paint(plot, ctx, look);
      let under = bottom + 50 * ratio;
      const most = Math.max(Math.floor(width / (5.4 * ratio)), 30);
      const names = asked[place].flows.map((key) => asked[place].about.flows.find((flow) => flow.key === key));
      names.forEach((flow) => {
        ctx.put("rect", { x: left, y: under - 6 * ratio, width: 14 * ratio, height: 4 * ratio, fill: flow.colour });
        text(flow.label, left + 20 * ratio, under, 11, ink);
        under += 15 * ratio;
      });
      for (const words of wrapped(panel.note.textContent, most)) { text(words, left, under, 11, soft); under += 15 * ratio; }
      ctx.parts.push("</g>");
      down += under + 40 * ratio;
    });
    return { width: wide, height: down, svg: `<svg xmlns="http://www.w3.org/2000/svg" width="${wide / ratio}" height="${down / ratio}" viewBox="0 0 ${wide} ${down}" font-family="system-ui, sans-serif"><rect width="100%" height="100%" fill="${look.style("--paper")}"/>${ctx.parts.join("")}</svg>` };
  };
  const wrapped = (text, most) => text.split(" ").reduce((lines, word) => {
    if (lines.at(-1).length + word.length < most) lines[lines.length - 1] += ` ${word}`; else lines.push(word);
    return lines;
  }, [""]).map((words) => words.trim()).filter(Boolean);
  const table = (asked) => {
    const lines = [["run", "flow", "measure", ...Object.values(about.heads)]];
    for (const one of asked) for (const [key, shape] of Object.entries(columns({ ...one, columns: about.columns }).flows)) {
      shape.n.forEach((_, k) => lines.push([one.about.run, key, one.measure, ...Object.keys(about.heads).map((name) => shape[name][k] ?? "")]));
    }
    return `${lines.map((line) => line.join(",")).join("\n")}\n`;
  };
  const raster = async ({ svg, width, height }) => {
    const picture = new Image(), canvas = document.createElement("canvas");
    picture.src = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
    await picture.decode();
    URL.revokeObjectURL(picture.src);
    Object.assign(canvas, { width, height });
    canvas.getContext("2d").drawImage(picture, 0, 0, width, height);
    return new Promise((done) => canvas.toBlob(done, "image/png"));
  };
  const save = async (kind, asked, panels) => {
    const content = kind === "csv" ? new Blob([table(asked)], { type: "text/csv" })
      : kind === "svg" ? new Blob([drawing(panels, asked).svg], { type: "image/svg+xml" }) : await raster(drawing(panels, asked));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content);
    link.download = `${about.name.replace(/[^\w.-]+/g, "-")}-${asked.map((one) => one.measure).join("-")}.${kind}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  // -- stories ------------------------------------------------------------------------------------------------
  const NEAR = 2e-10;
  const story = ({ about: run, flow, at }) => {
    const found = run.stories.find((one) => one.flow === flow && Math.abs(one.at - at) < NEAR);
    if (found) return new DOMParser().parseFromString(found.text, "text/html").body.childNodes;
    const said = document.createElement("p");
    said.className = "empty";
    said.innerHTML = "This file tells the stories of the slowest messages of the flows under “What explains it”. Of any other message, the server tells it: <code>wiregauge serve</code>.";
    return [said];
  };

  const fragment = () => location.hash.startsWith(`#${NAME}?`) ? location.hash.slice(NAME.length + 1) : "";
  drawMessages({
    runs: about.runs,
    address: {
      read: fragment,
      write: (text, push) => history[push ? "pushState" : "replaceState"](null, "", `#${NAME}${text}`),
      changed: (told) => addEventListener("popstate", told),
    },
    columns: async (asked) => columns(asked),
    distribution: async (asked) => distribution(asked),
    story: async (asked) => story(asked),
    save,
  });
};
