// Tests of ours in the suite's form, for what 0.4.5 does not ask: targeted fields (RFC 9213) and stale answers (RFC 5861).
// All are required.

const fresh = [['Cache-Control', 'max-age=10000'], ['Expires', 10000], ['Date', 0]]

// An answer with these fields, three seconds, and the same request again.
function twice (id, name, headers, expected) {
  // What is for caches alone need not reach clients.
  const kept = headers.map(([field, value]) => [field, value, field !== 'CDN-Cache-Control'])
  return {
    id,
    name,
    requests: [
      { response_headers: kept, setup: true, pause_after: true },
      { expected_type: expected }
    ]
  }
}

function targeted (id, name, value, others, expected) {
  return twice(`targeted-${id}`, name, [['CDN-Cache-Control', value], ...others], expected)
}

function failing (id, name, control, status) {
  return {
    id,
    name,
    requests: [
      { response_headers: [['Cache-Control', control]], setup: true, pause_after: true },
      { response_status: [503, 'Service Unavailable'], expected_status: status, check_body: false }
    ]
  }
}

export default {
  name: 'Targeted fields and stale answers',
  id: 'more',
  tests: [
    targeted('lifetime', 'a targeted lifetime is one', 'max-age=3600', [], 'cached'),
    targeted('extension', 'what is not known in a targeted field is passed over', 'foo, max-age=3600, bar="x"', [], 'cached'),
    targeted('overflow', 'a targeted lifetime of more seconds than there are is a long one', 'max-age=999999999999999', [], 'cached'),
    targeted('age', 'Age counts against a targeted lifetime', 'max-age=3600', [['Date', 0], ['Age', '7200']], 'not_cached'),
    targeted('none', 'a targeted lifetime of nothing is none, whatever Expires says', 'max-age=0', [['Expires', 10000], ['Date', 0]], 'not_cached'),
    targeted('longer', 'a targeted lifetime is longer than that of others', 'max-age=3600', [['Cache-Control', 'max-age=1']], 'cached'),
    targeted('shorter', 'a targeted lifetime is shorter than that of others', 'max-age=1', [['Cache-Control', 'max-age=3600']], 'not_cached'),
    targeted('private', 'targeted private', 'private', fresh, 'not_cached'),
    targeted('no-cache', 'targeted no-cache', 'no-cache', fresh, 'not_cached'),
    targeted('no-store', 'targeted no-store', 'no-store', fresh, 'not_cached'),
    targeted('over-no-store', 'a targeted lifetime stands over no-store of others', 'max-age=3600', [['Cache-Control', 'no-store']], 'cached'),
    targeted('no-dictionary', 'what is no dictionary is passed over whole', 'max-age=3600, &&&', [['Cache-Control', 'no-store']], 'not_cached'),
    targeted('wrong-type', 'a lifetime in quotes is none', 'max-age="3600"', [['Cache-Control', 'no-store']], 'not_cached'),
    twice('while-revalidate', 'what is stale is used while it is validated',
      [['Cache-Control', 'max-age=1, stale-while-revalidate=3600'], ['ETag', '"a"']], 'cached'),
    {
      id: 'while-revalidate-over',
      name: 'and not after that time',
      requests: [
        { response_headers: [['Cache-Control', 'max-age=1, stale-while-revalidate=4'], ['ETag', '"a"']], setup: true, pause_after: true },
        { response_headers: [['Cache-Control', 'no-cache', false], ['ETag', '"b"', false]], expected_type: 'cached', setup: true, pause_after: true },
        { expected_response_headers: [['Client-Request-Count', '3']] }
      ]
    },
    failing('if-error', 'what is stale is used where the origin fails', 'max-age=1, stale-if-error=60', 200),
    failing('if-error-over', 'and not after that time', 'max-age=1, stale-if-error=1', 503),
    failing('if-error-must-revalidate', 'nor where it must be validated', 'max-age=1, stale-if-error=60, must-revalidate', 503)
  ]
}
