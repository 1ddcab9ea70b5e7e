'use strict';
// Follows an experiment: asks how far it is, and puts a newer report in the place of the old one without a blink.

const line = document.querySelector('#progress span');
const bar = document.querySelector('#progress progress');
let shown = '';
let notBefore = 0;

const ago = seconds => seconds < 90 ? `${seconds} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;

function tell(state) {
  const far = `${state.done} of ${state.cells} cells of ${state.name}`;
  const left = state.done >= state.cells ? ', complete' : state.left_s ? `, about ${ago(state.left_s)} left` : ', waiting for more';
  line.textContent = far + left;
  bar.max = state.cells;
  bar.value = state.done;
  document.title = `${state.done}/${state.cells} ${state.name}`;
}

// The last heading that is not below the upper half of the screen: what is read stands under it.
const headingInView = main => [...main.querySelectorAll('h2')].filter(it => it.getBoundingClientRect().top < innerHeight / 2).pop();

// What the reader opened stays open, what the reader closed stays closed, and the scroll position stays.
function swap(html) {
  const report = new DOMParser().parseFromString(html, 'text/html');
  const [header, main] = ['header', 'main'].map(name => report.querySelector(name));
  const old = document.querySelector('main');
  if (old) {
    const key = it => `${it.closest('section')?.querySelector('h2')?.textContent}/${it.querySelector('summary').textContent}/${it.closest('figure')?.querySelector('figcaption b')?.textContent}`;
    const before = new Map([...old.querySelectorAll('details')].map(it => [key(it), it.open]));
    for (const it of main.querySelectorAll('details')) it.open = before.get(key(it)) ?? it.open;
    // The filter stays as it is: its options are named, because new levels may come before old ones.
    const deselected = new Set([...old.querySelectorAll('.filter input:not(:checked)')].map(it => it.value));
    const focused = old.contains(document.activeElement) && document.activeElement.value;
    for (const it of main.querySelectorAll('.filter input')) it.checked = !deselected.has(it.value);
    const heading = headingInView(old);
    const high = heading?.getBoundingClientRect().top;
    document.querySelector('header').replaceWith(header);
    old.replaceWith(main);
    document.querySelector('head style:last-of-type').replaceWith(report.querySelector('style'));
    if (focused) [...main.querySelectorAll('.filter input')].find(it => it.value === focused)?.focus({ preventScroll: true });
    const same = heading && [...main.querySelectorAll('h2')].find(it => it.textContent === heading.textContent);
    if (same) scrollBy(0, same.getBoundingClientRect().top - high);
  } else {
    document.head.append(report.querySelector('style'));
    document.body.append(header, main);
  }
}

async function ask(what) {
  const answer = await fetch(what, { cache: 'no-store' });
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return text;
}

async function follow() {
  try {
    const state = JSON.parse(await ask('state'));
    if (state.problem) throw new Error(state.problem);
    tell(state);
    // A report that takes long to make is asked for less often; and nothing is taken from under a selection.
    const reading = !getSelection().isCollapsed;
    if (state.edition !== shown && performance.now() >= notBefore && !reading) {
      const from = performance.now();
      swap(await ask('report'));
      shown = state.edition;
      notBefore = performance.now() + 10 * (performance.now() - from);
    }
  } catch (error) {
    line.textContent = error instanceof TypeError ? 'spdy lab view has stopped' : error.message;
  }
  setTimeout(follow, document.hidden ? 5000 : 1000);
}

follow();
