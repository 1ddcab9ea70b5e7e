// Tests of 0.4.5 that ask for what no cache can do or what RFC 9111 forbids, each with what it should ask for. The suite's
// authors changed the same tests in the same way later; no later version is published as a package.

// RFC 9111 §5.1: of a list the first member counts, and what is no number is ignored ("SHOULD", both). 0.4.5 wants such answers
// stale, but for `0,7200` in one line.
const ages = [
  'age-parse-nonnumeric',
  'age-parse-negative',
  'age-parse-float',
  'age-parse-prefix-twoline',
  'age-parse-dup-0',
  'age-parse-dup-0-twoline',
  'age-parse-dup-old',
  'age-parse-parameter',
  'age-parse-numeric-parameter'
]

// The origin hangs up without a word, and 0.4.5 looks for a field of its answer. None of the ten caches whose results come with
// it (`results/`) passes one of these; what must not be served stale is an error then (RFC 9111 §4.2.4).
const hangups = [
  'stale-close-must-revalidate',
  'stale-close-proxy-revalidate',
  'stale-close-no-cache',
  'stale-close-s-maxage=2'
]

const hungUp = {
  disconnect: true,
  expected_status: 502,
  check_body: false,
  expected_response_headers_missing: ['server-request-count']
}

export const corrected = new Set([...ages, ...hangups])

export function correct (test) {
  if (ages.includes(test.id)) test.requests[1].expected_type = 'cached'
  if (hangups.includes(test.id)) test.requests[1] = hungUp
}
