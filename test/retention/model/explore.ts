/** What one process can do from a state. Empty: it waits for another, or is done. */
export interface Process<State> {
  readonly name: string;
  /** The states after its next step; more than one where it is not decided, such as commit or abort. */
  next(state: State): readonly State[];
  done(state: State): boolean;
}

export interface Explored {
  /** Different states that were reached. */
  readonly states: number;
  /** Different ends: every process is done. */
  readonly ends: number;
  /** The first states in which nobody can go on though not all are done. */
  readonly stuck: readonly string[];
  /** The first faults, each with the steps that led to it. */
  readonly faults: readonly string[];
}

/**
 * Every interleaving of the processes' steps. States must be plain values: two with the same JSON are one. `fault` says
 * what is wrong with a state, if anything is.
 */
export function explore<State>(
  start: State,
  processes: readonly Process<State>[],
  fault: (state: State) => string | undefined,
): Explored {
  const seen = new Set<string>();
  const stuck: string[] = [];
  const faults: string[] = [];
  let ends = 0;
  const waiting: { state: State; path: Path | undefined }[] = [{ state: start, path: undefined }];
  for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
    const { state, path } = one;
    const key = JSON.stringify(state);
    if (seen.has(key)) continue;
    seen.add(key);
    const wrong = fault(state);
    if (wrong !== undefined) {
      if (faults.length < 3) faults.push(`${wrong}: ${stepsOf(path)}`);
      continue;
    }
    let moved = false;
    let open = false;
    for (const process of processes) {
      if (process.done(state)) continue;
      open = true;
      for (const after of process.next(state)) {
        moved = true;
        waiting.push({ state: after, path: { name: process.name, before: path } });
      }
    }
    if (!open) ends += 1;
    else if (!moved && stuck.length < 3) stuck.push(stepsOf(path));
  }
  return { states: seen.size, ends, stuck, faults };
}

interface Path {
  readonly name: string;
  readonly before: Path | undefined;
}

function stepsOf(path: Path | undefined): string {
  const names: string[] = [];
  for (let at = path; at !== undefined; at = at.before) names.push(at.name);
  return names.reverse().join(" ");
}
