/** Where something listens. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface KafkaFacts {
  /** `host:port` of each node, as `bootstrap.servers` takes it. */
  readonly brokers: readonly string[];
  /** `false`: librdkafka's mock cluster, in memory, without most of the administration. */
  readonly real: boolean;
  /**
   * A second listener of the first node, for a fault proxy: the node listens at `target` and tells its clients to
   * connect to `advertised`, where nothing listens until the test starts its proxy there. Own single nodes only.
   */
  readonly proxied?: { readonly target: Address; readonly advertised: Address };
}

export interface RabbitmqFacts extends Address {
  /** With user and password, as every client takes it. */
  readonly url: string;
  /** Where the management plugin answers, for the same user; of brokers that are started here. */
  readonly management?: string;
}

export interface NatsFacts extends Address {
  /** `nats://host:port`; JetStream is on. */
  readonly url: string;
}

export interface SqsFacts extends Address {
  readonly endpoint: string;
  readonly region: string;
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

export interface PostgresFacts {
  /** With user and password. */
  readonly url: string;
}

/** What a test learns of each service. */
export interface ServiceFacts {
  readonly kafka: KafkaFacts;
  /** Three nodes; topics have three replicas, two of which must have a write. */
  readonly "kafka-cluster": KafkaFacts;
  readonly rabbitmq: RabbitmqFacts;
  readonly nats: NatsFacts;
  readonly sqs: SqsFacts;
  readonly postgres: PostgresFacts;
  /** In transaction mode, before the PostgreSQL that all tests share. */
  readonly pgbouncer: PostgresFacts;
}

export type ServiceName = keyof ServiceFacts;
