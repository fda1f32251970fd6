// Plays a recording: another pass is another address, /pass/NUMBER/…, which tidemark.js then fetches.
// Without this script, the links lead to the passes.
"use strict";
(() => {
  const recording = document.getElementById("recording");
  const slider = document.getElementById("position");
  const speed = document.getElementById("speed");
  const buttons = { 1: document.getElementById("play"), [-1]: document.getElementById("play-back") };
  const last = Number(recording.dataset.passes);
  const period = Number(recording.dataset.period) * 1000;
  // While it plays, the least time from one page to the next.
  const pause = 250;
  // Where playing began, and which way it goes; 0: it does not.
  let from = 1, since = 0, way = 0, loading = false, wanted = 0;

  const shown = () => Number(document.getElementById("recording-at").dataset.number);
  const bounded = (number) => Math.min(Math.max(1, Math.round(number)), last);

  // One page at a time: of the passes that are asked for meanwhile, the newest one follows.
  function go(number) {
    wanted = bounded(number);
    if (loading || wanted === shown()) return;
    loading = true;
    const path = location.pathname.replace(/\/pass\/\d+\//, `/pass/${wanted}/`);
    history.replaceState(null, "", path + location.search + location.hash);
    recording.dispatchEvent(new Event("pass"));
  }

  function play(direction) {
    way = direction;
    if (way === 1 && shown() === last) go(1);
    if (way === -1 && shown() === 1) go(last);
    from = wanted || shown();
    since = performance.now();
    for (const [each, button] of Object.entries(buttons)) button.setAttribute("aria-pressed", String(Number(each) === way));
  }

  function tick() {
    if (!way) return;
    const passed = (performance.now() - since) * Number(speed.value);
    const number = from + way * (period > 0 ? passed / period : 1);
    if (bounded(number) !== wanted) go(way > 0 ? Math.floor(number) : Math.ceil(number));
    if (number <= 1 || number >= last) play(0);
  }

  recording.addEventListener("shown", () => {
    loading = false;
    slider.value = shown();
    if (wanted !== shown()) go(wanted);
  });
  for (const [each, button] of Object.entries(buttons)) {
    button.addEventListener("click", () => play(way === Number(each) ? 0 : Number(each)));
  }
  speed.addEventListener("change", () => { if (way) play(way); });
  slider.addEventListener("input", () => { play(0); go(Number(slider.value)); });
  recording.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-number]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    play(0);
    go(Number(link.dataset.number));
  });
  slider.value = wanted = shown();
  recording.querySelector(".player").hidden = false;
  setInterval(tick, pause);
})();
