import { lookup as dnsLookup, type LookupAddress, type LookupOptions } from "node:dns";
import { BlockList, isIP, isIPv6 } from "node:net";

/** An address that is not the open network's: this machine's, a private network's, a cloud's own services'. */
export class PrivateAddressError extends Error {
  override readonly name = "PrivateAddressError";
}

const blocked = [
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"],
  ...["192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"],
  ...["203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"],
  ...["::/127", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16"],
  ...["fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"],
] as const;

/** Whether an IP address, in any of its written forms, is not one of the open network's. */
export type IsPrivate = (address: string) => boolean;

export function createIsPrivate(): IsPrivate {
  const list = new BlockList();
  for (const range of blocked) {
    const [network = "", bits] = range.split("/");
    list.addSubnet(network, Number(bits), isIPv6(network) ? "ipv6" : "ipv4");
  }
  return (address) => {
    const plain = address.replace(/%.*$/, "");
    if (!isIPv6(plain)) return isIP(plain) === 0 || list.check(plain, "ipv4");
    // An IPv4 address written as IPv6 is that address. A URL writes it in hex digits.
    const [, dotted, high, low] = /^(?:0*:)*:?ffff:(?:([\d.]+)|([0-9a-f]+):([0-9a-f]+))$/i.exec(plain) ?? [];
    if (dotted !== undefined) return isIP(dotted) === 0 || list.check(dotted, "ipv4");
    if (high !== undefined && low !== undefined) {
      const [a, b] = [parseInt(high, 16), parseInt(low, 16)];
      return list.check(`${a >> 8}.${a & 255}.${b >> 8}.${b & 255}`, "ipv4");
    }
    return list.check(plain, "ipv6");
  };
}

type LookupCallback = (
  error: NodeJS.ErrnoException | null,
  address: string | LookupAddress[],
  family?: number,
) => void;

/** A resolver that refuses names that lead to private addresses: what was checked is what is connected to. */
export const publicLookup =
  (isPrivate: IsPrivate) =>
  (hostname: string, options: LookupOptions, callback: LookupCallback): void => {
    dnsLookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, []);
      const found = addresses.find(({ address }) => isPrivate(address));
      if (found !== undefined) {
        return callback(
          new PrivateAddressError(`${hostname} leads to the private address ${found.address}.`),
          [],
        );
      }
      const [first] = addresses;
      if (options.all === true || first === undefined) return callback(null, addresses);
      callback(null, first.address, first.family);
    });
  };
