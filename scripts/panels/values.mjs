// Two hours of invented values for every metric of the metric table, as OpenMetrics.
// healthy: three brokers; fault: broker 2 is silent for 8 minutes, and an election loses records;
// large: three clusters of nine brokers with the same fault in one of them.
export const STATES = ['healthy', 'fault', 'large'];
export const HOURS = 2;
export const END = Date.UTC(2026, 0, 15, 12) / 1000;
const STEP = 15;
// Of the fault, in seconds before the end: broker 2 is silent since then, and an election follows.
const SILENT = 480;
const ELECTED = 300;

const of = (state) =>
  state === 'large'
    ? { clusters: ['orders', 'payments', 'logs'], brokers: 9 }
    : { clusters: ['orders'], brokers: 3 };

const LABELS = {
  topic: ['orders', 'payments'],
  partition: ['0', '1', '2'],
  log_directory: ['/data/a', '/data/b'],
  component: ['export'],
  version: ['0.2.0'],
  python: ['3.11'],
  receiver: ['on-call'],
  outcome: ['ok', 'rejected'],
  tier: ['cluster', 'topic', 'replica'],
  result: ['observed', 'thinned', 'missed'],
  effect: ['offline', 'under_min_isr', 'last_copy', 'unknown'],
  purgatory: ['produce', 'fetch'],
  operation: ['produce', 'follower_fetch', 'consumer_fetch'],
  source: ['jmx', 'sampled'],
  cause: ['does not answer', 'slow follower'],
};
// By metric, where the same label has other values.
const KINDS = {
  tidemark_broker_records_at_risk: ['committed', 'uncommitted'],
  tidemark_committed_records_lost_total: ['proven'],
  tidemark_truncations_total: ['expected', 'proven'],
  tidemark_unclean_elections_total: ['confirmed', 'suspected'],
};
const ALERTS = [
  ['KafkaBrokerUnreachable', 'warning'],
  ['KafkaUnderMinIsr', 'critical'],
  ['KafkaCommittedDataLoss', 'critical'],
];
const OWN_TOPICS = ['tidemark.alerts', 'tidemark.partition-views'];

/** All label sets of a metric. */
function series(name, labels, state) {
  const { clusters, brokers } = of(state);
  const values = {
    ...LABELS,
    kafka_cluster: clusters,
    // A partition has three replicas.
    broker: Array.from({ length: labels.includes('partition') ? 3 : brokers }, (_, number) => `${number + 1}`),
    kind: KINDS[name] ?? ['other'],
    topic: name.startsWith('tidemark_export_') ? OWN_TOPICS : LABELS.topic,
  };
  if (labels.includes('alertname')) {
    const rest = labels.filter((label) => !['alertname', 'severity'].includes(label));
    return ALERTS.flatMap(([alertname, severity]) =>
      product(rest, values).map((set) => ({ ...set, alertname, severity })),
    );
  }
  return product(labels, values);
}

const product = (labels, values) =>
  labels.reduce(
    (sets, label) => sets.flatMap((set) => (values[label] ?? ['a']).map((value) => ({ ...set, [label]: value }))),
    [{}],
  );

/** The value of a series `ago` seconds before the end; null: it has none. */
function value(name, at, ago, state) {
  const faulty = state !== 'healthy' && (at.kafka_cluster ?? 'orders') === 'orders';
  const silent = faulty && ago <= SILENT;
  const after = faulty && ago <= ELECTED;
  const here = silent && (at.broker ?? '2') === '2' && (at.topic ?? 'orders') === 'orders';
  const since = SILENT - ago;
  const noise = (Math.sin(ago / 97 + name.length * 7 + Number(at.broker ?? at.partition ?? 0)) + 1) / 2;
  const passed = HOURS * 3600 - ago;
  if (name.endsWith('alert_open')) {
    const open = at.alertname === 'KafkaCommittedDataLoss' ? after : silent;
    return open && (at.topic ?? 'orders') === 'orders' ? 1 : null;
  }
  if (name === 'tidemark_last_pass_timestamp_seconds') return END - ago - 1 - noise;
  if (name.endsWith('_timestamp_seconds')) return END - ago - 2;
  if (name === 'tidemark_build_info' || /_(ready|online|stop_clean|jmx_up|log_up)$/.test(name)) return 1;
  if (/_(broker_up|replica_up|in_sync)$/.test(name) && !name.includes('partitions')) return here ? 0 : 1;
  if (name === 'tidemark_quorum_leader') return after ? 3 : 1;
  if (name === 'tidemark_quorum_epoch') return after ? 8 : 7;
  if (name.endsWith('leader_epoch')) return after ? 6 : 5;
  if (name === 'tidemark_partition_leader') return after ? 3 : 1;
  if (name.endsWith('partition_in_sync_replicas')) return here ? 1 : 3;
  if (name.endsWith('min_in_sync_replicas')) return 2;
  if (name === 'tidemark_partition_replicas') return 3;
  if (/_(partitions|topic_partitions)$/.test(name) && !name.includes('impact') && !name.includes('failed')) return { observed: 1180, thinned: 20, missed: here ? 4 : 0 }[at.result] ?? 12;
  if (name.includes('stop_impact')) return silent && at.broker !== '2' && at.effect === 'under_min_isr' ? 7 : 0;
  if (/broker_(replicas)$/.test(name)) return 12;
  if (/(broker_leaders)$/.test(name)) return silent && at.broker === '2' ? 0 : 4;
  if (/preferred_leaders$/.test(name)) return 4;
  if (/(log_end_offset|high_watermark|last_stable_offset)$/.test(name)) {
    const stopped = silent && at.broker === '2' ? since * 50 : 0;
    return 1e6 + passed * 50 - stopped - (name.endsWith('high_watermark') ? 30 : 0) - (after ? 900 : 0);
  }
  if (/(log_start_offset|low_watermark)$/.test(name)) return 4e5 + Math.floor(passed / 1800) * 1e5;
  if (name.endsWith('total_bytes')) return 1e12;
  if (name.endsWith('usable_bytes')) return 4e11 - passed * 1e6 * Number(at.broker);
  if (/(lag_seconds|age_seconds|lag_seconds_max|age_seconds_max)$/.test(name)) return here ? since : 0.02 + 0.05 * noise;
  if (name.endsWith('removal_seconds_min')) return here ? Math.max(0, 30 - since) : null;
  if (/reassignment/.test(name)) return 0;
  if (/(lag_records|lag_records_max|uncommitted_records|records_at_risk)$/.test(name)) return here ? since * 50 : Math.round(3 * noise);
  if (/(under_replicated|out_of_sync_replicas|off_preferred_leader)$/.test(name)) return here ? 8 : 0;
  if (/under_min_in_sync|at_min_in_sync/.test(name)) return silent ? 3 : 0;
  if (/(blind|leaderless|missed_passes|failed_partitions|dead_threads)$/.test(name)) return 0;
  if (name.endsWith('queue_length')) return silent ? 2 : 0;
  if (name === 'tidemark_deliveries_total' && at.outcome === 'rejected') return 0;
  if (/(isr_shrinks|isr_expands|elections|truncations|lost|fired).*_total$/.test(name)) {
    const counted = name.includes('expands') ? false : silent;
    const expected = /confirmed|proven|does not answer/.test(at.kind ?? at.cause ?? 'proven');
    const of2 = name.includes('led') ? at.broker !== '2' : (at.broker ?? '2') === '2';
    return counted && expected && of2 ? (name.includes('lost') ? 900 : 6) : 0;
  }
  if (name.includes('undecodable') || name.includes('dropped') || name.includes('letters')) return 0;
  if (name.endsWith('_total')) return Math.floor(passed * 20);
  if (name.endsWith('state_memory_bytes')) return 1.2e8 + 1e7 * noise;
  if (name.endsWith('purgatory_operations')) return here ? 120 : Math.round(20 * noise);
  if (name.endsWith('shrinks_compared')) return silent ? 6 : 0;
  if (name === 'tidemark_series') return { cluster: 60, topic: 400, replica: 1200 }[at.tier];
  return Math.round(5 * noise);
}

const text = (set) => Object.entries(set).map(([label, each]) => `${label}="${each}"`).join(',');

/** The lines of a state. `metrics`: [name, kind, labels] of each. */
export function* openMetrics(metrics, state) {
  for (const [name, kind, labels] of metrics) {
    const family = kind === 'counter' ? name.replace(/_total$/, '') : name;
    yield `# TYPE ${family} ${kind}\n`;
    for (const set of series(name, labels, state)) {
      const own = { ...set, instance: 'tidemark:9754', job: 'tidemark' };
      for (let ago = HOURS * 3600; ago >= 0; ago -= STEP) {
        const time = END - ago;
        if (kind === 'histogram') {
          const count = (HOURS * 3600 - ago) * 1;
          for (const [le, part] of [['0.1', 0.9], ['0.5', 0.999], ['+Inf', 1]]) {
            yield `${name}_bucket{${text({ ...own, le })}} ${Math.floor(count * part)} ${time}\n`;
          }
          yield `${name}_count{${text(own)}} ${count} ${time}\n${name}_sum{${text(own)}} ${count * 0.06} ${time}\n`;
          continue;
        }
        const found = value(name, set, ago, state);
        if (found !== null) yield `${name}{${text(own)}} ${found} ${time}\n`;
      }
    }
  }
  yield '# EOF\n';
}
