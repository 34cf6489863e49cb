"use strict";
// A test is checked while it is typed; what the language allows at the cursor is offered.
(() => {
  const form = document.getElementById("edit"), text = document.getElementById("text");
  const choices = document.getElementById("choices"), changed = document.getElementById("changed");
  const begin = text.value;
  let language = {};

  // -- check ------------------------------------------------------------------------------------------------------
  let waiting, asking;
  const run = () => document.querySelector("#start button");
  const check = async () => {
    asking?.abort();
    asking = new AbortController();
    try {
      const answer = await fetch(form.dataset.check, { method: "POST", body: new URLSearchParams({ text: text.value }), signal: asking.signal });
      const found = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("checked");
      if (found) document.getElementById("checked").replaceWith(document.adoptNode(found));
    } catch (error) {
      if (error.name !== "AbortError") document.getElementById("checked").textContent = "It is not checked: the server does not answer.";
    }
  };
  text.addEventListener("input", () => {
    const differs = text.value !== begin;
    if (changed) changed.textContent = differs ? "not stored yet" : "";
    if (run()) run().disabled = differs;
    clearTimeout(waiting);
    waiting = setTimeout(check, 350);
    offer();
  });
  document.addEventListener("click", ({ target }) => {
    const line = Number(target.dataset?.line);
    if (!line) return;
    const lines = text.value.split("\n");
    const from = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    text.focus();
    text.setSelectionRange(from, from + lines[line - 1].length);
    text.scrollTop = Math.max(line - 5, 0) * parseFloat(getComputedStyle(text).lineHeight);
  });
  addEventListener("beforeunload", (event) => { if (text.value !== begin && !form.dataset.sent) event.preventDefault(); });
  form.addEventListener("submit", () => { form.dataset.sent = "yes"; });

  // -- completion ---------------------------------------------------------------------------------------------------
  const parent = (before) => {
    const open = [];
    for (const [, end, name, closed] of before.replace(/<!--[^]*?-->/g, "").matchAll(/<(\/?)([\w-]+)(?:"[^"]*"|'[^']*'|[^<>"'])*?(\/?)>/g)) {
      if (end) open.pop();
      else if (!closed) open.push(name);
    }
    return open.at(-1);
  };
  const here = () => {
    const before = text.value.slice(0, text.selectionStart), start = before.lastIndexOf("<");
    const tag = before.slice(start);
    const name = tag.match(/^<([\w-]*)$/);
    if (start >= 0 && name) {
      const above = parent(before.slice(0, start));
      const known = above === undefined ? ["test"] : language[above]?.holds || [];
      return known.filter((one) => one.startsWith(name[1])).map((one) => ({ show: `<${one}>`, put: one.slice(name[1].length), says: language[one]?.says }));
    }
    const inside = tag.match(/^<([\w-]+)\s(?:[^<>"]|"[^"]*")*?(?:([\w-]+)\s*=\s*"([^"]*))?$/);
    if (start < 0 || !inside) return [];
    const attributes = language[inside[1]]?.attributes || {};
    if (inside[2]) {
      return (attributes[inside[2]]?.choices || []).filter((one) => one.startsWith(inside[3])).map((one) => ({ show: one, put: one.slice(inside[3].length), says: "" }));
    }
    const typed = tag.match(/[\w-]*$/)[0];
    const there = new Set([...tag.matchAll(/([\w-]+)\s*=/g)].map((one) => one[1]));
    return Object.entries(attributes).filter(([one]) => one.startsWith(typed) && !there.has(one)).map(([one, about]) => ({ show: one + (about.required ? " (required)" : ""), put: `${one.slice(typed.length)}=""`, back: 1, says: about.says }));
  };
  const offer = () => {
    const before = text.value.slice(0, text.selectionStart).split("\n");
    document.getElementById("caret").textContent = `Line ${before.length}, column ${before.at(-1).length + 1}.`;
    choices.replaceChildren(...here().slice(0, 40).map((one) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = one.show;
      button.title = one.says || "";
      button.addEventListener("click", () => {
        const at = text.selectionStart;
        text.setRangeText(one.put, at, text.selectionEnd, "end");
        text.setSelectionRange(at + one.put.length - (one.back || 0), at + one.put.length - (one.back || 0));
        text.focus();
        text.dispatchEvent(new Event("input"));
      });
      return button;
    }));
  };
  text.addEventListener("keyup", offer);
  text.addEventListener("click", offer);
  text.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) { event.preventDefault(); offer(); choices.querySelector("button")?.focus(); }
  });
  choices.addEventListener("keydown", (event) => { if (event.key === "Escape") text.focus(); });
  fetch(form.dataset.language).then(async (answer) => { language = await answer.json(); offer(); });
})();
