'use strict';
// Shows the numbers of /dashboard.json and the reports of /pages, and purges. Names and URLs come from clients and origins, so every text is
// set as text, never as markup. The token is in sessionStorage and in the header of each request: a page of another site cannot send it.

const REFRESH_MS = 5000;
const TIMEOUT_MS = 10000;
const MAX_ROWS = { sites: 200, pages: 100, references: 500 };
const TOKEN = 'spdy-admin-token';

const by = id => document.getElementById(id);
const numbers = new Intl.NumberFormat('en');

let token = sessionStorage.getItem(TOKEN);
let data = null;
let selected = null; // URL of the page whose report is shown
let timer = 0;
let generation = 0; // a response to a request before a change of the token is ignored

// Texts

const count = value => numbers.format(value);
const plural = (value, one, many) => `${count(value)} ${value === 1 ? one : many}`;

function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

function milliseconds(value) {
  if (value === null) return '–';
  if (value >= 10000) return `${(value / 1000).toFixed(0)} s`;
  if (value >= 1000) return `${(value / 1000).toFixed(1)} s`;
  return `${value >= 10 ? Math.round(value) : value.toFixed(1)} ms`;
}

function duration(seconds) {
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} days`;
}

function share(hits, misses) {
  return hits + misses === 0 ? null : hits / (hits + misses);
}

const percent = ratio => (ratio === null ? '–' : `${(ratio * 100).toFixed(1)} %`);
const clock = text => new Date(text).toLocaleTimeString('en-GB');
// For a POSIX shell.
const quoted = text => `'${text.replaceAll("'", "'\\''")}'`;

// Updates of the document: only what differs is changed, so that nothing flickers, and focus and selection stay.

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function setClass(element, name) {
  if (element.className !== name) element.className = name;
}

// Shows `items` as the children of `parent`. An item with the same key keeps its element.
function setChildren(parent, items, key, create, update) {
  const old = new Map([...parent.children].map(child => [child.dataset.key, child]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = key(item);
    let child = old.get(name);
    old.delete(name);
    if (!child) {
      child = create(item);
      child.dataset.key = name;
    }
    update(child, item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const child of old.values()) child.remove();
}

// A row of a table. Each cell is { text, class, title }, or { button, press } for a link-like button.
function setRows(table, items, key, cells, finish) {
  const labels = [...table.tHead.rows[0].cells].map(cell => cell.textContent);
  const create = () => document.createElement('tr');
  setChildren(table.tBodies[0], items, key, create, (row, item) => {
    cells(item).forEach((cell, index) => {
      let element = row.cells[index];
      if (!element) {
        element = row.insertCell();
        element.dataset.label = labels[index];
        const inner = document.createElement(cell.button === undefined ? 'span' : 'button');
        if (cell.button !== undefined) {
          inner.type = 'button';
          inner.className = 'link';
          inner.addEventListener('click', () => cell.press());
        }
        element.append(inner);
      }
      setClass(element, cell.class ?? '');
      setText(element.firstElementChild, cell.button ?? cell.text);
      if ((cell.badge ?? '') !== (element.children[1]?.textContent ?? '')) {
        element.children[1]?.remove();
        if (cell.badge) {
          const badge = document.createElement('span');
          badge.className = 'badge warn';
          badge.textContent = cell.badge;
          element.append(badge);
        }
      }
      if (cell.share !== undefined) element.style.setProperty('--share', `${cell.share * 100}%`);
    });
    finish?.(row, item);
  });
}

function setRest(element, shown, all, what) {
  element.hidden = shown >= all;
  setText(element, `The first ${count(shown)} of ${count(all)} ${what}.`);
}

const number = (text, name = '') => ({ text, class: `number ${name}`.trim() });

// The parts of the page

function showSummary() {
  const sum = of => data.sites.reduce((total, site) => total + of(site), 0);
  const [hits, misses] = [sum(site => site.hits), sum(site => site.misses)];
  const sent = sum(site => site.response_bytes);
  const saved = sum(site => site.saved_bytes);
  const errors = sum(site => site.origin.errors);
  const tiles = [
    ['Requests', count(sum(site => site.requests)), plural(data.sites.length, 'site', 'sites')],
    ['Hit ratio', percent(share(hits, misses)), `${plural(hits, 'hit', 'hits')}, ${plural(misses, 'miss', 'misses')}`],
    ['Bytes saved', bytes(saved), `of ${bytes(sent)} sent to clients`],
    ['Errors of origins', count(errors), plural(sum(site => site.origin.responses), 'response', 'responses')],
  ];
  const create = () => {
    const tile = document.createElement('div');
    tile.append(document.createElement('dt'), document.createElement('dd'), document.createElement('dd'));
    tile.children[2].className = 'small';
    return tile;
  };
  setChildren(by('summary'), tiles, tile => tile[0], create, (tile, texts) => {
    texts.forEach((text, index) => setText(tile.children[index], text));
  });
}

function showSites() {
  const sites = [...data.sites].sort((a, b) => b.requests - a.requests || (a.name < b.name ? -1 : 1));
  const shown = sites.slice(0, MAX_ROWS.sites);
  setRows(by('sites'), shown, site => site.name, site => {
    const ratio = share(site.hits, site.misses);
    const failed = site.classes['5xx'] ?? 0;
    return [
      { text: site.name, badge: site.dry_run ? 'dry run' : '' },
      number(count(site.requests)),
      { text: percent(ratio), class: 'number ratio', share: ratio ?? 0 },
      number(bytes(site.response_bytes)),
      number(bytes(site.saved_bytes)),
      number(milliseconds(site.latency.median_ms)),
      number(milliseconds(site.latency.p95_ms)),
      number(count(site.classes['4xx'] ?? 0)),
      number(count(failed), failed ? 'bad' : ''),
    ];
  });
  setRest(by('sites-rest'), shown.length, sites.length, 'sites, by requests');
}

function showOrigins() {
  const origins = data.sites.map(site => ({ ...site.origin, site: site.name }));
  if (data.third_party.responses) origins.push({ ...data.third_party, url: 'all third-party hosts', site: '' });
  origins.sort((a, b) => (b.latency.p95_ms ?? -1) - (a.latency.p95_ms ?? -1) || b.responses - a.responses);
  const slow = origin => (origin.latency.p95_ms >= 1000 ? 'warn' : '');
  setRows(by('origins'), origins.slice(0, MAX_ROWS.sites), origin => origin.site, origin => [
    { text: origin.url },
    { text: origin.site || 'any' },
    number(count(origin.responses)),
    number(milliseconds(origin.latency.median_ms)),
    number(milliseconds(origin.latency.p95_ms), slow(origin)),
    number(origin.errors === null ? '–' : count(origin.errors), origin.errors ? 'bad' : ''),
  ]);
  const outcomes = Object.entries(data.origin_outcomes).map(([name, times]) => `${name}: ${count(times)}`);
  setText(by('outcomes'), outcomes.length ? `All origins, by outcome: ${outcomes.join(', ')}.` : '');
}

function hostOf(url) {
  try { return new URL(url).hostname; } catch { return ''; }
}

function showDryRun() {
  const sites = data.sites.filter(site => site.dry_run);
  by('dry-run').hidden = sites.length === 0;
  const create = () => document.createElement('li');
  setChildren(by('dry-run-sites'), sites, site => site.name, create, (line, site) => {
    const pages = data.pages.filter(page => page.dry_run && hostOf(page.url) === site.name);
    const sum = of => pages.reduce((total, page) => total + of(page), 0);
    const [moved, kept] = [sum(page => page.proxied), sum(page => page.skipped)];
    setText(line, pages.length === 0
      ? `${site.name}: no page was requested yet.`
      : `${site.name}: of ${plural(pages.length, 'page', 'pages')}, ${plural(moved, 'reference', 'references')} would be moved, `
        + `and ${count(kept)} would not.`);
  });
}

function pageResult(page) {
  if (page.skip_reason) return { text: `not rewritten: ${page.skip_message}`, class: 'wide warn' };
  if (page.dry_run) return { text: 'dry run: not changed', class: 'wide warn' };
  return { text: page.is_public ? 'rewritten' : 'rewritten; private, so that only the numbers are stored', class: 'wide good' };
}

function showPages() {
  const wanted = by('filter').value.trim().toLowerCase();
  const pages = data.pages.filter(page => page.url.toLowerCase().includes(wanted));
  const shown = pages.slice(0, MAX_ROWS.pages);
  by('no-pages').hidden = data.pages.length > 0;
  by('pages').hidden = data.pages.length === 0;
  // The URL of a private page is the root of its site, so several reports may have the same one.
  const seen = new Map();
  const keys = new Map(shown.map(page => {
    const name = `${page.is_public} ${page.url}`;
    seen.set(name, (seen.get(name) ?? 0) + 1);
    return [page, `${name} ${seen.get(name)}`];
  }));
  setRows(by('pages'), shown, page => keys.get(page), page => [
    page.is_public ? { button: page.url, press: () => select(page.url) } : { text: page.url },
    number(count(page.proxied)),
    number(count(page.skipped)),
    pageResult(page),
    { text: clock(page.at), class: 'time wide' },
  ], (row, page) => row.classList.toggle('selected', page.is_public && page.url === selected));
  setRest(by('pages-rest'), shown.length, pages.length, 'pages, the latest first');
}

// What moved, what did not, and why: for one page.
function showReport(report) {
  const moved = report.dry_run ? 'would be moved' : 'moved';
  setText(by('page-url'), report.url);
  const reasons = Object.entries(report.skipped_by_reason).map(([name, times]) => `${name}: ${count(times)}`);
  const kept = Object.values(report.skipped_by_reason).reduce((total, times) => total + times, 0);
  const parts = [
    report.dry_run ? 'Dry run: the page was not changed.' : '',
    `${plural(report.proxied, 'reference', 'references')} ${moved}, ${count(kept)} not${reasons.length ? ` (${reasons.join(', ')})` : ''}.`,
    `Rewriting took ${milliseconds(report.rewrite_ms)}.`,
  ];
  setText(by('page-summary'), parts.filter(Boolean).join(' '));
  setText(by('page-command'), `spdy accelerate audit ${quoted(report.url)}`);
  const shown = report.references.slice(0, MAX_ROWS.references);
  by('references').hidden = shown.length === 0;
  setRows(by('references'), shown.map((reference, index) => ({ ...reference, index })), ({ index }) => String(index), reference => [
    { text: reference.url },
    { text: reference.kind, class: 'wide' },
    reference.proxied_to === null
      ? { text: `not moved: ${reference.message}`, class: 'wide warn' }
      : { text: `${moved} to ${reference.proxied_to}`, class: 'wide good' },
  ]);
  setRest(by('references-rest'), shown.length, report.references.length, 'references');
  const lists = [
    ['Prefetched', report.prefetched],
    ['Pushed with the last response', report.last_delivery?.pushed ?? []],
    ['Hinted with the last response', report.last_delivery?.hinted ?? []],
    ['Removed preconnect hints', report.removed_preconnects],
  ].filter(([, urls]) => urls.length > 0);
  const entries = lists.flatMap(([title, urls]) => [
    { tag: 'dt', key: title, text: `${title} (${count(urls.length)})` },
    ...urls.slice(0, MAX_ROWS.references).map((url, index) => ({ tag: 'dd', key: `${title} ${index}`, text: url })),
  ]);
  setChildren(by('page-lists'), entries, entry => entry.key, entry => document.createElement(entry.tag), (element, entry) => {
    setText(element, entry.text);
  });
  by('page').hidden = false;
}

function showCache() {
  const tiers = [{ name: 'memory', ...data.cache.memory }];
  if (data.cache.disk) tiers.push({ name: 'disk', ...data.cache.disk });
  setRows(by('cache'), tiers, tier => tier.name, tier => [
    { text: tier.name },
    number(count(tier.objects)),
    number(bytes(tier.bytes)),
    number(bytes(tier.max_bytes)),
    number(count(tier.evicted)),
  ]);
}

function showCertificates() {
  by('certificates-section').hidden = data.certificates.length === 0;
  const items = data.certificates.map((certificate, index) => ({ ...certificate, index }));
  setRows(by('certificates'), items, item => `${item.index} ${item.name}`, ({ name, left_s: left }) => [
    { text: name },
    left === null ? { text: 'not issued yet', class: 'warn' }
      : left === 0 ? { text: 'expired', class: 'bad' }
        : { text: `in ${duration(left)}`, class: left < 14 * 86400 ? 'warn' : '' },
  ]);
}

function showPurgeFields() {
  const kind = by('purge-kind').value;
  const needsSite = kind === 'tag' || kind === 'site';
  const needsValue = kind !== 'site';
  by('purge-value-field').hidden = !needsValue;
  by('purge-value').required = needsValue;
  by('purge-site-field').hidden = !needsSite;
  setText(by('purge-value-field').firstElementChild, { url: 'URL', prefix: 'Prefix', tag: 'Tag', site: '' }[kind]);
  const create = site => Object.assign(document.createElement('option'), { value: site.name });
  setChildren(by('purge-site'), data?.sites ?? [], site => site.name, create, (option, site) => setText(option, site.name));
}

function showAll() {
  setText(by('state'), `Updated ${clock(data.at)}, running for ${duration(data.uptime_s)}`);
  setClass(by('state'), '');
  for (const show of [showSummary, showSites, showOrigins, showDryRun, showPages, showCache, showCertificates, showPurgeFields]) show();
  by('login').hidden = true;
  by('main').hidden = false;
  by('forget').hidden = false;
}

// Requests

class WrongToken extends Error {}

async function request(path, options = {}) {
  const headers = { Authorization: `Bearer ${token}` };
  const response = await fetch(path, { ...options, headers, cache: 'no-store', credentials: 'omit', signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (response.status === 401) throw new WrongToken();
  const text = await response.text();
  if (!response.ok) throw new Error(text.trim() || `status ${response.status}`);
  return JSON.parse(text);
}

async function refreshReport(isFirst) {
  const url = selected;
  if (url === null) return;
  try {
    const report = await request(`/pages?${new URLSearchParams({ url })}`);
    if (selected !== url) return;
    showReport(report);
    if (isFirst) by('page-url').focus();
  } catch (error) {
    if (error instanceof WrongToken) throw error;
    // The report was evicted by later pages: what is shown stays.
  }
}

async function refresh() {
  clearTimeout(timer);
  if (token === null) return;
  const current = generation;
  try {
    const next = await request('/dashboard.json');
    if (current !== generation) return;
    data = next;
    showAll();
    await refreshReport(false);
  } catch (error) {
    if (current !== generation) return;
    if (error instanceof WrongToken) {
      logOut('This token is wrong, or it was changed. Enter the current one.');
      return;
    }
    setText(by('state'), `Cannot read the numbers: ${error.message}. Trying again.`);
    setClass(by('state'), 'bad');
  }
  clearTimeout(timer);
  if (current === generation && !document.hidden) timer = setTimeout(refresh, REFRESH_MS);
}

function logOut(message) {
  generation += 1;
  token = null;
  data = null;
  clearTimeout(timer);
  sessionStorage.removeItem(TOKEN);
  closeReport();
  by('main').hidden = true;
  by('forget').hidden = true;
  by('login').hidden = false;
  setText(by('state'), 'Not connected');
  setClass(by('state'), '');
  setText(by('login-message'), message);
  by('token').value = '';
  by('token').focus();
}

function logIn(event) {
  event.preventDefault();
  const entered = by('token').value.trim();
  if (!/^[\x21-\x7e][\x20-\x7e]*$/.test(entered)) {
    setText(by('login-message'), 'A token has only ASCII characters.');
    return;
  }
  generation += 1;
  token = entered;
  by('token').value = '';
  sessionStorage.setItem(TOKEN, token);
  setText(by('login-message'), '');
  refresh();
}

function select(url) {
  selected = url;
  showPages();
  refreshReport(true).catch(refresh);
}

function closeReport() {
  selected = null;
  by('page').hidden = true;
  if (data) showPages();
}

async function purge(event) {
  event.preventDefault();
  const kind = by('purge-kind').value;
  const body = { soft: by('purge-soft').checked, wait: true };
  if (kind !== 'site') body[kind] = by('purge-value').value.trim();
  if (kind === 'tag' || kind === 'site') body.site = by('purge-site').value;
  const message = by('purge-message');
  if (kind === 'site' && !body.soft && !confirm(`Remove everything of ${body.site} from the cache?`)) return;
  setClass(message, 'message');
  setText(message, 'Purging…');
  try {
    const done = await request('/purge', { method: 'POST', body: JSON.stringify(body) });
    const parts = [`${plural(done.purged, 'object', 'objects')} in memory ${done.soft ? 'made stale' : 'removed'}.`];
    if (done.removed_from_disk === true) parts.push('Its files are removed from the disk.');
    if (done.removed_from_disk === false) parts.push('A file could not be removed from the disk; the log has the reason.');
    if (done.published === true) parts.push('The other machines get it.');
    if (done.published === false) parts.push('The shared cache cannot be reached; the other machines get it later.');
    setText(message, parts.join(' '));
    setClass(message, done.removed_from_disk === false ? 'message bad' : 'message good');
    refresh();
  } catch (error) {
    if (error instanceof WrongToken) return void refresh();
    setText(message, `Not purged: ${error.message}`);
    setClass(message, 'message bad');
  }
}

async function copyCommand() {
  const button = by('page-copy');
  try {
    await navigator.clipboard.writeText(by('page-command').textContent);
    setText(button, 'Copied');
  } catch {
    getSelection().selectAllChildren(by('page-command'));
  }
  setTimeout(() => setText(button, 'Copy'), 2000);
}

by('login').addEventListener('submit', logIn);
by('forget').addEventListener('click', () => logOut(''));
by('filter').addEventListener('input', () => data && showPages());
by('page-close').addEventListener('click', closeReport);
by('page-copy').addEventListener('click', copyCommand);
by('purge-kind').addEventListener('change', showPurgeFields);
by('purge').addEventListener('submit', purge);
document.addEventListener('visibilitychange', () => {
  clearTimeout(timer);
  if (!document.hidden) refresh();
});

showPurgeFields();
if (token === null) by('login').hidden = false;
else refresh();
