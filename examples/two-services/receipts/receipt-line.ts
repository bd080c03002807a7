import type { OrderPlaced } from "../order-placed.ts";

/** A request, as the receipts service has written it down. */
export interface ReceiptLine {
  /** The idempotency key it came with. */
  readonly key: string;
  readonly receipt: OrderPlaced;
}

/** All requests of the file, in the order they came. */
export const readLines = (text: string): readonly ReceiptLine[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as ReceiptLine);
