import type { Source } from "../../../src/sources/source.ts";
import { onTestEnd } from "../../support/cleanup.ts";
import { faultProxy } from "../../support/fault-proxy.ts";
import { openConnection } from "../broker/client.ts";
import { startBroker } from "../broker/process.ts";
import { referenceSource } from "../broker/reference-source.ts";
import { lineThrough, type Subject } from "../subject.ts";

/** What a consumer process makes its source of. */
export interface ReferenceConfig {
  readonly port: number;
}

const shortLeaseMs = 400;

/** The broker of the tests' own and a source for it: the suite shows with them that it passes what is right. */
export const subject: Subject = {
  name: "reference",
  module: import.meta.filename,
  order: "always",
  async open(t, needs) {
    const broker = await startBroker(t, needs.shortLease ? shortLeaseMs : 60_000);
    const proxy = needs.line ? await faultProxy(t, { host: "127.0.0.1", port: broker.port }) : undefined;
    let own = await openConnection(broker.port);
    onTestEnd(t, () => own.end());
    return {
      config: { port: proxy?.port ?? broker.port } satisfies ReferenceConfig,
      async publish(messages) {
        await own.ask({ publish: messages.map(({ id, key, body }) => ({ id, key, body })) });
      },
      unsettled: async () => (await own.ask({ counts: true })).unsettled,
      refused: async () => (await own.ask({ counts: true })).refused,
      async restart() {
        await broker.restart();
        own = await openConnection(broker.port);
      },
      ...(proxy === undefined ? {} : { line: lineThrough(proxy, '"settle"') }),
      ...(needs.shortLease ? { leaseMs: shortLeaseMs } : {}),
    };
  },
};

export const makeSource = (config: ReferenceConfig): Source => referenceSource(config);
