"use strict";

// The story of this page, step by step. Everything that is shown comes from the JSON in the page.
const story = JSON.parse(document.getElementById("story").textContent);
const names = Object.keys(story.runs);
const element = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const ROW = 54;
// Room at the right for the mark of a log that is as long as the longest.
const ROOM = 0.35;
let step = 0;

function make(parent, name, attributes, text) {
  const svg = parent.namespaceURI === SVG || name === "svg";
  const made = svg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

const longest = Math.max(
  2,
  ...Object.values(story.runs).flatMap((run) =>
    run.steps.flatMap((one) => one.brokers.map((broker) => broker.log_end_offset))));
const at = (offset) => `${(100 * offset) / (longest + ROOM)}%`;

// The step of another run that the same line of the script made; its last one before, if it made none.
function matching(run, one, steps) {
  const place = (of, index) => {
    let first = index;
    while (first > 0 && of[first - 1].line === of[index].line) first -= 1;
    return [of[index].line, index - first];
  };
  const [line, nth] = place(steps, one);
  let found = 0;
  run.steps.forEach((other, index) => {
    const [otherLine, otherNth] = place(run.steps, index);
    if (otherLine < line || (otherLine === line && otherNth <= nth)) found = index;
  });
  return found;
}

function draw(parent, brokers, before) {
  const drawing = make(parent, "div", { class: "drawing" });
  const svg = make(drawing, "svg", {
    width: "100%", height: ROW * brokers.length + 20, class: "logs", role: "img",
    "aria-label": brokers.map((broker) =>
      `broker ${broker.id} ${broker.state}: log end offset ${broker.log_end_offset}, ` +
      `high watermark ${broker.high_watermark}`).join("; "),
  });
  for (let offset = 0; offset <= longest; offset += 1) {
    make(svg, "line", { class: "grid", x1: at(offset), x2: at(offset), y1: 0, y2: ROW * brokers.length + 4 });
    make(svg, "text", { class: "tick", x: at(offset), y: ROW * brokers.length + 16 }, offset);
  }
  brokers.forEach((broker, index) => {
    const y = ROW * index;
    const group = make(svg, "g", {
      class: `replica ${broker.state}`, "data-broker": broker.id, "data-state": broker.state,
      "data-log-end-offset": broker.log_end_offset, "data-high-watermark": broker.high_watermark,
      "data-epochs": broker.epochs.map(([epoch, start]) => `${epoch}@${start}`).join(" "),
      "data-log": broker.log.map(([epoch, id]) => `${id}/${epoch}`).join(" "),
    });
    const label = make(group, "text", { class: "bar-label", x: 0, y: y + 12 });
    make(label, "tspan", { class: "strong" }, `broker ${broker.id}`);
    const state = { leads: ` leads in epoch ${broker.leader_epoch}`, down: " is down", follows: "" };
    make(label, "tspan", {}, state[broker.state]);
    make(group, "text", { class: "bar-offsets", x: "100%", y: y + 12, "text-anchor": "end" },
      `HW ${broker.high_watermark} · LEO ${broker.log_end_offset}`);
    make(group, "rect", { class: "track", x: 0, y: y + 20, width: "100%", height: 24, rx: 2 });
    const old = before[index];
    broker.log.forEach(([epoch, id], offset) => {
      if (offset < broker.log_start_offset) return;
      const added = !old.log[offset] || old.log[offset][1] !== id;
      make(group, "rect", {
        class: `segment e${epoch % 8}${added ? " new" : ""}`, x: at(offset), y: y + 20,
        width: at(1), height: 24, rx: 2,
      });
      const middle = at(offset + 0.5);
      const text = make(group, "text", { class: "record", x: middle, y: y + 36, "text-anchor": "middle" }, `m${id}`);
      make(text, "tspan", { class: "of" }, `/${epoch}`);
    });
    for (let offset = broker.log_end_offset; offset < old.log_end_offset; offset += 1) {
      make(group, "rect", { class: "gone", x: at(offset), y: y + 21, width: at(0.97), height: 22, rx: 2 });
    }
    const end = make(group, "svg", { class: "leo", x: at(broker.log_end_offset), y: y + 18, overflow: "visible" });
    make(end, "path", { class: "mark", d: "M-5 0H0V28H-5" });
    const mark = make(group, "svg", { class: "hw", x: at(broker.high_watermark), y: y + 20, overflow: "visible" });
    make(mark, "path", { class: "mark-fill", d: "M0 3L-5 -5H5Z" });
    make(mark, "path", { class: "mark", d: "M0 0V24" });
  });
}

// The values of the articles: each replica's two, and the leader's copies of its followers' log ends.
function values(parent, one) {
  const box = make(parent, "div", { class: "scroll", role: "region", tabindex: 0, "aria-label": "The values" });
  const table = make(box, "table", { class: "values" });
  make(table, "caption", {}, "The values after this step. A leader also keeps what it knows of its followers.");
  const head = make(make(table, "thead"), "tr");
  const titles = ["Broker", "LEO", "HW", "Others' LEOs, as it knows them"];
  for (const title of titles) make(head, "th", { scope: "col" }, title);
  const body = make(table, "tbody");
  const changed = new Set(one.changes.map((change) => `${change.broker} ${change.value}`));
  for (const broker of one.brokers) {
    const row = make(body, "tr", { "data-broker": broker.id });
    make(row, "th", { scope: "row" }, broker.state === "leads" ? `${broker.id}, leads` : broker.id);
    for (const value of ["log_end_offset", "high_watermark"]) {
      make(row, "td", changed.has(`${broker.id} ${value}`) ? { class: "changed" } : {}, broker[value]);
    }
    const remotes = Object.entries(broker.remotes);
    const moved = remotes.some(([id]) => changed.has(`${broker.id} remote ${id}`));
    make(row, "td", moved ? { class: "changed remotes" } : { class: "remotes" },
      remotes.map(([id, end]) => `${id}:${end === null ? "?" : end}`).join(" ") || "–");
    // On a phone a row is a card, and each cell has its heading.
    [...row.children].forEach((cell, index) => { cell.dataset.label = titles[index]; });
  }
  const list = make(parent, "ul", { class: "why", "aria-label": "What changed, and why" });
  const words = { log_end_offset: "LEO", high_watermark: "HW" };
  for (const change of one.changes) {
    const value = change.value in words
      ? `${words[change.value]} of ${change.broker}`
      : `What ${change.broker} knows as LEO of ${change.value.slice(7)}`;
    const shown = (offset) => (offset === null ? "?" : offset);
    make(list, "li", {}, `${value}: ${shown(change.from)} → ${shown(change.to)}. ${change.why}`);
  }
  if (!one.changes.length) make(list, "li", {}, "None of the values moved.");
  if (element("hide").checked && hidden) {
    parent.classList.add("secret");
    table.classList.add("secret");
    const button = make(parent, "button", { type: "button", class: "reveal" }, "Show the values");
    table.before(button);
    button.addEventListener("click", () => { hidden = false; show(); });
  }
}

function render(id, name, index) {
  const parent = element(id);
  parent.textContent = "";
  parent.classList.remove("secret");
  parent.hidden = !name;
  if (!name) return;
  const run = story.runs[name];
  const one = run.steps[index];
  Object.assign(parent.dataset, { protocol: name, step: index });
  const heading = make(parent, "h2", {}, `${name}, ${run.releases} `);
  for (const [text, url] of run.links) {
    make(make(heading, "span", { class: "detail" }), "a", { href: url, rel: "noreferrer" }, text);
    heading.append(" ");
  }
  make(parent, "p", { class: "detail" }, run.rule);
  make(parent, "p", { class: "detail" }, run.constants);
  const event = make(parent, "p", { class: "event" });
  if (id === "main-run") event.setAttribute("aria-live", "polite");
  make(event, "b", {}, `${index} of ${run.steps.length - 1}: ${one.event}`);
  make(event, "span", { class: "effects" }, one.effects.join("; "));
  if (one.title) make(event, "span", { class: "stage" }, ` ${one.title}.`);
  draw(parent, one.brokers, run.steps[Math.max(0, index - 1)].brokers);
  make(parent, "p", { class: "consumer" }, one.consumer);
  values(parent, one);
  if (index === run.steps.length - 1) {
    const lost = run.verdict.some((line) => /^(LOST|BROKEN|DIVERGED)/.test(line));
    make(parent, "p", { class: `notice ${lost ? "critical" : "info"} outcome` }, run.verdict.join(" "));
    if (run.fates.length) make(parent, "h3", {}, "How that came about");
    const list = make(parent, "ol", { class: "fates" });
    for (const line of run.fates) make(list, "li", {}, line);
  }
  const lights = make(parent, "ul", { class: "lights", "aria-label": "What must hold" });
  for (const invariant of story.invariants) {
    const broken = one.broken.includes(invariant.name);
    make(lights, "li", { title: invariant.plain, ...(broken ? { class: "broken" } : {}) },
      `${broken ? "✗" : "✓"} ${invariant.name}`);
  }
  if (one.broken.length) {
    const notice = make(parent, "ul", { class: "notice critical", "aria-label": "What no longer holds" });
    for (const invariant of story.invariants.filter((each) => one.broken.includes(each.name))) {
      make(notice, "li", {}, `${invariant.name} does not hold: ${invariant.plain}`);
    }
  }
}

let hidden = false;
// Browsers let a page note its address only so often.
let noted = 0;

function show() {
  const name = element("protocol").value;
  const run = story.runs[name];
  const beside = element("beside").value;
  step = Math.max(0, Math.min(step, run.steps.length - 1));
  render("main-run", name, step);
  const branch = beside && story.runs[beside];
  render("beside-run", beside, branch ? matching(branch, step, run.steps) : 0);
  // Where the story is at its end, so is the branch.
  if (branch && step === run.steps.length - 1) render("beside-run", beside, branch.steps.length - 1);
  document.querySelector(".runs").classList.toggle("single", !beside);
  element("slider").max = run.steps.length - 1;
  element("slider").value = step;
  element("back").disabled = element("first").disabled = step === 0;
  element("on").disabled = element("last").disabled = step === run.steps.length - 1;
  clearTimeout(noted);
  noted = setTimeout(() => {
    try { history.replaceState(null, "", `#${step}`); } catch { /* Not allowed for every local file. */ }
  }, 300);
}

function go(to) {
  const moved = step !== to;
  step = to;
  hidden = moved;
  show();
}

function choices() {
  const order = names.filter((name) => name !== "kip-320-first-try" || story.protocol === name);
  for (const name of names) make(element("protocol"), "option", { value: name }, `${name}, ${story.runs[name].releases}`);
  make(element("beside"), "option", { value: "" }, "nothing");
  for (const name of names) make(element("beside"), "option", { value: name }, name);
  const follow = () => {
    const place = order.indexOf(element("protocol").value);
    element("beside").value = order[place + 1] || "";
  };
  element("protocol").value = story.protocol;
  follow();
  element("protocol").addEventListener("change", () => { follow(); show(); });
  element("beside").addEventListener("change", show);
  element("hide").addEventListener("change", show);
}

choices();
step = Number(location.hash.slice(1)) || 0;
element("on").addEventListener("click", () => go(step + 1));
element("back").addEventListener("click", () => go(step - 1));
element("first").addEventListener("click", () => go(0));
element("last").addEventListener("click", () => go(Infinity));
element("slider").addEventListener("input", (event) => go(Number(event.target.value)));
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || /^(SELECT|INPUT)$/.test(event.target.tagName)) return;
  const moves = { ArrowRight: step + 1, ArrowLeft: step - 1, Home: 0, End: Infinity };
  if (!(event.key in moves)) return;
  event.preventDefault();
  go(moves[event.key]);
});
show();
