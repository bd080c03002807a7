import type { SQSClient } from "@aws-sdk/client-sqs";
import type { SqsClient } from "../../../src/sources/sqs/sqs.ts";

type Command = { readonly constructor: { readonly name: string }; readonly input: Record<string, unknown> };

/** What happens to one call: it goes through where this returns `undefined`, else it is answered with this, or rejects with an Error. */
export type Fault = (input: Record<string, unknown>) => unknown;

/** A client through which calls can be watched and made to fail, by the command's name: `DeleteMessageBatch`. */
export interface FaultyClient extends SqsClient {
  /** The next calls of this command; `undefined` ends it. */
  fault(name: string, fault: Fault | undefined): void;
  /** The inputs of all calls of this command, in order. */
  calls(name: string): readonly Record<string, unknown>[];
}

export function faultyClient(client: SQSClient): FaultyClient {
  const faults = new Map<string, Fault | undefined>();
  const calls = new Map<string, Record<string, unknown>[]>();
  return {
    fault: (name, fault) => void faults.set(name, fault),
    calls: (name) => calls.get(name) ?? [],
    async send(command: never, options) {
      const { constructor, input } = command as Command;
      const name = constructor.name.replace(/Command$/, "");
      calls.set(name, [...(calls.get(name) ?? []), input]);
      const answer = faults.get(name)?.(input);
      if (answer instanceof Error) throw answer;
      return answer ?? (await client.send(command, options));
    },
  };
}

/** An error as the SDK throws it, with what must not be seen in its message. */
export const serviceError = (name: string, message = "SECRET-TOKEN"): Error =>
  Object.assign(new Error(message), { name });
