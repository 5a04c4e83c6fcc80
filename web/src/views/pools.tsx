import { useEffect } from 'preact/hooks';
import { all, type Node, type Pool } from '../api';
import { count, size } from '../format';
import { t, word } from '../i18n';
import { useResource } from '../live';
import { Face, PoolLink } from '../parts';
import { Table } from '../table';
import { Strip } from './overview';

export function Pools() {
  useEffect(() => { document.title = `${t('pools')} · Slipway`; });
  const pools = useResource('pools', (signal) => all<Pool>('v1/pools', undefined, signal),
    (event) => !!event.pool || event.kind.startsWith('node.'));
  const nodes = useResource('nodes', (signal) => all<Node>('v1/nodes', undefined, signal),
    (event) => event.kind.startsWith('node.') || event.kind.startsWith('attempt.') || event.kind.startsWith('pool.'), 5_000);
  return (
    <section class="full">
      <h1>{t('pools')}</h1>
      <Face data={pools.data} error={pools.error} retry={pools.refresh} empty={<>{t('noPools')} <code>slipway pool create lab --nodes 2</code></>}>
        {() => (
          <Table items={pools.data ?? []} keyOf={(pool) => pool.name} label={t('pools')} columns={[
            { id: 'name', title: t('name'), narrow: true, cell: (pool) => <><PoolLink name={pool.name} />{pool.default && <span class="dim"> · {t('default')}</span>}</> },
            { id: 'nodes', title: t('nodes'), narrow: true, cell: (pool) => <Strip nodes={(nodes.data ?? []).filter((node) => node.pool === pool.name).slice(0, 40)} label={t('nodeStrip', { pool: pool.name })} /> },
            { id: 'busy', title: t('busy'), number: true, cell: (pool) => count(pool.nodes.busy) },
            { id: 'idle', title: t('idle'), number: true, cell: (pool) => count(pool.nodes.idle) },
            { id: 'target', title: t('target'), number: true, cell: (pool) => count(pool.nodes.target) },
            { id: 'cores', title: t('cores'), number: true, cell: (pool) => String(pool.cores_per_node) },
            { id: 'memory', title: t('memory'), number: true, cell: (pool) => size(pool.memory_per_node) },
            { id: 'gpus', title: t('gpus'), number: true, cell: (pool) => String(pool.gpus_per_node) },
            { id: 'by', title: t('sizedBy'), cell: (pool) => (pool.autoscale.by === 'hand' ? t('byHand') : pool.autoscale.by) },
            { id: 'state', title: t('state'), cell: (pool) => word(pool.state) },
          ]} />
        )}
      </Face>
    </section>
  );
}
