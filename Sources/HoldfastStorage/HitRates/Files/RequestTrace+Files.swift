// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

// The two forms of a file: 12 bytes a request, and a line of text a request.
extension RequestTrace {
    /// Reads a `.trace` file: each request takes 12 bytes, little-endian, the key in 8 and the size in 4; no header.
    ///
    /// - Parameters:
    ///   - path: absolute, or relative to the process's directory.
    ///   - limit: so many requests from the start; nil: all.
    /// - Throws: ``TraceError`` when there is no such file, and when it is empty or no such form.
    public init(contentsOf path: String, limit: Int? = nil) throws(TraceError) {
        try self.init(reading: try TraceReader(path: path), limit: limit)
    }

    /// Reads a text file: one request a line, `key size [time [life]]`.
    ///
    /// The fields are separated by tabs, else by spaces, else by commas: by the first of these that is in the line. The key is
    /// any word and is hashed; the size is in bytes (from 4 GiB on it counts as 4 GiB less one byte); time and life are in
    /// seconds with or without a fraction, the life from the time on. Empty lines, lines that begin with `#`, and a first line
    /// whose size is no number (a header) are passed over. A line may have 64 KiB.
    ///
    /// - Parameters:
    ///   - path: absolute, or relative to the process's directory.
    ///   - limit: so many requests from the start; nil: all.
    /// - Throws: ``TraceError``, which names the line.
    public init(contentsOfText path: String, limit: Int? = nil) throws(TraceError) {
        self.init()
        let file = try TraceFile(reading: path)
        var lines = TraceLines(path: path)
        while requests.count < limit ?? .max {
            let bytes = try file.read(1 << 20)
            try lines.append(bytes, isLast: bytes.isEmpty, to: &self, limit: limit ?? .max)
            if bytes.isEmpty { break }
        }
        if requests.isEmpty { throw TraceError(.empty, "\(path) has no request; write a line 'key size' for each.") }
    }

    /// The requests of a `.trace` file's bytes; an incomplete one at the end is left out, and so are those beyond the last number.
    public init(decoding bytes: [UInt8]) {
        self.init()
        reserve(bytes.count / TraceReader.recordSize)
        for record in TraceReader.records(in: bytes) { append(key: record.key, size: record.size) }
    }

    /// The requests as the bytes of a `.trace` file, keys by their numbers; times and lives are left out.
    public var encoded: [UInt8] {
        encoded(requests[...])
    }

    /// Writes a `.trace` file: see ``encoded``. The file appears, or is replaced, once it is whole.
    ///
    /// Blocks; takes about a second for fifty million requests.
    public func write(to path: String) throws(TraceError) {
        let draft = path + ".part"
        do {
            try writeAll(to: draft)
            try TraceFile.move(draft, to: path)
        } catch {
            TraceFile.remove(draft)
            throw error
        }
    }

    private func writeAll(to path: String) throws(TraceError) {
        let file = try TraceFile(writing: path)
        for start in stride(from: 0, to: requests.count, by: 1 << 16) {
            try file.write(encoded(requests[start..<min(start + 1 << 16, requests.count)]))
        }
    }

    init(reading reader: consuming TraceReader, limit: Int? = nil, maximumKeys: Int = .max) throws(TraceError) {
        self.init(maximumKeys: min(maximumKeys, Int(UInt32.max)))
        reserve(min(reader.requestCount ?? 0, limit ?? .max))
        while requests.count < limit ?? .max {
            let records = try reader.next(upTo: min(1 << 16, (limit ?? .max) - requests.count))
            if records.isEmpty { return }
            for record in records where !append(key: record.key, size: record.size) { throw .tooManyKeys }
        }
    }

    private func encoded(_ requests: ArraySlice<Request>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(requests.count * TraceReader.recordSize)
        for request in requests {
            withUnsafeBytes(of: UInt64(request.key).littleEndian) { bytes += $0 }
            withUnsafeBytes(of: request.size.littleEndian) { bytes += $0 }
        }
        return bytes
    }
}
