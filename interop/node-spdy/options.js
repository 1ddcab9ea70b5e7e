'use strict'

// Reads `--name value` options into a copy of `defaults`; other arguments are collected in `positional`.
// Exits with an error on an option that is not in `defaults`, so that a typo does not go unnoticed.
module.exports = function readOptions (defaults) {
  const options = { ...defaults, positional: [] }
  const args = process.argv.slice(2)
  while (args.length > 0) {
    const arg = args.shift()
    if (!arg.startsWith('--')) {
      options.positional.push(arg)
      continue
    }
    const name = arg.slice(2)
    if (!(name in defaults) || args.length === 0) {
      console.error(`unknown option or missing value: ${arg}`)
      process.exit(2)
    }
    options[name] = args.shift()
  }
  return options
}
