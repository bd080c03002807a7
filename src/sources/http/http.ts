// The public surface of transactional-inbox/http.
export { toFastifyPlugin } from "./fastify-plugin.ts";
export type { FastifyLike, FastifyPlugin } from "./fastify-plugin.ts";
export type { Principal } from "./idempotency-key.ts";
export { toNodeListener } from "./node-listener.ts";
export type { NodeListener } from "./node-listener.ts";
export type { As4Answers, HttpReceiverOptions, RequestContext, RequestHandler } from "./options.ts";
export { httpReceiver } from "./receiver.ts";
export type { HttpReceiver } from "./receiver.ts";
export type { SchemeName, SignedRequest } from "./signature-schemes.ts";
export { verifiedBy } from "./verify.ts";
export type { SchemeOptions, VerifyOption } from "./verify.ts";
