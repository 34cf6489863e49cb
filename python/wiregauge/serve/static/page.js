"use strict";
// What every page of the server does: a part that changed is fetched again and put in the place of the old one.
(() => {
  const again = async (selector, address) => {
    const answer = await fetch(address, { headers: { accept: "text/html" } });
    if (!answer.ok) return false;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(selector);
    const old = document.querySelector(selector);
    if (!fresh || !old) return false;
    // The reader's place in the page and the element in focus stay.
    const focused = document.activeElement?.getAttribute("href");
    const inside = old.contains(document.activeElement);
    old.replaceWith(document.adoptNode(fresh));
    if (inside && focused) document.querySelector(`${selector} a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    return true;
  };
  const form = document.querySelector("form[data-follow]");
  if (form) {
    const selector = form.dataset.follow;
    const address = () => {
      const given = new URLSearchParams(new FormData(form));
      for (const [name, value] of [...given]) if (!value) given.delete(name);
      return `${location.pathname}${given.size ? "?" : ""}${given}`;
    };
    let waiting;
    const ask = () => {
      clearTimeout(waiting);
      waiting = setTimeout(async () => {
        const place = address();
        if (await again(selector, place)) history.replaceState(null, "", place);
      }, 120);
    };
    form.addEventListener("input", ask);
    form.addEventListener("submit", (event) => { event.preventDefault(); ask(); });
  }
  // A hidden page asks for nothing; it looks when it is seen again.
  const watched = document.querySelector("[data-changes]");
  if (watched) {
    const selector = `#${watched.id}`;
    const look = async () => {
      if (document.hidden) return;
      try {
        const { version, complete } = await (await fetch(watched.dataset.changes)).json();
        const now = document.querySelector(selector);
        now.classList.remove("gone");
        if (String(version) !== now.dataset.version || !complete) await again(selector, location.href);
      } catch { document.querySelector(selector).classList.add("gone"); }
    };
    setInterval(look, 2000);
    document.addEventListener("visibilitychange", look);
  }
  const waits = document.querySelector("[data-again]");
  if (waits) setTimeout(() => location.reload(), Number(waits.dataset.again));
})();
