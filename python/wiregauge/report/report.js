"use strict";
(() => {
  // The buttons are named one by one: the default bar has one that would send the data away.
  const settings = { responsive: true, displaylogo: false, modeBarButtons: [["toImage"], ["zoom2d", "pan2d", "resetScale2d"]], toImageButtonOptions: { format: "svg" } };
  const plots = [...document.querySelectorAll(".plot")];
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
  const draw = (plot) => {
    const figure = JSON.parse(document.getElementById("data-" + plot.dataset.figure).textContent);
    return Plotly.newPlot(plot, figure.data, figure.layout, { ...settings, ...figure.config, displayModeBar: figure.config.displayModeBar && "hover" }).then(() => plot.on("plotly_relayout", retick(plot)));
  };
  const next = (k) => { if (k < plots.length) draw(plots[k]).then(() => setTimeout(next, 0, k + 1)); else document.body.dataset.drawn = String(k); };
  next(0);
  const open = (state) => document.querySelectorAll("details.fold").forEach((fold) => { if (state || fold.dataset.wasOpen === undefined) { fold.dataset.wasOpen = fold.open ? "1" : ""; fold.open = true; } else { fold.open = fold.dataset.wasOpen === "1"; delete fold.dataset.wasOpen; } });
  // Paper has one width, whatever the window had: 1040 px at the zoom that report.css sets for print.
  const fit = (size) => plots.forEach((plot) => { if (plot.layout) Plotly.relayout(plot, size); });
  addEventListener("beforeprint", () => { open(true); fit({ width: 1040 }); });
  addEventListener("afterprint", () => { open(false); fit({ width: null, autosize: true }); });
})();
