// Runs the suite against the cache at BASE and prints a line of JSON for each test.
//
//   node run.js BASE             all tests, about 20 s: most wait until a response is stale
//   node run.js BASE TEST-ID     one test, with its requests and responses on stderr

import fetch from 'node-fetch'

import { getResults, runTests } from 'http-cache-tests/client/runner.mjs'
import suites from 'http-cache-tests/tests/index.mjs'

import { correct, corrected } from './corrections.js'
import more from './more.js'

const [base, only] = process.argv.slice(2)
const print = console.log
// The suite logs its exchanges to stdout; this redirects them to stderr.
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
