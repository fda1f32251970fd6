// One dashboard with Grafana's published components. State timelines are blank: theirs is not published.
import 'uplot/dist/uPlot.min.css';
import '@grafana/react-data-grid/lib/styles.css';
import {
  EventBusSrv, FieldType, ThemeContext, createTheme, dateTime, getDisplayProcessor, getFieldDisplayName, getFieldDisplayValues,
  standardTransformers, standardTransformersRegistry, toDataFrame, transformDataFrame,
} from '@grafana/data';
import { BigValue, PanelChrome, PanelContextProvider, TimeSeries, VizRepeater } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';
import { Component } from 'react';
import { createRoot } from 'react-dom/client';
import { firstValueFrom } from 'rxjs';

const { board, end, hours, width } = window.SHOWN;
const UNIT = 38;
const GAP = 8;
const theme = createTheme({ colors: { mode: 'dark' } });
const timeRange = { from: dateTime(end - hours * 3600e3), to: dateTime(end), raw: { from: 'now-2h', to: 'now' } };
const transformers = standardTransformers;
standardTransformersRegistry.setInit(() => [transformers.organizeFieldsTransformer, transformers.mergeTransformer].map((transformation) => ({ id: transformation.id, transformation: () => Promise.resolve(transformation) })));
const named = (legend, labels) => legend.replace(/{{(\w+)}}/g, (_, label) => labels[label] ?? '');

function frames({ answers, type }) {
  return answers.flatMap(({ refId, legend, table, instant, series }) => {
    if (table) {
      const labels = Object.keys(series[0]?.metric ?? {});
      const value = answers.length > 1 ? `Value #${refId}` : 'Value';
      return series.length === 0 ? [] : [toDataFrame({ refId, fields: [
        { name: 'Time', type: FieldType.time, values: series.map(() => end) },
        ...labels.map((label) => ({ name: label, type: FieldType.string, values: series.map(({ metric }) => metric[label]) })),
        { name: value, type: FieldType.number, values: series.map((each) => Number(each.value[1])) },
      ] })];
    }
    return series.map(({ metric, value, values }) => {
      let points = instant ? [value] : values;
      if (type === 'timeseries') points = withGaps(points);
      return toDataFrame({ refId, fields: [
        { name: 'Time', type: FieldType.time, values: points.map(([time]) => time * 1000) },
        { name: 'Value', type: FieldType.number, labels: metric, values: points.map(([, each]) => (each === null ? null : Number(each))), config: { displayNameFromDS: named(legend, metric) } },
      ] });
    });
  });
}

// As Grafana does where a step has no point.
const withGaps = (points) => points.flatMap((point, index) => (index && point[0] - points[index - 1][0] > 45 ? [[point[0] - 1, null], point] : [point]));

const matches = ({ id, options }, name) => (id === 'byName' ? options === name : new RegExp(options.replace(/^\/|\/$/g, '')).test(name));

// As Grafana's applyFieldOverrides, which knows an option only by its panel's plugin.
function overridden({ fieldConfig, type }, data) {
  let number = 0;
  return data.map((frame) => ({ ...frame, fields: frame.fields.map((field) => {
    const config = { color: { mode: type === 'timeseries' ? 'palette-classic' : 'thresholds' }, ...structuredClone(fieldConfig.defaults), ...field.config, custom: { ...fieldConfig.defaults.custom } };
    if (field.type === FieldType.time) delete config.custom.axisLabel;
    const name = getFieldDisplayName({ ...field, config }, frame, data);
    for (const { matcher, properties } of fieldConfig.overrides) {
      for (const { id, value } of matches(matcher, name) ? properties : []) {
        if (id.startsWith('custom.')) config.custom[id.slice(7)] = value;
        else config[id] = structuredClone(value);
      }
    }
    for (const step of config.thresholds?.steps ?? []) step.value ??= -Infinity;
    const state = { displayName: name, seriesIndex: field.type === FieldType.number ? number++ : undefined };
    const made = { ...field, config, state };
    return { ...made, display: getDisplayProcessor({ field: made, theme, timeZone: 'utc' }) };
  }) }));
}

function Content({ panel, data, size }) {
  const { options, fieldConfig } = panel;
  if (data.length === 0 || panel.type === 'state-timeline') {
    return <div style={{ padding: 8, color: theme.colors.text.secondary }}>{panel.type === 'state-timeline' ? 'state timeline' : fieldConfig.defaults.noValue}</div>;
  }
  if (panel.type === 'stat') {
    const values = getFieldDisplayValues({ fieldConfig, reduceOptions: options.reduceOptions, replaceVariables: (text) => text, theme, data, sparkline: false, timeZone: 'utc' });
    return <VizRepeater {...size} orientation={options.orientation ?? 'auto'} source={values} autoGrid getValues={() => values} renderValue={({ value, width: w, height: h, count }) => (
      <BigValue value={value.display} width={w} height={h} theme={theme} count={count} colorMode={options.colorMode} graphMode="none" textMode={options.textMode} justifyMode="auto" />
    )} />;
  }
  if (panel.type === 'table') return <TableNG {...size} data={data[0]} sortBy={options.sortBy} cellHeight={options.cellHeight} structureRev={1} enableVirtualization={false} />;
  return <TimeSeries {...size} frames={data} timeRange={timeRange} timeZone="utc" legend={options.legend} />;
}

class Drawn extends Component {
  state = {};
  static getDerivedStateFromError(error) { return { error }; }
  render() { return this.state.error ? <div data-failed={`${this.props.title}: ${this.state.error.message}`} /> : this.props.children; }
}

function Placed({ panel, data, top }) {
  const { x, w, h } = panel.gridPos;
  const unit = width / 24;
  const place = { position: 'absolute', left: x * unit, top: top * UNIT, width: w * unit - GAP, height: h * UNIT - GAP };
  if (panel.type === 'row') return <div style={{ ...place, color: theme.colors.text.primary, fontWeight: 600 }}>{panel.collapsed ? '▸' : '▾'} {panel.title}</div>;
  return (
    <div style={place} data-drawn={panel.type === 'state-timeline' ? undefined : panel.id}>
      <Drawn title={panel.title}>
        <PanelChrome title={panel.title} width={place.width} height={place.height}>
          {(innerWidth, innerHeight) => <Content panel={panel} data={data} size={{ width: innerWidth, height: innerHeight }} />}
        </PanelChrome>
      </Drawn>
    </div>
  );
}

async function prepared(panel) {
  let data = panel.type === 'row' ? [] : frames(panel);
  if (panel.transformations) data = await firstValueFrom(transformDataFrame(panel.transformations, data));
  return overridden(panel, data);
}

const style = document.createElement('style');
style.textContent = `body{margin:0;background:${theme.colors.background.canvas};font-family:Inter,Helvetica,Arial,sans-serif;font-size:14px;color:${theme.colors.text.primary}}*{box-sizing:border-box}button{background:none;border:0;color:inherit;font:inherit}h2,h6{margin:0;font-size:14px;font-weight:500}table{border-spacing:0}`;
document.head.append(style);
Promise.all(board.panels.map(prepared)).then(show, (error) => document.body.setAttribute('data-failed', error.stack));

function show(all) {
  // As when the collapsed rows are open: a row begins where the panels before it end.
  let floor = 0;
  let moved = 0;
  const tops = board.panels.map(({ type, gridPos }) => {
    if (type === 'row') moved = Math.max(floor, gridPos.y) - gridPos.y;
    floor = Math.max(floor, gridPos.y + moved + gridPos.h);
    return gridPos.y + moved;
  });
  document.body.setAttribute('data-height', floor * UNIT);
  const root = document.createElement('div');
  document.body.append(root);
  createRoot(root).render(
    <ThemeContext.Provider value={theme}>
      <PanelContextProvider value={{ eventsScope: 'page', eventBus: new EventBusSrv() }}>
        {board.panels.map((panel, index) => <Placed key={panel.id} panel={panel} data={all[index]} top={tops[index]} />)}
      </PanelContextProvider>
    </ThemeContext.Provider>,
  );
}
