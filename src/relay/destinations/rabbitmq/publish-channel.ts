/** A message on its way to the broker. */
export interface OutgoingMessage {
  readonly exchange: string;
  readonly routingKey: string;
  readonly body: Buffer;
  readonly messageId: string;
  readonly contentType: string | undefined;
  /** At most 255 bytes. */
  readonly type: string | undefined;
  /** Seconds since 1970. */
  readonly timestamp: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

/** What is told of a channel. */
export interface PublishEvents {
  /** No queue would take it. Said before its confirmation. */
  returned(message: ReturnedMessage): void;
  /** The channel or its connection is gone; nothing follows, and nobody knows what became of what is unconfirmed. Said once. */
  lost(reason: Error): void;
}

export interface ReturnedMessage {
  readonly exchange: string;
  readonly routingKey: string;
  readonly messageId: unknown;
  readonly reason: string;
}

/** A channel in confirm mode. */
export interface PublishChannel {
  /**
   * Sends it, persistent and mandatory. `confirmed(true)`: the broker has it; `confirmed(false)`: it says it could not keep
   * it. Neither is called when the channel is lost. Throws what cannot be written, of which nothing is sent.
   */
  publish(message: OutgoingMessage, confirmed: (kept: boolean) => void): void;
  close(): Promise<void>;
}

/** The small part of a client that publishing needs. Connects when a channel is asked for, and anew after a loss. */
export interface PublishClient {
  open(events: PublishEvents): Promise<PublishChannel>;
  /** Why the broker takes nothing at present: it is out of memory or disk. */
  blocked(): string | undefined;
  /** Closes the connection where it is the destination's own. */
  close(): Promise<void>;
}
