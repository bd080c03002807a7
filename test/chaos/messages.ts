import type { Random } from "../../examples/demo/random.ts";

/** `flaky` fails now and then, `permanent` always, `poison` kills its process, `nameless` has no id. */
export type Kind = "plain" | "flaky" | "permanent" | "poison" | "nameless";

/** A message's body; the whole text of it is the payload. */
export interface Body {
  readonly id: string | undefined;
  readonly key: string | undefined;
  readonly kind: Kind;
  readonly account: number;
  readonly amount: number;
}

/** What was sent under one id. */
export interface Sent {
  readonly kind: Kind;
  /** The bodies: more than one where a copy came with a changed payload. */
  readonly bodies: readonly string[];
}

export const accounts = 20;

export interface Messages {
  /** The next new message with the copies that go out beside it. */
  next(kind?: Kind): readonly string[];
  /** A copy of the body's message that its broker sends after it was acknowledged, if there is to be one; once. */
  afterAck(body: string): string | undefined;
  readonly sent: ReadonlyMap<string, Sent>;
  /** Bodies of messages without an id. */
  readonly nameless: readonly string[];
}

/** Makes up messages and remembers all of them: what the tables must hold follows from it. */
export function createMessages(random: Random): Messages {
  const sent = new Map<string, { kind: Kind; bodies: string[] }>();
  const nameless: string[] = [];
  const later = new Map<string, string>();

  function next(given?: Kind): readonly string[] {
    const number = sent.size + nameless.length;
    const kind = given ?? kindOf(random.next());
    const id = kind === "nameless" ? undefined : `m${number}`;
    const key = random.chance(0.7) ? `k${random.whole(1, 50)}` : undefined;
    const body: Body = { id, key, kind, account: random.whole(1, accounts), amount: random.whole(1, 1_000) };
    const text = JSON.stringify(body);
    const changed = JSON.stringify({ ...body, amount: body.amount + 1 });
    if (id === undefined) {
      nameless.push(text);
      return [text];
    }
    const bodies = [text];
    sent.set(id, { kind, bodies });
    const copies = [text];
    if (kind === "poison") return copies;
    if (random.chance(0.1)) copies.push(...Array.from({ length: random.whole(1, 3) }, () => text));
    if (random.chance(0.03)) {
      copies.push(changed);
      bodies.push(changed);
    }
    if (random.chance(0.12)) later.set(text, text);
    else if (bodies.length === 1 && random.chance(0.03)) {
      later.set(text, changed);
      bodies.push(changed);
    }
    return copies;
  }

  return {
    next,
    afterAck(body) {
      const copy = later.get(body);
      later.delete(body);
      return copy;
    },
    sent,
    nameless,
  };
}

function kindOf(number: number): Kind {
  if (number < 0.005) return "nameless";
  if (number < 0.015) return "permanent";
  return number < 0.025 ? "flaky" : "plain";
}
