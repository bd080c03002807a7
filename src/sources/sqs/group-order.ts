/** What may stand in a FIFO group; without one it stands alone. */
export interface Grouped {
  readonly group: string | undefined;
}

/**
 * One message of a FIFO group at a time: the next begins when the one before it is done. What is behind one that is not
 * done goes back unbegun, so that nothing of a group is ever settled before an earlier one.
 */
export interface GroupOrder<Entry extends Grouped> {
  /** True if the entry may begin now; else it waits behind the others of its group. */
  enter(entry: Entry): boolean;
  /** The entry that had begun is done: the next of its group, which begins now. */
  done(entry: Entry): Entry | undefined;
  /** The entry that had begun is not done: those behind it, in order, which leave with it. */
  undone(entry: Entry): readonly Entry[];
  /** Everything that waits, in order within its groups, leaves. What has begun stays. */
  takeWaiting(): readonly Entry[];
}

export function createGroupOrder<Entry extends Grouped>(): GroupOrder<Entry> {
  /** By group: the one that has begun, and those that wait behind it. */
  const groups = new Map<string, { head: Entry; readonly behind: Entry[] }>();

  /** The group in which this entry has begun; one that was given up earlier has none. */
  function groupOf(entry: Entry): { head: Entry; readonly behind: Entry[] } | undefined {
    const found = entry.group === undefined ? undefined : groups.get(entry.group);
    return found?.head === entry ? found : undefined;
  }

  return {
    enter(entry) {
      if (entry.group === undefined) return true;
      const found = groups.get(entry.group);
      if (found === undefined) groups.set(entry.group, { head: entry, behind: [] });
      else found.behind.push(entry);
      return found === undefined;
    },
    done(entry) {
      const found = groupOf(entry);
      const next = found?.behind.shift();
      if (found !== undefined && next !== undefined) found.head = next;
      else if (found !== undefined) groups.delete(entry.group!);
      return next;
    },
    undone(entry) {
      const found = groupOf(entry);
      if (found === undefined) return [];
      groups.delete(entry.group!);
      return found.behind;
    },
    takeWaiting: () => [...groups.values()].flatMap(({ behind }) => behind.splice(0)),
  };
}
