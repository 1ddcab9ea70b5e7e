// Additional tests in the format of the suite, for what 0.4.5 does not test: targeted fields (RFC 9213), stale responses
// (RFC 5861), and requirements of RFC 9111. All are required.

const fresh = [['Cache-Control', 'max-age=10000'], ['Expires', 10000], ['Date', 0]]

// A response with these fields, a pause of three seconds, and the same request again.
function twice (id, name, headers, expected) {
  // A field for caches only need not reach clients.
  const checked = headers.map(([field, value, isChecked = field !== 'CDN-Cache-Control']) => [field, value, isChecked])
  return {
    id,
    name,
    requests: [
      { response_headers: checked, setup: true, pause_after: true },
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

// An invalid date counts as past, even if a human could read it (RFC 9111 §5.3). Letters of the three valid formats may have any
// case.
function expires (id, name, dates, expected) {
  // An invalid date need not be forwarded unchanged.
  const lines = [].concat(dates).map(date => ['Expires', date, false])
  return twice(`expires-${id}`, name, [['Date', 0], ...lines], expected)
}

function aged (seconds) {
  const headers = [['Cache-Control', 'max-age=3600'], ['Date', 0], ['Age', seconds, false]]
  return twice(`age-${seconds}`, `an Age of ${seconds} is more than an hour`, headers, 'not_cached')
}

// A response that a cache may store only if it understands the status (RFC 9111 §5.2.2.3).
function mustUnderstand (status, expected) {
  return {
    id: `must-understand-${status[0]}`,
    name: `no-store and must-understand on a ${status[0]}`,
    requests: [
      { response_status: status, response_headers: [['Cache-Control', 'no-store, must-understand, max-age=3600']], setup: true },
      { expected_type: expected }
    ]
  }
}

// The second response comes from the cache and still has the expected fields.
function cachedFields (id, name, headers, expected, second = {}) {
  return {
    id,
    name,
    requests: [
      { response_headers: headers, response_body: 'a body of some length', setup: true, pause_after: true },
      {
        response_body: 'a body of some length',
        expected_type: 'cached',
        setup_tests: ['expected_type'],
        expected_response_headers: expected,
        ...second
      }
    ]
  }
}

export default {
  name: 'Not tested by 0.4.5',
  id: 'more',
  tests: [
    targeted('lifetime', 'a targeted lifetime is used', 'max-age=3600', [], 'cached'),
    targeted('extension', 'unknown members of a targeted field are ignored', 'foo, max-age=3600, bar="x"', [], 'cached'),
    targeted('overflow', 'an overflowing targeted lifetime is a long one', 'max-age=999999999999999', [], 'cached'),
    targeted('age', 'Age counts against a targeted lifetime', 'max-age=3600', [['Date', 0], ['Age', '7200']], 'not_cached'),
    targeted('none', 'a targeted lifetime of 0 overrides Expires', 'max-age=0', [['Expires', 10000], ['Date', 0]], 'not_cached'),
    targeted('over-past', 'a targeted lifetime overrides a past Expires', 'max-age=3600', [['Expires', -10000], ['Date', 0]], 'cached'),
    targeted('over-unread', 'a targeted lifetime overrides an invalid Expires', 'max-age=3600', [['Expires', 'never', false], ['Date', 0]], 'cached'),
    targeted('longer', 'a targeted lifetime overrides a shorter max-age', 'max-age=3600', [['Cache-Control', 'max-age=1']], 'cached'),
    targeted('shorter', 'a targeted lifetime overrides a longer max-age', 'max-age=1', [['Cache-Control', 'max-age=3600']], 'not_cached'),
    targeted('private', 'targeted private', 'private', fresh, 'not_cached'),
    targeted('no-cache', 'targeted no-cache', 'no-cache', fresh, 'not_cached'),
    targeted('no-store', 'targeted no-store', 'no-store', fresh, 'not_cached'),
    targeted('over-no-store', 'a targeted lifetime overrides no-store in Cache-Control', 'max-age=3600', [['Cache-Control', 'no-store']], 'cached'),
    targeted('no-dictionary', 'a targeted field that is not a dictionary is ignored', 'max-age=3600, &&&', [['Cache-Control', 'no-store']], 'not_cached'),
    targeted('wrong-type', 'a targeted lifetime that is a string is ignored', 'max-age="3600"', [['Cache-Control', 'no-store']], 'not_cached'),
    twice('while-revalidate', 'a stale response is used during revalidation',
      [['Cache-Control', 'max-age=1, stale-while-revalidate=3600'], ['ETag', '"a"']], 'cached'),
    {
      id: 'while-revalidate-over',
      name: 'a stale response is not used after stale-while-revalidate',
      requests: [
        { response_headers: [['Cache-Control', 'max-age=1, stale-while-revalidate=4'], ['ETag', '"a"']], setup: true, pause_after: true },
        { response_headers: [['Cache-Control', 'no-cache', false], ['ETag', '"b"', false]], expected_type: 'cached', setup: true, pause_after: true },
        { expected_response_headers: [['Client-Request-Count', '3']] }
      ]
    },
    failing('if-error', 'a stale response is used if the origin fails', 'max-age=1, stale-if-error=60', 200),
    failing('if-error-over', 'a stale response is not used after stale-if-error', 'max-age=1, stale-if-error=1', 503),
    failing('if-error-must-revalidate', 'a stale response is not used with must-revalidate', 'max-age=1, stale-if-error=60, must-revalidate', 503),
    twice('over', 'a response is stale after its lifetime', [['Cache-Control', 'max-age=2']], 'not_cached'),
    aged('2147483647'),
    aged('2147483648'),
    aged('4294967296'),
    aged('99999999999999999999'),
    expires('far', 'a date that does not fit into 32 bits', 'Thu, 20 Feb 2240 16:20:00 GMT', 'cached'),
    expires('850', 'a date in RFC 850 format', 'Friday, 05-Mar-49 16:20:00 GMT', 'cached'),
    expires('asctime', 'a date in asctime format', 'Fri Mar  5 16:20:00 2049', 'cached'),
    expires('letters', 'a date in a different case', 'fRI, 05 mAR 2049 16:20:00 gmt', 'cached'),
    expires('utc', 'a date in UTC', 'Fri, 05 Mar 2049 16:20:00 UTC', 'not_cached'),
    expires('zone', 'a date in another time zone', 'Fri, 05 Mar 2049 16:20:00 CEST', 'not_cached'),
    expires('year', 'a date with a two-digit year', 'Fri, 05 Mar 49 16:20:00 GMT', 'not_cached'),
    expires('hour', 'a date with a one-digit hour', 'Fri, 05 Mar 2049 6:20:00 GMT', 'not_cached'),
    expires('comma', 'a date without a comma', 'Fri 05 Mar 2049 16:20:00 GMT', 'not_cached'),
    expires('spaces', 'a date with additional spaces', 'Fri, 05  Mar  2049 16:20:00 GMT', 'not_cached'),
    expires('dashes', 'a date with dashes', 'Fri, 05-Mar-2049 16:20:00 GMT', 'not_cached'),
    expires('points', 'a date with points', 'Fri, 05 Mar 2049 16.20.00 GMT', 'not_cached'),
    expires('two', 'two dates', ['Fri, 05 Mar 2049 16:20:00 GMT', 'Sat, 06 Mar 2049 16:20:00 GMT'], 'not_cached'),
    mustUnderstand([200, 'OK'], 'cached'),
    mustUnderstand([599, 'Whatever'], 'not_cached'),
    cachedFields('date', 'Date and Expires are unchanged', [['Date', 0], ['Expires', 3600]], [['Date', 0], ['Expires', 3600]]),
    cachedFields('withheld', 'fields listed in no-cache and private are not served from the cache',
      [['Cache-Control', 'max-age=3600, no-cache="set-cookie", private="a"'], ['Set-Cookie', 'a=b'], ['A', '1'], ['B', '2']], [['B', '2']], {
        expected_response_headers_missing: ['a', 'set-cookie']
      }),
    cachedFields('part', 'a partial response has the fields of the complete one', [['Cache-Control', 'max-age=3600'], ['A', '1']], [['A', '1']], {
      request_headers: [['Range', 'bytes=2-5']],
      expected_status: 206,
      expected_response_text: 'body'
    })
  ]
}
