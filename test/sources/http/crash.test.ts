import assert from "node:assert/strict";
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import test from "node:test";
import { testInbox } from "../../inbox/support.ts";
import { onTestEnd } from "../../support/cleanup.ts";
import { send } from "./support.ts";

for (const [at, expected] of [
  ["committed", "the first process's answer"],
  ["handled", "the second process's own"],
] as const) {
  test(`a process killed when it has ${at} before the answer: the retry gets ${expected}, the effect is there once`, async (t) => {
    const { url, schema, effects } = await testInbox(t);
    const start = async (point: string): Promise<{ child: ChildProcess; port: number }> => {
      const child = fork(
        join(import.meta.dirname, "dying-server.ts"),
        [JSON.stringify({ url, schema, at: point })],
        { execArgv: ["--import", "tsx"] },
      );
      onTestEnd(t, () => void child.kill("SIGKILL"));
      const [port] = (await once(child, "message")) as [number];
      return { child, port };
    };
    const request = { headers: { "idempotency-key": '"k"' }, body: '{"amount":5}' };
    const first = await start(at);
    const died = once(first.child, "exit");
    await assert.rejects(send(first.port, request), { code: "ECONNRESET" });
    assert.deepEqual(await died, [null, "SIGKILL"]);
    assert.deepEqual(await effects(), at === "committed" ? { k: 1 } : {});

    const second = await start("never");
    const answer = await send(second.port, request);
    assert.equal(answer.status, 201);
    const { pid } = JSON.parse(answer.body.toString()) as { pid: number };
    assert.equal(pid, at === "committed" ? first.child.pid : second.child.pid);
    const third = await send(second.port, request);
    assert.equal(third.body.toString(), answer.body.toString());
    assert.deepEqual(await effects(), { k: 1 });
  });
}
