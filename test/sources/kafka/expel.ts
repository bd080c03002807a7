import { once } from "node:events";
import net from "node:net";
import { eventually, type TestTopic } from "./support.ts";

const leaveGroup = 13;

/** Makes the broker forget the group's only member, as an operator can, without a word to it. */
export async function expel(at: TestTopic): Promise<void> {
  const { groups } = await eventually(
    () => at.admin.describeGroups([at.groupId]),
    (answer) => answer.groups[0]?.state === "Stable",
  );
  const memberId = groups[0]!.members[0]!.memberId;
  const { coordinator } = await coordinatorOf(at);
  const socket = net.connect(coordinator);
  try {
    // The first version of the request, whose answer is an error's number.
    const head = Buffer.alloc(8);
    head.writeInt16BE(leaveGroup, 0);
    head.writeInt32BE(1, 4);
    const body = Buffer.concat([head, text("test"), text(at.groupId), text(memberId)]);
    const size = Buffer.alloc(4);
    size.writeInt32BE(body.length);
    socket.write(Buffer.concat([size, body]));
    const [answer] = (await once(socket, "data")) as [Buffer];
    const error = answer.readInt16BE(8);
    if (error !== 0) throw new Error(`The broker answers LeaveGroup with ${error}.`);
  } finally {
    socket.destroy();
  }
}

/** The tests' broker is alone. */
async function coordinatorOf(
  at: TestTopic,
): Promise<{ readonly coordinator: { host: string; port: number } }> {
  const { brokers } = await at.admin.describeCluster();
  const { host, port } = brokers[0]!;
  return { coordinator: { host, port } };
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  const size = Buffer.alloc(2);
  size.writeInt16BE(bytes.length);
  return Buffer.concat([size, bytes]);
}
