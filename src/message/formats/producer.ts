import type { RawDelivery } from "./format.ts";

export interface ProducerOption {
  /**
   * The producer's name, part of every identity of this source. Default: the topic, queue, subject or path the delivery
   * came from. Give it where that may be renamed, or where one producer sends by several ways.
   */
  readonly producer?: string | undefined;
}

/** The producer that the options name, or else the delivery's channel. */
export const receiveProducer = (options: ProducerOption, delivery: RawDelivery): string | undefined =>
  options.producer ?? delivery.channel;
