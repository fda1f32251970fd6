// Keeps the page new: asks for it again and changes only what differs, so that focus, scroll, selection and what is
// opened stay. Without this script every page works the same; it is then as old as its last loading.
"use strict";
(() => {
  const period = Number(document.body.dataset.refresh || 5) * 1000;
  const patience = 8000;
  const banner = document.getElementById("stale");
  const button = document.getElementById("pause");
  let answeredAt = new Date();
  let paused = false;
  // A browser may be told to keep nothing.
  try { paused = sessionStorage.getItem("paused") === "yes"; } catch { paused = false; }

  const keyOf = (node) => (node.nodeType === 1 ? node.id || node.dataset.key || "" : "");

  function sameAttributes(old, fresh) {
    for (const { name } of [...old.attributes]) {
      const keeps = name === "open" && old.nodeName === "DETAILS";
      if (!keeps && !fresh.hasAttribute(name)) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      const keeps = name === "open" && old.nodeName === "DETAILS";
      if (!keeps && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
  }

  // Makes `old` like `fresh`. Children with a key are found again wherever they stand; forms are left to their user.
  function morph(old, fresh) {
    if (old.nodeName === "FORM") return;
    sameAttributes(old, fresh);
    const keyed = new Map();
    for (const child of old.childNodes) if (keyOf(child)) keyed.set(keyOf(child), child);
    let place = old.firstChild;
    for (const wanted of [...fresh.childNodes]) {
      const key = keyOf(wanted);
      let match = key ? keyed.get(key) : null;
      if (!key && place && !keyOf(place) && place.nodeName === wanted.nodeName) match = place;
      if (match && match.nodeName === wanted.nodeName) {
        if (match === place) place = place.nextSibling;
        // An element that holds the focus would lose it by being moved: the others are moved around it.
        else if (match.contains(document.activeElement)) { while (place !== match) { const gone = place; place = place.nextSibling; old.appendChild(gone); } place = match.nextSibling; }
        else old.insertBefore(match, place);
        keyed.delete(key);
        if (match.nodeType === 1) morph(match, wanted);
        else if (match.data !== wanted.data) match.data = wanted.data;
      } else {
        old.insertBefore(document.importNode(wanted, true), place);
      }
    }
    while (place) { const gone = place; place = place.nextSibling; gone.remove(); }
  }

  function told(text) {
    if (banner.textContent !== text) banner.textContent = text;
  }

  async function refresh() {
    const asked = location.href;
    try {
      const answer = await fetch(asked, { cache: "no-store", signal: AbortSignal.timeout(patience) });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!page.body.dataset.refresh) throw new Error("not our page");
      if (paused || asked !== location.href) return;
      for (const old of document.querySelectorAll("[data-live]")) {
        const fresh = page.getElementById(old.id);
        if (fresh) morph(old, fresh);
      }
      document.title = page.title;
      answeredAt = new Date();
      told("");
    } catch {
      const at = answeredAt.toISOString().slice(0, 19).replace("T", " ");
      told(`Stale: the exporter has not answered since ${at} UTC. What is shown is from then.`);
    }
  }

  async function run() {
    if (!paused && document.visibilityState === "visible") await refresh();
    setTimeout(run, period);
  }

  function show() {
    button.textContent = paused ? "Resume" : "Pause";
    button.setAttribute("aria-pressed", String(paused));
    button.title = paused ? "This page does not refresh" : `This page refreshes every ${period / 1000} seconds`;
  }

  button.addEventListener("click", () => {
    paused = !paused;
    try { sessionStorage.setItem("paused", paused ? "yes" : "no"); } catch { /* Then it holds for this page. */ }
    show();
    if (!paused) refresh();
  });
  document.addEventListener("visibilitychange", () => {
    if (!paused && document.visibilityState === "visible") refresh();
  });
  button.hidden = false;
  show();
  setTimeout(run, period);
})();
