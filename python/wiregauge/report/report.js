"use strict";
(() => {
  // The buttons are named one by one: the default bar has one that would send the data away.
  const settings = { responsive: true, displaylogo: false, modeBarButtons: [["toImage"], ["zoom2d", "pan2d", "resetScale2d"]], toImageButtonOptions: { format: "svg" } };
  const plots = [...document.querySelectorAll(".plot")];
  const folds = [...document.querySelectorAll("details")];
  // A zoom below about a decade leaves few of the fixed ticks in view: let the axis choose its own until the zoom ends.
  const retick = (plot) => (change) => {
    const update = {};
    for (const [key, axis] of Object.entries(plot.layout)) {
      if (!/^[xy]axis\d*$/.test(key) || axis.type !== "log" || !axis.tickvals) continue;
      const reset = change[key + ".autorange"] || change[key + ".range"] !== undefined && change[key + ".range[0]"] === undefined;
      if (reset) { if (axis.tickmode === "auto") update[key + ".tickmode"] = "array"; continue; }
      if (change[key + ".range[0]"] === undefined) continue;
      const mode = Math.abs(axis.range[1] - axis.range[0]) < 0.8 ? "auto" : "array";
      if ((axis.tickmode || "array") !== mode) update[key + ".tickmode"] = mode;
    }
    if (Object.keys(update).length) Plotly.relayout(plot, update);
  };
  // A plot below a closed fold has no width to be drawn in: it waits until the fold opens.
  const drawn = new Set();
  const draw = (plot) => {
    if (!window.Plotly || drawn.has(plot) || !plot.offsetWidth) return;
    drawn.add(plot);
    const figure = JSON.parse(document.getElementById("data-" + plot.dataset.figure).textContent);
    Plotly.newPlot(plot, figure.data, figure.layout, { ...settings, ...figure.config, displayModeBar: figure.config.displayModeBar && "hover" }).then(() => plot.on("plotly_relayout", retick(plot)));
    document.body.dataset.drawn = String(drawn.size);
  };
  const visible = new IntersectionObserver((seen) => seen.forEach((entry) => entry.isIntersecting && draw(entry.target)), { rootMargin: "400px" });
  // The library that draws is deflated: a page is 0.8 MB smaller. What is unpacked runs as an inline script of the page.
  const inflate = (id) => {
    const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")));
  };
  const inflated = (id) => inflate(id).text();
  const load = async (id) => {
    const library = document.createElement("script");
    library.textContent = await inflated(id);
    document.head.append(library);
  };
  const unpack = async () => {
    await load("plotly");
    plots.forEach((plot) => visible.observe(plot));
    if (location.hash === "#all") plots.forEach(draw);
  };
  const tooOld = (what) => `This browser cannot unpack ${what}: a version of 2023 or newer can (DecompressionStream).`;
  const refused = () => plots.forEach((plot) => { plot.textContent = tooOld("the library that draws"); });
  if (plots.length) unpack().catch(refused);
  document.querySelectorAll(".legend button").forEach((button) => button.addEventListener("click", () => {
    const plot = button.closest("figure").querySelector(".plot");
    if (!plot.data) return;
    const off = button.classList.toggle("off");
    const own = plot.data.flatMap((trace, k) => trace.legendgroup === button.dataset.group ? [k] : []);
    Plotly.restyle(plot, { visible: !off }, own);
  }));
  const unfold = () => { folds.forEach((fold) => { fold.open = true; }); plots.forEach(draw); };
  document.getElementById("unfold")?.addEventListener("click", unfold);
  // Very many flows are data until they are looked at: a page of rows at a time, sorted by a column, searched by words.
  const every = document.getElementById("all-flows");
  const table = async () => {
    const rows = JSON.parse(await inflated("all-flows-rows"));
    const heads = [...every.querySelectorAll("th")], body = every.querySelector("tbody"), search = every.querySelector("input");
    const named = heads.findIndex((head) => head.textContent === "flow");
    const longest = heads.findIndex((head) => head.firstChild.textContent === "max");
    let column = longest, up = false, first = 0, found = rows;
    const lines = 50;
    const order = (a, b) => {
      const [x, y] = up ? [a[column], b[column]] : [b[column], a[column]];
      if (a[column] === null || b[column] === null) return (a[column] === null) - (b[column] === null);
      return typeof x === "number" ? x - y : String(x).localeCompare(String(y), undefined, { numeric: true });
    };
    const show = () => {
      body.replaceChildren(...found.slice(first, first + lines).map((row) => {
        const line = document.createElement("tr");
        row.forEach((value, k) => {
          const cell = line.insertCell();
          cell.textContent = value === null ? "–" : heads[k].querySelector(".unit") ? value.toFixed(2) : value;
          if (typeof value === "string") cell.className = "text short";
          if (value && heads[k].textContent === "lost") cell.className = "bad";
        });
        return line;
      }));
      const last = Math.min(first + lines, found.length);
      every.querySelector(".found").textContent = `${found.length ? first + 1 : 0} to ${last} of ${found.length}${found.length < rows.length ? ` found among ${rows.length}` : ""}`;
      heads.forEach((head, k) => head.setAttribute("aria-sort", k !== column ? "none" : up ? "ascending" : "descending"));
    };
    const choose = () => {
      const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
      // A number is that of a flow, anything else a part of a name.
      found = rows.filter((row) => words.every((word) => /^\d+$/.test(word) ? String(row[named]) === word : row.some((value) => typeof value === "string" && value.toLowerCase().includes(word)))).sort(order);
      first = 0;
      show();
    };
    heads.forEach((head, k) => head.addEventListener("click", () => { up = k === column ? !up : typeof rows[0][k] === "string" || k === named; column = k; choose(); }));
    search.addEventListener("input", choose);
    every.querySelectorAll("button").forEach((button) => button.addEventListener("click", () => {
      const to = first + lines * button.dataset.turn;
      if (to >= 0 && to < found.length) { first = to; show(); }
    }));
    choose();
  };
  if (every) {
    const fill = () => table().catch(() => { every.querySelector(".found").textContent = tooOld("the rows"); });
    if (every.open) fill(); else every.addEventListener("toggle", fill, { once: true });
  }
  // Every message against time is drawn once its fold opens.
  const messages = document.getElementById("messages-values") && document.getElementById("messages");
  if (messages) {
    const fill = async () => {
      try {
        const [about, values] = await Promise.all([inflated("messages-about"), inflate("messages-values").arrayBuffer(), load("messages-script")]);
        drawEmbedded(JSON.parse(about), new Uint8Array(values));
      } catch { document.getElementById("panels").textContent = tooOld("the messages"); }
    };
    messages.addEventListener("toggle", fill, { once: true });
  }
  // A link leads to what it names, folded or not; "#all" opens everything.
  const lead = () => {
    const name = decodeURIComponent(location.hash.slice(1).split("?")[0]);
    if (name === "all") { unfold(); return; }
    const target = name && document.getElementById(name);
    if (!target) return;
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", lead);
  document.addEventListener("click", (event) => { if (event.target.closest?.("a[href^='#']")) setTimeout(lead); });
  lead();
  // Paper shows everything, and has one width, whatever the window had: 1120 px at the zoom that report.css sets for print.
  let closed = [];
  const fit = (size) => plots.forEach((plot) => { if (plot.layout) Plotly.relayout(plot, size); });
  addEventListener("beforeprint", () => { closed = folds.filter((fold) => !fold.open); folds.forEach((fold) => { if (!fold.classList.contains("long")) fold.open = true; }); plots.forEach(draw); fit({ width: 1120 }); });
  addEventListener("afterprint", () => { fit({ width: null, autosize: true }); closed.forEach((fold) => { fold.open = false; }); });
})();
