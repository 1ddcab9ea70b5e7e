'use strict'

// Reads `--name value` pairs into a copy of `defaults`; what has no dashes is collected as `words`.
// A name that is not in `defaults` ends the program: a mistyped option must not pass unseen.
module.exports = function readOptions (defaults) {
  const options = { ...defaults, words: [] }
  const given = process.argv.slice(2)
  while (given.length > 0) {
    const word = given.shift()
    if (!word.startsWith('--')) {
      options.words.push(word)
      continue
    }
    const name = word.slice(2)
    if (!(name in defaults) || given.length === 0) {
      console.error(`unknown option or no value: ${word}`)
      process.exit(2)
    }
    options[name] = given.shift()
  }
  return options
}
