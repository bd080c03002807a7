import { contentMark, printCheckpoint, type CheckpointStore } from "./checkpoint.ts";
import type { Input } from "./input.ts";

/** What a keeper needs to know when it saves. */
export interface Position {
  /** Everything before this byte is settled. */
  readonly settledTo: number;
  /** Everything before this byte was handed over. */
  readonly handedTo: number;
  readonly openLine: number | undefined;
}

/** Saves how far a file has been worked through. */
export interface PositionKeeper {
  /**
   * Resolves when lines up to this byte may be handed over: once a saved position says so. That is how a run after a
   * crash knows what may have been handed over before. The limit is set seconds ahead, so this seldom waits.
   */
  allow(to: number): Promise<void>;
  /** Saves, if the last time was a second ago or more. Does not wait. */
  saveIfDue(): void;
  /** Saves what is exactly true now, and saves no more. */
  finish(): Promise<void>;
}

export interface PositionKeeperOptions {
  readonly store: CheckpointStore;
  readonly key: string;
  readonly input: Input;
  readonly position: () => Position;
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number;
  /** Told once when saving begins to fail; reading goes on. */
  readonly onFailure: (error: unknown) => void;
}

const intervalMs = 1_000;
const leastAheadBytes = 1024 * 1024;

export function createPositionKeeper(options: PositionKeeperOptions): PositionKeeper {
  const { store, key, input, position, now, onFailure } = options;
  let limit = 0;
  let handedAtLastSave = position().handedTo;
  let lastSaveAt = now();
  let saving: Promise<void> | undefined;
  let failing = false;
  let finished = false;

  async function save(upTo: (position: Position) => number): Promise<void> {
    const at = position();
    const handedTo = upTo(at);
    // Until the save is done, neither the old limit nor the new one may be passed.
    limit = Math.min(limit, handedTo);
    handedAtLastSave = at.handedTo;
    lastSaveAt = now();
    try {
      const content = await contentMark(input, at.settledTo);
      await store.save(
        key,
        printCheckpoint({ offset: at.settledTo, handedTo, openLine: at.openLine, content }),
      );
      failing = false;
    } catch (error) {
      // A position that is not saved means that more is read again, nothing worse.
      if (!failing) onFailure(error);
      failing = true;
    }
    limit = handedTo;
  }

  const begin = (upTo: (position: Position) => number): Promise<void> =>
    (saving = save(upTo).finally(() => (saving = undefined)));

  const ahead = ({ handedTo }: Position): number =>
    handedTo + Math.max(leastAheadBytes, 2 * (handedTo - handedAtLastSave));

  return {
    async allow(to) {
      while (to > limit && !finished) {
        if (saving !== undefined) await saving;
        else await begin((at) => Math.max(to, ahead(at)));
      }
    },
    saveIfDue() {
      if (saving === undefined && !finished && now() - lastSaveAt >= intervalMs) void begin(ahead);
    },
    async finish() {
      finished = true;
      while (saving !== undefined) await saving;
      await begin((at) => at.handedTo);
    },
  };
}
