/** One way to have a service on this machine: a package of the system, one of Maven Central, one that npm ships. */
export interface Way<Facts> {
  /** As people are told: `Debian's rabbitmq-server`. */
  readonly name: string;
  /** The ports it needs, by names of its own; they stay the same when it starts again. */
  readonly ports: readonly string[];
  /** Makes the way passable, and tells why it is not. */
  open(help: Help): Promise<Open>;
  /** What runs at a place. The same place always gives the same plan. */
  plan(place: Place): Plan<Facts>;
}

/** `undefined`: the way is open. Else the reason why not, as a part of a sentence. */
export type Open = string | undefined;

/** What a way may do to become passable. */
export interface Help {
  /** Whether packages may be installed on the system and downloaded. */
  readonly install: boolean;
  /** Tells people what takes its time. */
  say(text: string): void;
}

/** Where an instance lives. */
export interface Place {
  /** Holds its data, settings and logs; only its processes work in it. */
  readonly directory: string;
  /** By the names that the way asked for. */
  readonly ports: Readonly<Record<string, number>>;
}

/** The processes of an instance and how to deal with them. */
export interface Plan<Facts> {
  readonly facts: Facts;
  /** In the order of their start. */
  readonly commands: readonly Command[];
  /** Writes what the first start needs. */
  setUp?(): Promise<void>;
  /** Runs before every start. */
  beforeStart?(): Promise<void>;
  /** Rejects, with the reason, while the service does not do its work yet; called again and again. */
  check(): Promise<void>;
  /** How long to wait for it, in milliseconds. Default 60,000. */
  readonly startTimeoutMs?: number;
  /** How long a graceful stop may take before SIGKILL, in milliseconds. Default 20,000. */
  readonly stopTimeoutMs?: number;
  /** Its processes have work to do when they end: SIGTERM, and SIGKILL only for those that do not follow. Default false. */
  readonly gentle?: boolean;
  /** Run after the processes were killed, where that alone does not end the service. */
  readonly afterKill?: Program;
  /** Run before the directory is removed, also for what a dead process left, where something outlives the processes. */
  readonly remove?: Program;
}

export interface Command extends Program {
  /** Names its log: `NAME.log`. */
  readonly name: string;
}

export interface Program {
  readonly program: string;
  readonly args: readonly string[];
  /** Added to a few variables of this process; `undefined` takes one away. Secrets go here or into files, never into `args`. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** How a service is found, and the ways to start it, the preferred first. */
export interface Kind<Facts> {
  /** What the environment names, or `undefined` where it names nothing. */
  given(): Facts | undefined;
  /** What listens on the usual port of this machine and proves, in its own protocol, to be of use. */
  usual?(): Promise<Facts | undefined>;
  readonly ways: readonly Way<Facts>[];
}
