/** What a customer sends to the orders service. The id is the customer's: sent again, it is the same order. */
export interface Order {
  readonly id: string;
  readonly customer: string;
  readonly cents: number;
}

/** What the orders service tells the others. `number`: which of the customer's orders it is, 1, 2, … */
export interface OrderPlaced {
  readonly order: string;
  readonly customer: string;
  readonly number: number;
  readonly cents: number;
}
