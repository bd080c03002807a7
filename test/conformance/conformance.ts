import { randomBytes } from "node:crypto";
import { after, describe, test } from "node:test";
import type { Scope } from "../support/cleanup.ts";
import { cases } from "./cases.ts";
import { openStage } from "./stage.ts";
import { caseNames, type CaseName, type Subject } from "./subject.ts";

const caseTimeoutMs = 150_000;

/** Declares the suite's tests for a source; `only`: of these cases, where the others ask what another subject has answered. */
export function conformance(subject: Subject, only: readonly CaseName[] = caseNames): void {
  describe(`${subject.name}:`, { concurrency: 4 }, () => {
    const hooks: (() => Promise<void> | void)[] = [];
    const suite: Scope = { after: (hook) => void hooks.push(hook) };
    after(async () => {
      for (const hook of hooks) await hook();
    });

    for (const one of cases.filter(({ name }) => only.includes(name))) {
      const variants = one.name === "joins-and-leaves" ? (subject.variants ?? [undefined]) : [undefined];
      for (const variant of variants) {
        const lacks =
          subject.lacks?.[one.name] ??
          (one.name === "order" && subject.order === "never" ? "no order is promised" : undefined);
        const title = variant === undefined ? one.title : `${one.title} (${variant})`;
        test(
          title,
          {
            timeout: caseTimeoutMs,
            ...(lacks === undefined ? {} : { skip: lacks }),
          },
          async (t) => {
            const name = [one.name, variant, randomBytes(4).toString("hex")]
              .filter((part) => part !== undefined)
              .join("-");
            const stage = await openStage(t, subject, suite, {
              ...one.needs,
              name,
              ...(variant === undefined ? {} : { variant }),
            });
            if (stage !== undefined) await one.play(stage);
          },
        );
      }
    }
  });
}
