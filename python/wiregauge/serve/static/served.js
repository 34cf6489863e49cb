"use strict";
// Messages against time from the server: it answers with the columns of a window, and stories as pages.
(() => {
  const page = document.getElementById("zoom").dataset;
  const answered = async (place, signal) => {
    const answer = await fetch(place, { signal });
    const said = await answer.json();
    if (!answer.ok) throw new Error(said.error);
    return said;
  };
  drawMessages({
    runs: [JSON.parse(document.getElementById("about").textContent)],
    address: {
      read: () => location.search,
      write: (text, push) => history[push ? "pushState" : "replaceState"](null, "", text),
      changed: (told) => addEventListener("popstate", told),
    },
    columns: ({ address, columns, signal }) => answered(`${page.columns}${address}&columns=${columns}`, signal),
    distribution: ({ address, signal }) => answered(`${page.distribution}${address}`, signal),
    story: async ({ about, flow, measure, at }) => {
      const given = new URLSearchParams({ run: about.run, of: flow, by: measure, at });
      const answer = await fetch(`${page.story}?${given}`, { headers: { accept: "text/html" } });
      const found = new DOMParser().parseFromString(await answer.text(), "text/html");
      return document.adoptNode(found.querySelector("main")).childNodes;
    },
  });
})();
