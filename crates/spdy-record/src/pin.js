// With --pin, runs before any script of a recorded page: clock and random numbers then have the same values in each load.
(() => {
  "use strict";
  const START = Date.UTC(2013, 5, 4, 10, 0, 0);
  // The clock advances one millisecond per read, so a loop that waits for a later time ends.
  let reads = 0;
  const now = () => START + reads++;

  const RealDate = Date;
  function PinnedDate(...parts) {
    if (!new.target) return new RealDate(now()).toString();
    return Reflect.construct(RealDate, parts.length ? parts : [now()], new.target);
  }
  PinnedDate.prototype = RealDate.prototype;
  PinnedDate.prototype.constructor = PinnedDate;
  Object.setPrototypeOf(PinnedDate, RealDate);
  Object.defineProperty(PinnedDate, "length", { value: 7 });
  Object.defineProperty(PinnedDate, "name", { value: "Date" });
  PinnedDate.now = now;
  globalThis.Date = PinnedDate;
  if (globalThis.Performance) Performance.prototype.now = () => reads++;

  // mulberry32.
  let state = 0x5fd70313;
  const bits = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  Math.random = () => bits() / 4294967296;
  if (globalThis.Crypto) {
    Crypto.prototype.getRandomValues = (array) => {
      const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
      for (let at = 0; at < bytes.length; at++) bytes[at] = bits() & 255;
      return array;
    };
    Crypto.prototype.randomUUID = () => {
      const hex = [0, 0, 0, 0].map(() => bits().toString(16).padStart(8, "0")).join("");
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
    };
  }
})();
