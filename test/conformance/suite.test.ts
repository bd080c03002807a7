import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import type { Account } from "./account.ts";
import { brokenSubject, type Fault } from "./broken.ts";
import { cases } from "./cases.ts";
import { openStage } from "./stage.ts";
import { caseNames, type CaseName } from "./subject.ts";

/** Each case with a fault it must find, and where in the account, or in which words, it shows. */
const findings: readonly (readonly [CaseName, Fault, keyof Account | RegExp])[] = [
  ["dies", "acks at delivery", "lost"],
  ["joins-and-leaves", "acks at delivery", "lost"],
  ["dies", "takes redeliveries for done", "lost"],
  ["cut-in-handler", "settles on another connection", "refused"],
  ["cut-in-ack", "never reconnects", /before it paused/],
  ["poison", "forgets a settlement", "unsettled"],
  ["poison", "settles twice", "refused"],
  ["lease", "never extends", "refused"],
  ["stopped-process", "gives up when nothing is settled", /ended with 1/],
  ["broker-restart", "never reconnects", "lost"],
  ["graceful-stop", "forgets settlements at close", /settled before, and delivered again|"unsettled":[1-9]/],
  ["graceful-stop", "stays open", /ended with SIGABRT/],
  ["order", "delivers backwards", "disordered"],
  ["no-identity", "makes up ids", "lost"],
  ["duplicates", "drops copies", "unsettled"],
  ["duplicates", "delivers twice", "settledWrongly"],
  ["back-pressure", "takes all there is", /in hand/],
  ["store-away", "gives up when nothing is settled", /ended with 1/],
  ["health", "says that something waits", /was not "ok"/],
];

test("every case of the suite is seen to fail below", () => {
  assert.deepEqual(new Set(findings.map(([name]) => name)), new Set(caseNames));
  assert.deepEqual(new Set(cases.map(({ name }) => name)), new Set(caseNames));
});

describe("the suite finds a source that", { concurrency: 4 }, () => {
  for (const [name, fault, where] of findings) {
    test(`${fault}: by the case "${name}"`, { timeout: 90_000 }, async (t) => {
      const one = cases.find((other) => other.name === name)!;
      const play = async (): Promise<(Error & { actual?: Account }) | undefined> => {
        const stage = await openStage(t, brokenSubject(fault), t, {
          ...one.needs,
          name: `${name}-${randomBytes(4).toString("hex")}`,
        });
        return one.play(stage!).then(
          () => undefined,
          (error: Error) => error,
        );
      };
      // Some faults need a moment that a play may miss: four plays must not all miss it.
      let error = await play();
      for (let plays = 1; error === undefined && plays < 4; plays++) error = await play();
      assert.ok(error !== undefined, "four plays found nothing");
      if (where instanceof RegExp) assert.match(error.message, where);
      else {
        const account = (error.actual ?? error.cause) as Account;
        assert.ok(!isEmpty(account?.[where]), `not by "${where}": ${error.stack}`);
      }
    });
  }
});

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === 0 || (Array.isArray(value) && value.length === 0);
