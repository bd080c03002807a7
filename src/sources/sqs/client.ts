import type * as Sdk from "@aws-sdk/client-sqs";
import { InboxError } from "../../errors.ts";
import type { RawMessage } from "./raw-message.ts";

/** An `SQSClient` or `SQS` of `@aws-sdk/client-sqs`, or whatever else sends its commands. */
export interface SqsClient {
  send(command: never, options?: { readonly abortSignal?: AbortSignal }): Promise<unknown>;
}

/** Why one entry of a batch was not done. */
export interface EntryFailure {
  readonly code: string;
  /** Whether the same entry can never succeed, such as one with a receipt handle that is no longer valid. */
  readonly final: boolean;
}

export interface ReceiveOptions {
  /** 1 to 10. */
  readonly count: number;
  /** `undefined`: the queue's own. */
  readonly visibilitySeconds: number | undefined;
  readonly systemAttributes: readonly string[];
  /** FIFO only: the same id asks for the same messages again, where the first answer was lost. */
  readonly attemptId: string | undefined;
  readonly signal: AbortSignal;
}

/** What is asked of one queue. Rejects with the SDK's errors, which are for `errorName` and never printed. */
export interface SqsApi {
  attributes(names: readonly string[]): Promise<Readonly<Record<string, string>>>;
  /** Waits up to 20 seconds for the first message. */
  receive(options: ReceiveOptions): Promise<readonly RawMessage[]>;
  /** Up to 10 receipt handles. The answers come in their order; `undefined`: deleted. */
  delete(handles: readonly string[]): Promise<readonly (EntryFailure | undefined)[]>;
  /** Up to 10, in this order. The answers come in theirs; `undefined`: changed. */
  changeVisibility(
    entries: readonly { readonly handle: string; readonly seconds: number }[],
  ): Promise<readonly (EntryFailure | undefined)[]>;
}

/** How long one call may take beside its waiting, the SDK's own retries included. Its default is for ever. */
const callTimeoutMs = 5_000;
export const waitSeconds = 20;

/** The calls for one queue. Throws `missing-package` where the SDK is not installed. */
export async function connectSqs(client: SqsClient, queueUrl: string): Promise<SqsApi> {
  let sdk: typeof Sdk;
  try {
    sdk = await import("@aws-sdk/client-sqs");
  } catch (cause) {
    throw new InboxError(
      "missing-package",
      'The package "@aws-sdk/client-sqs" is not installed. Run: npm install @aws-sdk/client-sqs',
      { cause },
    );
  }
  const send = async <Output>(command: unknown, timeoutMs: number, stop?: AbortSignal): Promise<Output> => {
    const abort = new AbortController();
    const onStop = (): void => abort.abort();
    const timer = setTimeout(() => abort.abort(), timeoutMs);
    if (stop?.aborted === true) abort.abort();
    stop?.addEventListener("abort", onStop, { once: true });
    try {
      const answer = client.send(command as never, { abortSignal: abort.signal });
      // A connection that breaks in the middle of an answer may leave the SDK waiting for the rest, deaf to its signal.
      return (await Promise.race([answer, aborted(abort.signal)])) as Output;
    } finally {
      clearTimeout(timer);
      stop?.removeEventListener("abort", onStop);
    }
  };

  return {
    async attributes(names) {
      const command = new sdk.GetQueueAttributesCommand({
        QueueUrl: queueUrl,
        AttributeNames: names as Sdk.QueueAttributeName[],
      });
      const { Attributes } = await send<{ Attributes?: Record<string, string> }>(command, callTimeoutMs);
      return Attributes ?? {};
    },
    async receive({ count, visibilitySeconds, systemAttributes, attemptId, signal }) {
      const command = new sdk.ReceiveMessageCommand({
        QueueUrl: queueUrl,
        MaxNumberOfMessages: count,
        WaitTimeSeconds: waitSeconds,
        MessageAttributeNames: ["All"],
        MessageSystemAttributeNames: systemAttributes as Sdk.MessageSystemAttributeName[],
        ...(visibilitySeconds === undefined ? {} : { VisibilityTimeout: visibilitySeconds }),
        ...(attemptId === undefined ? {} : { ReceiveRequestAttemptId: attemptId }),
      });
      const { Messages } = await send<{ Messages?: RawMessage[] }>(
        command,
        waitSeconds * 1_000 + callTimeoutMs,
        signal,
      );
      return Messages ?? [];
    },
    async delete(handles) {
      const Entries = handles.map((handle, i) => ({ Id: String(i), ReceiptHandle: handle }));
      const command = new sdk.DeleteMessageBatchCommand({ QueueUrl: queueUrl, Entries });
      return answersOf(handles.length, await send<BatchAnswer>(command, callTimeoutMs));
    },
    async changeVisibility(entries) {
      const Entries = entries.map(({ handle, seconds }, i) => ({
        ...{ Id: String(i), ReceiptHandle: handle },
        VisibilityTimeout: seconds,
      }));
      const command = new sdk.ChangeMessageVisibilityBatchCommand({ QueueUrl: queueUrl, Entries });
      return answersOf(entries.length, await send<BatchAnswer>(command, callTimeoutMs));
    },
  };
}

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const onAbort = (): void => reject(new DOMException("The call took too long.", "AbortError"));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });

interface BatchAnswer {
  readonly Successful?: readonly { readonly Id?: string }[];
  readonly Failed?: readonly {
    readonly Id?: string;
    readonly Code?: string;
    readonly SenderFault?: boolean;
  }[];
}

/** A batch that was answered may still have failed in part: each entry is looked up, and one not named has failed. */
export function answersOf(count: number, { Successful, Failed }: BatchAnswer): (EntryFailure | undefined)[] {
  const done = new Set(Successful?.map(({ Id }) => Id));
  const failed = new Map(Failed?.map((entry) => [entry.Id, entry]));
  return Array.from({ length: count }, (_, i) => {
    const failure = failed.get(String(i));
    if (failure !== undefined) {
      const { Code = "no code", SenderFault = false } = failure;
      return { code: Code, final: SenderFault && !/throttl/i.test(Code) };
    }
    return done.has(String(i)) ? undefined : { code: "not answered", final: false };
  });
}
