import { createHash } from "node:crypto";
import { seeded, type Payment } from "../setup.ts";

/** What waits at the broker. The same numbers give the same messages, in every process. */
export interface Load {
  /** Publications, copies included. */
  readonly deliveries: number;
  /** The part of the publications that are copies of an earlier one. */
  readonly copies: number;
  readonly accounts: number;
  readonly seed: number;
}

const payloadBytes = 300;

/** Publications in their order; every `1 / copies`th is a copy of a random earlier one. */
export function* publications({ deliveries, copies, accounts, seed }: Load): Generator<Payment> {
  const random = seeded(seed);
  const payloads = Array.from({ length: accounts }, (_, i) => payloadOf(i + 1));
  const every = copies === 0 ? Infinity : Math.round(1 / copies);
  // Which account a message is for is known by its number, so that a copy is the same without keeping them all.
  const payment = (number: number): Payment => {
    const digest = createHash("md5").update(`${seed}/${number}`).digest();
    const hex = digest.toString("hex");
    const id = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
    return { id, payload: payloads[digest.readUInt32LE(0) % accounts] as Buffer };
  };
  let made = 0;
  for (let i = 1; i <= deliveries; i++) {
    if (i % every === 0) yield payment(Math.floor(random() * made));
    else yield payment(made++);
  }
}

/** How many of the publications are no copies. */
export const distinct = ({ deliveries, copies }: Load): number =>
  copies === 0 ? deliveries : deliveries - Math.floor(deliveries / Math.round(1 / copies));

/** JSON of 300 bytes. */
function payloadOf(account: number): Buffer {
  const payment = { account, delta: 1, note: `payment to ${account}`, pad: "" };
  const pad = "x".repeat(payloadBytes - Buffer.byteLength(JSON.stringify(payment)));
  return Buffer.from(JSON.stringify({ ...payment, pad }));
}

/** Lists of so many, for what sends many at once. */
export function* lists<T>(of: Iterable<T>, length: number): Generator<T[]> {
  let list: T[] = [];
  for (const one of of) {
    list.push(one);
    if (list.length < length) continue;
    yield list;
    list = [];
  }
  if (list.length > 0) yield list;
}
