/** One message as the broker delivered it, its body untouched. */
export interface AmqpMessage {
  /** A counter of the channel: it means nothing on any other one. */
  readonly tag: number;
  readonly redelivered: boolean;
  readonly exchange: string;
  readonly routingKey: string;
  /** The AMQP basic properties under the names the clients give them: `messageId`, `timestamp`, `headers`, ... */
  readonly properties: Readonly<Record<string, unknown>>;
  readonly body: Uint8Array;
}

/** What a consumer is told on its channel. */
export interface ChannelEvents {
  message(message: AmqpMessage): void;
  /** The channel or its connection is gone, or the broker cancelled the consumer. Said once; nothing follows. */
  lost(reason: Error): void;
}

/** One channel, on one connection. What was delivered on it can be settled on it and nowhere else. */
export interface AmqpChannel {
  /** Messages ready in the queue. Rejects, and the channel is gone, where there is no such queue. Changes nothing. */
  count(queue: string): Promise<number>;
  /** Starts a consumer with a prefetch of its own; resolves with its tag. */
  consume(queue: string, prefetch: number, priority: number | undefined): Promise<string>;
  cancel(consumerTag: string): Promise<void>;
  /** Throws where the channel is gone. `upTo`: with everything before it. */
  ack(tag: number, upTo: boolean): void;
  /** Gives one message back to its queue. Throws where the channel is gone. */
  giveBack(tag: number): void;
  /** Resolves when the broker has read everything that was sent on this channel, or the channel is gone. */
  close(): Promise<void>;
}

/** The small part of a client that the source needs. Connects when a channel is asked for, and anew after a loss. */
export interface AmqpClient {
  open(events: ChannelEvents): Promise<AmqpChannel>;
  /** The broker's version, where the client tells it. */
  version(): string | undefined;
  /** Closes the connection where it is the source's own. */
  close(): Promise<void>;
}

/** What an adapter tells of the connection itself. */
export interface ConnectionEvents {
  /** The broker is out of memory or disk and reads nothing more from this connection. */
  blocked(reason: string): void;
}
