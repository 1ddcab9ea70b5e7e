// Runs the suite through the cache at BASE, and prints a line of JSON for each of its tests.
//
//   node run.js BASE             every test, in some 20 s: most wait for something to grow stale
//   node run.js BASE TEST-ID     one, with what was sent and what came on stderr

import fetch from 'node-fetch'

import { getResults, runTests } from 'http-cache-tests/client/runner.mjs'
import suites from 'http-cache-tests/tests/index.mjs'

import { correct, corrected } from './corrections.js'
import more from './more.js'

const [base, only] = process.argv.slice(2)
const print = console.log
// The suite tells of its exchanges on stdout.
console.log = console.error

const all = [...suites, more]
for (const suite of all) {
  suite.tests = suite.tests.filter(test => !test.browser_only && (only === undefined || test.id === only))
  for (const test of suite.tests) {
    correct(test)
    test.dump = only !== undefined
  }
}
await runTests(all, fetch, false, base)
const outcomes = getResults()
for (const suite of all) {
  for (const test of suite.tests) {
    const outcome = outcomes[test.id]
    print(JSON.stringify({
      id: test.id,
      kind: test.kind ?? 'required',
      corrected: corrected.has(test.id),
      ours: suite === more,
      passed: outcome === true,
      reason: outcome === true ? null : outcome.join(': ')
    }))
  }
}
