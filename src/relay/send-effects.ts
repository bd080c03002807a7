import type { TakenEffect } from "../store/outbox.ts";
import type { Alone } from "./alone.ts";
import { again, isSent, type Answer } from "./answer.ts";
import type { DestinationSettings } from "./destination-settings.ts";
import type { DeliveryContext } from "./destination.ts";
import { effectOf, type Effect } from "./effect.ts";
import { answerOfError } from "./failure.ts";

export interface SendHooks {
  /** Whether it may be sent now: its lease holds, and the relay is not stopping. Asked right before. */
  readonly maySend: (taken: TakenEffect) => boolean;
  readonly sending: (effects: readonly Effect[]) => void;
  readonly answered: (taken: TakenEffect, answer: Answer, tookMs: number) => void;
  /** It was not tried, and stays as it was. */
  readonly untried: (taken: TakenEffect) => void;
  /** What runs alone keeps the others from beginning. */
  readonly alone: Pick<Alone, "closed" | "began" | "ended">;
}

/** Sends what was taken, and tells of each effect exactly once. */
export interface EffectSender {
  add(effects: readonly TakenEffect[]): void;
  /** Sends one now, whoever waits. False: it was not tried, or not taken. */
  sendNow(taken: TakenEffect): Promise<boolean>;
  /** Others may begin again. */
  resume(): void;
  /** Calls that are running. */
  readonly running: number;
  /** Aborts what is running. */
  abort(): void;
}

/**
 * Effects of one key go one after another, and stop at the first that was not taken; those behind it are not tried. What
 * has another key, or none, goes beside them. All of a key that can be in hand come in one `add`, or after it was told of
 * all: the caller gives a lane back only then.
 */
export function effectSender(settings: DestinationSettings, hooks: SendHooks): EffectSender {
  const { name, destination, batches, concurrency, timeoutMs } = settings;
  const queue: (readonly TakenEffect[])[] = [];
  const calls = new Set<AbortController>();
  let running = 0;

  /** One call of the destination, which ends when its time is over, whether the destination heeds the signal or not. */
  async function call<T>(deliver: (context: DeliveryContext) => Promise<T>): Promise<T | { answer: Answer }> {
    const controller = new AbortController();
    calls.add(controller);
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<{ answer: Answer }>((resolve) => {
      const end = (text: string): void => {
        controller.abort(new Error(text));
        resolve({ answer: again(new Error(text), { ambiguous: true, fault: "destination" }) });
      };
      timer = setTimeout(() => end(`The destination did not answer in ${timeoutMs} ms.`), timeoutMs);
      controller.signal.addEventListener("abort", () => end("The relay stopped before the answer."));
    });
    try {
      return await Promise.race([deliver({ signal: controller.signal }), over]);
    } catch (error) {
      return { answer: answerOfError(error) };
    } finally {
      clearTimeout(timer);
      calls.delete(controller);
    }
  }

  /** True: all were sent. */
  async function sendChain(chain: readonly TakenEffect[]): Promise<boolean> {
    for (const [index, taken] of chain.entries()) {
      if (!hooks.maySend(taken)) {
        chain.slice(index).forEach(hooks.untried);
        return false;
      }
      const effect = effectOf(name, taken);
      hooks.sending([effect]);
      const started = performance.now();
      const got = await call(async (context) => ({ answer: await destination.deliver!(effect, context) }));
      hooks.answered(taken, got.answer, performance.now() - started);
      // What was refused holds its key only where the user wants it so; the database decides that.
      if (isSent(got.answer)) continue;
      chain.slice(index + 1).forEach(hooks.untried);
      return false;
    }
    return true;
  }

  /** True: all were sent. */
  async function sendBatch(all: readonly TakenEffect[]): Promise<boolean> {
    const batch = all.filter((taken) => {
      const may = hooks.maySend(taken);
      if (!may) hooks.untried(taken);
      return may;
    });
    if (batch.length === 0) return false;
    let sentAll = batch.length === all.length;
    const effects = batch.map((taken) => effectOf(name, taken));
    hooks.sending(effects);
    const started = performance.now();
    const got = await call((context) => destination.deliverBatch!(effects, context));
    const tookMs = performance.now() - started;
    for (const [index, taken] of batch.entries()) {
      const answer = "answer" in got ? got.answer : got[index];
      if (answer === undefined) hooks.untried(taken);
      else hooks.answered(taken, answer, tookMs);
      sentAll &&= answer !== undefined && isSent(answer);
    }
    return sentAll;
  }

  const send = (work: readonly TakenEffect[]): Promise<boolean> =>
    batches ? sendBatch(work) : sendChain(work);

  function next(): void {
    while (running < concurrency && !hooks.alone.closed) {
      const work = queue.shift();
      if (work === undefined) return;
      running++;
      hooks.alone.began();
      void send(work).finally(() => {
        running--;
        hooks.alone.ended();
        next();
      });
    }
  }

  async function sendNow(taken: TakenEffect): Promise<boolean> {
    running++;
    try {
      return await send([taken]);
    } finally {
      running--;
    }
  }

  return {
    get running() {
      return running;
    },
    add(effects) {
      if (effects.length === 0) return;
      if (batches) queue.push(effects);
      else queue.push(...chainsOf(effects));
      next();
    },
    sendNow,
    resume: next,
    abort() {
      for (const controller of calls) controller.abort();
    },
  };
}

/** Effects of one key together, in their order; each without a key alone. */
function chainsOf(effects: readonly TakenEffect[]): readonly (readonly TakenEffect[])[] {
  const byKey = new Map<string, TakenEffect[]>();
  const chains: TakenEffect[][] = [];
  for (const effect of effects) {
    const chain = effect.key === undefined ? undefined : byKey.get(effect.key);
    if (chain !== undefined) {
      chain.push(effect);
      continue;
    }
    const fresh = [effect];
    chains.push(fresh);
    if (effect.key !== undefined) byKey.set(effect.key, fresh);
  }
  return chains;
}
