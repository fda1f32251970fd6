// Draws every panel of the dashboards in three states, and leaves pictures: node draw.mjs FOLDER
import { build } from 'esbuild';
import { execFileSync, spawn } from 'node:child_process';
import { createWriteStream, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { once } from 'node:events';
import { END, HOURS, STATES, openMetrics } from './values.mjs';

const ROOT = resolve(import.meta.dirname, '..', '..');
const OUT = resolve(process.argv[2]);
const CHOSEN = process.argv[3] ? [process.argv[3]] : STATES;
const BOARDS = join(ROOT, 'dashboards', 'grafana');
const WIDTH = 1280;
const STEP = 30;
const VALUES = {
  __rate_interval: '1m', __range: `${HOURS * 3600}s`, kafka_cluster: 'orders', broker: '.*', topic: 'orders', partition: '0',
};
const CHROMIUM = [
  '--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run', '--hide-scrollbars', '--disable-sync',
  '--disable-background-networking', '--disable-component-update', '--allow-file-access-from-files',
];

/** The metric table, as the product has it. */
function metrics() {
  const program = 'import json; from tidemark.core.metric_table import METRICS; print(json.dumps([[n, m.kind, m.labels] for n, m in METRICS.items() if not m.is_optional]))';
  return JSON.parse(execFileSync(process.env.PYTHON ?? 'python3', ['-c', program]));
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

async function withPrometheus(state, use) {
  const folder = join(OUT, 'data', state);
  mkdirSync(folder, { recursive: true });
  const file = createWriteStream(join(folder, 'values.txt'));
  let part = '';
  for (const line of openMetrics(metrics(), state)) {
    part += line;
    if (part.length > 1e6) {
      if (!file.write(part)) await once(file, 'drain');
      part = '';
    }
  }
  file.end(part);
  await once(file, 'finish');
  const blocks = join(folder, 'blocks');
  execFileSync('promtool', ['tsdb', 'create-blocks-from', 'openmetrics', join(folder, 'values.txt'), blocks], { stdio: 'ignore' });
  writeFileSync(join(folder, 'prometheus.yaml'), '{}');
  const port = await freePort();
  const child = spawn('prometheus', [
    `--config.file=${join(folder, 'prometheus.yaml')}`, `--storage.tsdb.path=${blocks}`,
    `--web.listen-address=127.0.0.1:${port}`, '--storage.tsdb.retention.time=100y',
  ], { stdio: 'ignore' });
  const url = `http://127.0.0.1:${port}`;
  try {
    for (let tries = 0; !(await fetch(`${url}/-/ready`).then((answer) => answer.ok, () => false)); tries += 1) {
      if (tries > 150) throw new Error('Prometheus is not ready');
      await new Promise((done) => setTimeout(done, 200));
    }
    return await use(url);
  } finally {
    child.kill();
    await once(child, 'exit');
    rmSync(join(OUT, 'data'), { recursive: true });
  }
}

/** A dashboard's panels, those of collapsed rows too, each with the answers to its queries. */
async function answered(url, board) {
  const several = board.templating.list.filter(({ multi }) => multi).map(({ name }) => [name, '.*']);
  const values = { ...VALUES, ...Object.fromEntries(several) };
  const panels = [];
  for (const each of board.panels.flatMap((panel) => [{ ...panel, panels: undefined }, ...(panel.panels ?? [])])) {
    const answers = [];
    for (const target of each.targets ?? []) {
      const query = target.expr.replace(/\$(\w+)/g, (_, name) => values[name]);
      const asked = target.instant
        ? { query, time: END }
        : { query, start: END - HOURS * 3600, end: END, step: STEP };
      const answer = await fetch(`${url}/api/v1/query${target.instant ? '' : '_range'}?${new URLSearchParams(asked)}`);
      const { data, error } = await answer.json();
      if (!data) throw new Error(`${board.uid}, panel ${each.id}: ${error}`);
      answers.push({ refId: target.refId, legend: target.legendFormat, table: target.format === 'table', instant: Boolean(target.instant), series: data.result });
    }
    panels.push({ ...each, answers });
  }
  return { ...board, panels };
}

await build({
  entryPoints: [join(import.meta.dirname, 'page.jsx')], outfile: join(OUT, 'page.js'), bundle: true, jsx: 'automatic',
  format: 'iife', logLevel: 'error', define: { 'process.env.NODE_ENV': '"production"', global: 'window' },
  loader: { '.svg': 'dataurl', '.woff2': 'dataurl', '.ttf': 'dataurl', '.png': 'dataurl' }, platform: 'browser', mainFields: ['module', 'browser', 'main'],
});
let drawn = 0;
for (const state of CHOSEN) {
  await withPrometheus(state, async (url) => {
    for (const name of readdirSync(BOARDS)) {
      const board = await answered(url, JSON.parse(readFileSync(join(BOARDS, name), 'utf8')));
      const page = join(OUT, `${state}-${board.uid}.html`);
      const data = JSON.stringify({ board, end: END * 1000, hours: HOURS, width: WIDTH }).replaceAll('<', '\\u003c');
      writeFileSync(page, `<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="page.css"><body><script>window.SHOWN = ${data}</script><script src="page.js"></script>`);
      const chromium = (height, ...flags) => execFileSync('chromium', [...CHROMIUM, `--user-data-dir=${join(OUT, 'profile')}`,
        `--window-size=${WIDTH},${height}`, '--virtual-time-budget=10000', ...flags, `file://${page}`],
      { stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1e9 });
      const dom = String(chromium(2000, '--dump-dom'));
      const failed = [...dom.matchAll(/data-failed="([^"]*)"/g)].map((found) => found[1]);
      if (failed.length) throw new Error(`${state}, ${board.uid}: ${failed}`);
      chromium(dom.match(/data-height="(\d+)"/)[1], `--screenshot=${page.replace('.html', '.png')}`);
      drawn += [...dom.matchAll(/data-drawn=/g)].length;
      console.log(`${page.replace('.html', '.png')}`);
      rmSync(page);
    }
  });
}
rmSync(join(OUT, 'profile'), { recursive: true });
console.log(`${drawn} panels drawn; state timelines are left blank: their component is not published`);
