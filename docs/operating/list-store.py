# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: the Holdfast authors
"""Lists the live entries of a Holdfast store as docs/disk-format.md describes it: python3 list-store.py DIRECTORY"""
import io, os, re, struct, sys
M, K, G = 2**64 - 1, (0x6A09E667F3BCC909, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1), 0x9E3779B97F4A7C15
def fold(x, y): return (x * y >> 64) ^ (x * y & M)
def head_hash(seed, data):
    a, b = (s := fold(seed ^ K[0], K[1])) ^ K[2], (t := fold(seed ^ K[2], K[3])) ^ K[0]
    for w0, w1, w2, w3 in struct.iter_unpack("<4Q", data + bytes(-len(data) % 32)):
        a, b = fold(w0 ^ a, w1 ^ s), fold(w2 ^ b, w3 ^ t)
    return fold((h := fold(a ^ len(data) ^ t, b ^ s)) ^ K[3], K[1]) ^ h
def body_sum(seed, data):
    a, b = [seed + (i + 1) * G & M for i in range(8)], [(i + 9) * G & M for i in range(8)]
    for row, words in enumerate(struct.iter_unpack("<8Q", data + bytes(-len(data) % 320))):
        for i, j in enumerate((i + (0, 2, 4, 6, 2)[row % 5]) % 8 for i in range(8)):
            a[j], b[i] = a[j] + words[i] & M, b[i] + a[j] + words[i] & M
        if row % 5 == 4: a = [x - 2 * y - (y >> 32) - (y << 32) & M for x, y in zip(a, b)]
    return head_hash(seed + len(data) & M, struct.pack("<16Q", *a, *b))
def record(data, at, number, seed):  # the 18 fields of the header, detail, units, inline body; None: there is no record
    f = struct.unpack_from("<I2BH4Q2I2q3Q2IQ", data, at) if at + 104 <= len(data) else (0,) * 18
    body, end = at + 104 + f[15], at + 104 + f[15] + (0 if f[2] & 2 else f[16])
    if f[0] != 0x43524648 or f[4] != number or end > len(data): return None
    right = head_hash(seed ^ 0x5245434F52443A32, data[at : at + 96] + data[at + 104 : body]) == f[17]
    return (f, data[at + 104 : body], (end - at + 15) // 16, data[body:end]) if right else None
def records(data, number, seed):  # (kind, order, primary, variant, offset) of each record: from the table, or by a scan
    magic, named, rows, blobs, table, _, total, _, check = struct.unpack("<8sQ2I5Q", data[-64:].ljust(64))
    end, at, want = table + 32 * rows + 24 * blobs, 64, (b"HFTABLE2", number, head_hash(seed, data[-64:-8]))
    sealed = (magic, named, check) == want and end == len(data) - 64 and body_sum(seed ^ number, data[table:end]) == total
    for p, v, place, order, _, kind, _, _ in struct.iter_unpack("<Q2IQH2BI", data[table : table + 32 * rows * sealed]):
        yield kind, order, p, v, place * 16
    while not sealed and at < len(data):
        f, _, units, body = record(data, at, number, seed) or ((0,) * 18, b"", 1, b"")
        if f[1] > 1 or f[1] and (f[2] & 2 or f[14] == body_sum(f[5], body)): yield f[1], f[5], f[7], f[8], at
        at += 16 * units
os.chdir(sys.argv[1])
form = open("FORMAT", "rb").read().ljust(4352)
copies = [c for c in (form[:256], form[4096:4352]) if c[:12] == b"HOLDFAST\3\0\0\0" and head_hash(0, c[:248]) == int.from_bytes(c[248:], "little")]
secret, _, epoch, suspect = struct.unpack_from("<32s3Q", max(copies or exit("bad FORMAT"), key=lambda c: c[152:160][::-1]), 16)
seed, found, marks, prefixes = head_hash(0x484F4C44, secret), {}, {}, []
for name in sorted(filter(re.compile("[0-9a-f]{16}[.]seg").fullmatch, os.listdir("segments"))):
    data, number = open("segments/" + name, "rb").read(), int(name[:16], 16)
    magic, version, _, named, begun, _, _, _, check = struct.unpack("<8s2I6Q", data[:64].ljust(64))
    whole = (magic, version, check) == (b"HFSEGMNT", 3, head_hash(seed, data[:56]))
    if whole and (named != number or begun < epoch): continue  # without a whole header its records count still
    for kind, order, primary, variant, at in records(data, number, seed):
        if kind == 5: prefixes += [(order, r[1]) for r in [record(data, at, number, seed)] if r]
        elif kind > 1: marks[kind, primary, variant] = max(order, marks.get((kind, primary, variant), 0))
        else: found.setdefault((primary, variant), []).append((order, data, at, number))
for (primary, hashed), all in sorted(found.items()):
    top = max(order for order, *_ in all)  # an older version never comes back: only the copies of this one count
    r = next(filter(None, (record(*place, seed) for order, *place in all if order == top)), None)
    f, detail = (r[0], io.BytesIO(b"" if r[0][9] else r[1])) if r else ((0,) * 18, io.BytesIO())
    take = lambda width: detail.read(int.from_bytes(detail.read(width), "little"))
    key, variant, tags = take(4), take(4), [take(2) for _ in range(int.from_bytes(detail.read(2), "little"))]
    dead = [(2, primary, 0), (3, primary, hashed)] + [(4, head_hash(seed + 1 & M, tag), 0) for tag in tags]
    dead = [marks.get(name, 0) for name in dead] + [order for order, prefix in prefixes if key.startswith(prefix)]
    blob, rest = "blobs/%016x.blob" % f[14], f[13] % f[16] if f[2] & 2 else 0
    size = f[13] // f[16] * 65536 + (rest and rest + 65536 - f[16]) if f[2] & 2 else None
    if r and max(dead) < top and size in (None, os.path.isfile(blob) and os.path.getsize(blob)):
        print(f"key={key!r} variant={variant!r} version={f[6]} stored={f[10]} body={f[13]} metadata={len(take(4))}",
              f"tags={tags} sealed={f[9]} pinned={f[2] & 1} suspect={int(f[6] < suspect)}")
