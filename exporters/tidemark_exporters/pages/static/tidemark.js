// Refreshes the page: fetches it again and changes only what differs. Focus, scroll position, selection and open details
// stay. Every page also works without this script, as of the time it was loaded.
"use strict";
(() => {
  const period = Number(document.body.dataset.refresh || 5) * 1000;
  const timeout = 8000;
  const banner = document.getElementById("stale");
  const button = document.getElementById("pause");
  const recording = document.getElementById("recording");
  let answeredAt = new Date();
  let paused = false;
  // A browser can be configured to store nothing.
  try { paused = sessionStorage.getItem("paused") === "yes"; } catch { paused = false; }

  // An address in a page that was divided: its entry has the link to the new page.
  const entry = document.getElementById(location.hash.slice(1));
  const moved = entry?.matches(".document li a:empty") && [...entry.closest("li").querySelectorAll("a[href]")].pop();
  if (moved) location.replace(moved.href);

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

  // Makes `old` equal to `fresh`. Children with a key are matched at any position. Forms keep what the user typed.
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
        // A moved element loses the focus: move the others around the one that has it.
        else if (match.contains(document.activeElement)) {
          while (place !== match) { const moved = place; place = place.nextSibling; old.appendChild(moved); }
          place = match.nextSibling;
        }
        else old.insertBefore(match, place);
        keyed.delete(key);
        if (match.nodeType === 1) morph(match, wanted);
        else if (match.data !== wanted.data) match.data = wanted.data;
      } else {
        old.insertBefore(document.importNode(wanted, true), place);
      }
    }
    while (place) { const removed = place; place = place.nextSibling; removed.remove(); }
  }

  function setBanner(text) {
    if (banner.textContent !== text) banner.textContent = text;
  }

  async function refresh() {
    const url = location.href;
    try {
      const response = await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(timeout) });
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      if (!page.body.dataset.refresh) throw new Error("not our page");
      if (paused || url !== location.href) return;
      for (const old of document.querySelectorAll("[data-live]")) {
        const fresh = page.getElementById(old.id);
        if (fresh) morph(old, fresh);
      }
      document.title = page.title;
      answeredAt = new Date();
      setBanner("");
    } catch {
      const at = answeredAt.toISOString().slice(0, 19).replace("T", " ");
      setBanner(`Stale: the exporter has not answered since ${at} UTC. The data shown is from then.`);
    }
  }

  async function run() {
    if (!paused && document.visibilityState === "visible") await refresh();
    setTimeout(run, period);
  }

  function showButton() {
    button.textContent = paused ? "Resume" : "Pause";
    button.setAttribute("aria-pressed", String(paused));
    button.title = paused ? "This page does not refresh" : `This page refreshes every ${period / 1000} seconds`;
  }

  // A recording changes only when the user goes to another pass: recording.js asks for it.
  if (recording) {
    recording.addEventListener("pass", async () => {
      await refresh();
      recording.dispatchEvent(new Event("shown"));
    });
    return;
  }
  button.addEventListener("click", () => {
    paused = !paused;
    try { sessionStorage.setItem("paused", paused ? "yes" : "no"); } catch { /* Then the choice holds for this page only. */ }
    showButton();
    if (!paused) refresh();
  });
  document.addEventListener("visibilitychange", () => {
    if (!paused && document.visibilityState === "visible") refresh();
  });
  button.hidden = false;
  showButton();
  setTimeout(run, period);
})();
