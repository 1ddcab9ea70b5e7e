// Tests of ours in the suite's form, for what 0.4.5 does not ask: targeted fields (RFC 9213), stale answers (RFC 5861), and
// where RFC 9111 wants more of a cache than that suite does. All are required.

const fresh = [['Cache-Control', 'max-age=10000'], ['Expires', 10000], ['Date', 0]]

// An answer with these fields, three seconds, and the same request again.
function twice (id, name, headers, expected) {
  // What is for caches alone need not reach clients.
  const kept = headers.map(([field, value, reaches = field !== 'CDN-Cache-Control']) => [field, value, reaches])
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

// What is no date, be it one to the eye, is past (RFC 9111 §5.3); of the three forms that are one the letters may have any case.
function expires (id, name, dates, expected) {
  // What cannot be read need not be passed on as it came.
  const lines = [].concat(dates).map(date => ['Expires', date, false])
  return twice(`expires-${id}`, name, [['Date', 0], ...lines], expected)
}

function aged (seconds) {
  const headers = [['Cache-Control', 'max-age=3600'], ['Date', 0], ['Age', seconds, false]]
  return twice(`age-${seconds}`, `an Age of ${seconds} is older than an hour`, headers, 'not_cached')
}

// An answer that caches may store if they know what its status means (RFC 9111 §5.2.2.3).
function understood (status, expected) {
  return {
    id: `must-understand-${status[0]}`,
    name: `no-store and must-understand on a ${status[0]}`,
    requests: [
      { response_status: status, response_headers: [['Cache-Control', 'no-store, must-understand, max-age=3600']], setup: true },
      { expected_type: expected }
    ]
  }
}

// The second of two requests is answered from the cache, and the answer has these fields still.
function told (id, name, headers, expected, second = {}) {
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
  name: 'What 0.4.5 does not ask',
  id: 'more',
  tests: [
    targeted('lifetime', 'a targeted lifetime is one', 'max-age=3600', [], 'cached'),
    targeted('extension', 'what is not known in a targeted field is passed over', 'foo, max-age=3600, bar="x"', [], 'cached'),
    targeted('overflow', 'a targeted lifetime of more seconds than there are is a long one', 'max-age=999999999999999', [], 'cached'),
    targeted('age', 'Age counts against a targeted lifetime', 'max-age=3600', [['Date', 0], ['Age', '7200']], 'not_cached'),
    targeted('none', 'a targeted lifetime of nothing is none, whatever Expires says', 'max-age=0', [['Expires', 10000], ['Date', 0]], 'not_cached'),
    targeted('over-past', 'a targeted lifetime counts, though Expires is past', 'max-age=3600', [['Expires', -10000], ['Date', 0]], 'cached'),
    targeted('over-unread', 'and though Expires is no date', 'max-age=3600', [['Expires', 'never', false], ['Date', 0]], 'cached'),
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
    failing('if-error-must-revalidate', 'nor where it must be validated', 'max-age=1, stale-if-error=60, must-revalidate', 503),
    twice('over', 'a lifetime that is over is over', [['Cache-Control', 'max-age=2']], 'not_cached'),
    aged('2147483647'),
    aged('2147483648'),
    aged('4294967296'),
    aged('99999999999999999999'),
    expires('far', 'a date that 32 bits do not hold', 'Thu, 20 Feb 2240 16:20:00 GMT', 'cached'),
    expires('850', 'a date in the form of RFC 850', 'Friday, 05-Mar-49 16:20:00 GMT', 'cached'),
    expires('asctime', 'a date in the form of asctime', 'Fri Mar  5 16:20:00 2049', 'cached'),
    expires('letters', 'a date in other letters', 'fRI, 05 mAR 2049 16:20:00 gmt', 'cached'),
    expires('utc', 'a date in UTC', 'Fri, 05 Mar 2049 16:20:00 UTC', 'not_cached'),
    expires('zone', 'a date in a zone', 'Fri, 05 Mar 2049 16:20:00 CEST', 'not_cached'),
    expires('year', 'a date with a short year', 'Fri, 05 Mar 49 16:20:00 GMT', 'not_cached'),
    expires('hour', 'a date with a short hour', 'Fri, 05 Mar 2049 6:20:00 GMT', 'not_cached'),
    expires('comma', 'a date without its comma', 'Fri 05 Mar 2049 16:20:00 GMT', 'not_cached'),
    expires('spaces', 'a date with more spaces', 'Fri, 05  Mar  2049 16:20:00 GMT', 'not_cached'),
    expires('dashes', 'a date with dashes', 'Fri, 05-Mar-2049 16:20:00 GMT', 'not_cached'),
    expires('points', 'a date with points', 'Fri, 05 Mar 2049 16.20.00 GMT', 'not_cached'),
    expires('two', 'two dates', ['Fri, 05 Mar 2049 16:20:00 GMT', 'Sat, 06 Mar 2049 16:20:00 GMT'], 'not_cached'),
    understood([200, 'OK'], 'cached'),
    understood([599, 'Whatever'], 'not_cached'),
    told('date', 'Date and Expires are those of the origin', [['Date', 0], ['Expires', 3600]], [['Date', 0], ['Expires', 3600]]),
    told('withheld', 'fields that are for one client alone reach no other',
      [['Cache-Control', 'max-age=3600, no-cache="set-cookie", private="a"'], ['Set-Cookie', 'a=b'], ['A', '1'], ['B', '2']], [['B', '2']], {
        expected_response_headers_missing: ['a', 'set-cookie']
      }),
    told('part', 'a part has the fields of the whole', [['Cache-Control', 'max-age=3600'], ['A', '1']], [['A', '1']], {
      request_headers: [['Range', 'bytes=2-5']],
      expected_status: 206,
      expected_response_text: 'body'
    })
  ]
}
