"use strict";
// A campaign under way: its live file is asked for once a second, and every value of it is put in as text.
(() => {
  const page = document.getElementById("live");
  const about = JSON.parse(document.getElementById("about").textContent);
  const by = (id) => document.getElementById(id);
  const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  const time = (ns) => {
    if (ns === null) return "–";
    const [size, unit] = UNITS.find(([one]) => Math.abs(ns) >= one * 0.9995) || UNITS[3];
    return `${Number((ns / size).toPrecision(3))} ${unit}`;
  };
  const clock = (s) => `${Math.floor(s / 60)}:${String(Math.floor(s % 60)).padStart(2, "0")}`;
  const percent = (share) => share && share < 0.001 ? "< 0.1 %" : `${Number((100 * share).toPrecision(2))} %`;
  const element = (tag, text) => {
    const made = document.createElement(tag);
    made.textContent = text;
    return made;
  };
  const svg = (tag, given) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(given)) made.setAttribute(name, value);
    return made;
  };
  const put = (node, text) => { if (node.textContent !== text) node.textContent = text; };

  // The greatest of each stretch as a bar, on a logarithmic scale; stretches with losses have a tick below.
  const WIDE = 180, HIGH = 26;
  const course = (stretches) => {
    const known = stretches.map(([, , greatest]) => greatest).filter((one) => one !== null && one > 0);
    const drawn = svg("svg", { class: "course", width: WIDE, height: HIGH + 5, viewBox: `0 0 ${WIDE} ${HIGH + 5}`, role: "img" });
    const most = Math.max(...known), least = Math.min(...known), end = stretches.at(-1)?.[1] || 1;
    const lost = stretches.reduce((sum, one) => sum + one[3], 0);
    drawn.setAttribute("aria-label", known.length ? `from ${time(least)} to ${time(most)}, ${lost} lost` : "nothing measured");
    const low = Math.log(least / 1.5), high = Math.log(most * 1.05);
    for (const [from, to, greatest, gone] of stretches) {
      const x = WIDE * from / end, width = Math.max(WIDE * (to - from) / end - 0.3, 0.7);
      if (greatest > 0) {
        const tall = Math.max(HIGH * (Math.log(greatest) - low) / (high - low || 1), 1);
        drawn.append(svg("rect", { x, y: HIGH - tall, width, height: tall }));
      }
      if (gone > 0) drawn.append(svg("rect", { x, y: HIGH + 1, width: Math.max(width, 2), height: 4, class: "gone" }));
    }
    return drawn;
  };

  const rows = (table, wanted) => {
    const body = table.tBodies[0];
    while (body.rows.length > wanted) body.deleteRow(-1);
    while (body.rows.length < wanted) {
      const row = body.insertRow();
      for (const head of table.tHead.rows[0].cells) row.insertCell().className = head.className;
    }
    return body.rows;
  };
  const flows = (live) => {
    const now = live.now;
    by("flowpart").hidden = !now;
    if (!now) return;
    const beyond = new Set(live.limits.flatMap((limit) => limit.beyond));
    const found = rows(by("flows"), now.flows.length);
    now.flows.forEach((flow, k) => {
      const cells = found[k].cells;
      const texts = [String(flow.flow), `${flow.source} → ${flow.destination}${flow.measure === "rtt" ? " and back" : ""}`, String(Math.round(flow.rate)), String(flow.sent), String(flow.lost), time(flow.p50_ns), time(flow.p99_ns), time(flow.max_ns), time(flow.late_ns)];
      texts.forEach((text, place) => put(cells[place], text));
      cells[4].classList.toggle("bad", flow.lost > 0);
      found[k].classList.toggle("beyond", beyond.has(flow.flow));
      cells[9].replaceChildren(course(live.courses[flow.flow] || []));
    });
    const notes = [];
    if (now.left_out) notes.push(`${now.left_out} flows have no live figures.`);
    if (now.dropped) notes.push(`The instrument lost ${now.dropped} records.`);
    put(by("flownote"), notes.join(" "));
  };
  const traffic = (live) => {
    const loads = about.traffic.rates.map(() => [0, 0]);
    for (const flow of live.now?.flows || []) {
      const planned = about.traffic.flows[flow.flow];
      for (const [link, direction] of planned?.links || []) loads[link][direction] += flow.rate * planned.bits / about.traffic.rates[link];
    }
    const ports = new Map((live.now?.ports || []).map((one) => [JSON.stringify([one.node, one.port]), one]));
    by("stays").hidden = !live.now?.ports;
    by("nostays").hidden = Boolean(live.now?.ports);
    loads.forEach((load, link) => {
      const left = about.traffic.ports[link].map((port) => ports.get(JSON.stringify(port)) ?? null);
      const longest = Math.max(...left.map((port) => port?.longest_ns ?? 0));
      const most = Math.max(...load), known = Boolean(live.now);
      const drawn = document.querySelector(`svg.network [data-link="${link}"]`);
      drawn.style.setProperty("--load", Math.min(Math.sqrt(most), 1));
      drawn.classList.toggle("busy", most > 0);
      const word = drawn.querySelector("text");
      if (word) put(word, [most > 0 ? percent(most) : "", longest > 0 ? time(longest) : ""].filter(Boolean).join(", "));
      const cells = document.querySelector(`#links [data-link="${link}"]`).cells;
      load.forEach((one, direction) => { put(cells[2 + direction], known ? percent(one) : "–"); put(cells[4 + direction], time(left[direction]?.longest_ns ?? null)); put(cells[6 + direction], left[direction] ? String(left[direction].queued) : "–"); });
    });
    const lost = new Map();
    for (const flow of live.now?.flows || []) lost.set(flow.destination, (lost.get(flow.destination) || 0) + flow.lost);
    document.querySelectorAll("svg.network [data-node]").forEach((node) => node.classList.toggle("loses", lost.get(node.dataset.node) > 0));
  };
  const clocks = (live) => {
    const known = live.now?.clocks || [];
    by("clockpart").hidden = !known.length;
    const found = rows(by("clocks"), known.length);
    known.forEach((one, k) => {
      const cells = found[k].cells;
      [one.node, one.source, one.state || "not synchronised by anything", time(one.offset_ns), clock(Math.max(one.at_s, 0))].forEach((text, place) => put(cells[place], text));
      cells[2].classList.toggle("bad", one.synchronised === false);
    });
    const agreed = known.filter((one) => one.synchronised && one.offset_ns !== null && (one.source === "AS6802" || one.source === "PTP"));
    const offsets = agreed.map((one) => one.offset_ns);
    put(by("spread"), agreed.length > 1 ? `The ${agreed.length} synchronised ones are at most ${time(Math.max(...offsets) - Math.min(...offsets))} apart.` : "");
    const loose = new Set(known.filter((one) => one.synchronised === false).map((one) => one.node));
    document.querySelectorAll("svg.network [data-node]").forEach((node) => node.classList.toggle("loose", loose.has(node.dataset.node)));
  };
  const limits = (live) => {
    by("limitpart").hidden = !live.limits.length;
    const found = rows(by("limits"), live.limits.length);
    live.limits.forEach((limit, k) => {
      const cells = found[k].cells;
      const more = limit.beyond.length > 4 ? ` and ${limit.beyond.length - 4} more` : "";
      const now = !limit.has_figures ? "known at the end of the run" : limit.beyond.length ? `beyond it: flow ${limit.beyond.slice(0, 4).join(", ")}${more}` : limit.seconds ? `kept; beyond it in ${limit.seconds} of the seconds so far` : "kept so far";
      [`${limit.measure} ${limit.written}`, limit.flow === null ? "all" : String(limit.flow), now, limit.worst || "–"].forEach((text, place) => put(cells[place], text));
      cells[2].classList.toggle("bad", limit.beyond.length > 0);
      found[k].classList.toggle("beyond", limit.beyond.length > 0);
    });
  };
  let last = "";
  const said = (lines) => {
    by("none").hidden = lines.length > 0;
    const all = JSON.stringify(lines);
    if (all !== last) by("told").replaceChildren(...lines.toReversed().map((line) => element("li", line)));
    last = all;
  };
  const under = (live) => {
    const shares = Object.entries(live.shares);
    by("runpart").hidden = live.runs < 2 || !shares.length;
    by("runs").replaceChildren(...shares.slice(0, 30).map(([run, share]) => element("li", `run ${run}: ${percent(share)}`)));
  };
  const show = (live, asked) => {
    by("share").value = live.share;
    const left = live.left_s === null ? "" : `, about ${clock(live.left_s)} left`;
    const of = live.runs > 1 ? `, ${live.ended} of ${live.runs} runs done` : "";
    const second = live.now ? `, ${live.now.seconds.toFixed(0)} s into run ${live.now.index}` : "";
    put(by("state"), `${asked ? "It is asked to stop" : "Running"}: ${percent(live.share)} done${left}${of}${second}.`);
    by("virtual").hidden = !live.virtual_time;
    by("real").hidden = live.virtual_time;
    flows(live);
    traffic(live);
    clocks(live);
    limits(live);
    under(live);
    said(live.told);
  };

  let over = false;
  const look = async () => {
    if (document.hidden || over) return;
    let trouble = "";
    try {
      const answer = await fetch(page.dataset.now, { cache: "no-store" });
      const found = await answer.json();
      if (!answer.ok) {
        over = answer.status === 404;
        trouble = over ? "This run is gone: its directory was removed or moved." : found.error;
      } else if (found.over) {
        over = true;
        location.reload();
      } else {
        trouble = found.trouble;
        if (found.live) show(found.live, found.asked);
        if (found.asked && by("stop")) by("stop").hidden = true;
      }
    } catch {
      trouble = "The server does not answer; what stands here is the last that it said.";
    }
    page.classList.toggle("gone", Boolean(trouble));
    by("trouble").hidden = !trouble;
    put(by("trouble"), trouble);
    if (over) put(by("state"), trouble ? "It is not known how it went on." : "It has ended.");
  };
  const again = async () => {
    await look();
    if (!over) setTimeout(again, 1000);
  };
  document.addEventListener("visibilitychange", look);
  again();
})();
