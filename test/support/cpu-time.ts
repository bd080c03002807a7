/** Milliseconds of processor time that the work took: on a busy machine the clock goes on while nothing is done. */
export function cpuTimeMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
