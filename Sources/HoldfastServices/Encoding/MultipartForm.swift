// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

public import Foundation
public import Holdfast
private import Synchronization

/// Fields and files, as a form with `enctype="multipart/form-data"` sends them (RFC 7578).
///
/// ```swift
/// let form: MultipartForm = [.field("title", value: "Sea"), .file("photo", at: url, contentType: "image/jpeg")]
/// ```
public struct MultipartForm: Sendable, ExpressibleByArrayLiteral {
    /// One field or file.
    public struct Part: Sendable {
        enum Content: Sendable {
            case bytes(ByteChunk)
            case values(QueryArgument)
            case file(URL)
            case stream(length: Int?, @Sendable () async throws -> any ByteSource)
        }

        let name: String
        let fileName: String?
        let contentType: String?
        let content: Content

        /// A field; an array is sent as several fields with the same name, nil as none.
        public static func field(_ name: String, value: (any QueryArgumentConvertible)?) -> Part {
            let value = value?.queryArgument ?? .undefined
            return Part(name: name, fileName: nil, contentType: nil, content: .values(value))
        }

        /// Bytes in memory; sent as a file if they have a file name.
        public static func data(
            _ name: String,
            bytes: Data,
            fileName: String? = nil,
            contentType: String = "application/octet-stream"
        ) -> Part {
            let bytes = ByteChunk(copying: bytes)
            return Part(name: name, fileName: fileName, contentType: contentType, content: .bytes(bytes))
        }

        /// A file on disk, with its own name or another, read in chunks when it is sent.
        public static func file(
            _ name: String,
            at url: URL,
            fileName: String? = nil,
            contentType: String = "application/octet-stream"
        ) -> Part {
            let fileName = fileName ?? url.lastPathComponent
            return Part(name: name, fileName: fileName, contentType: contentType, content: .file(url))
        }

        /// Bytes from a stream, which is created again for each attempt; the length if known, which must then be right.
        public static func stream(
            _ name: String,
            length: Int? = nil,
            fileName: String? = nil,
            contentType: String = "application/octet-stream",
            from make: @escaping @Sendable () async throws -> any ByteSource
        ) -> Part {
            let content = Content.stream(length: length, make)
            return Part(name: name, fileName: fileName, contentType: contentType, content: content)
        }
    }

    /// The fields and files in the order they are sent.
    public var parts: [Part]

    /// Creates a form with these parts.
    public init(_ parts: [Part] = []) { self.parts = parts }

    public init(arrayLiteral parts: Part...) { self.parts = parts }

    /// The content and its type.
    ///
    /// The boundary is 32 letters and digits drawn from `generator`, about 190 bits. Data of n bytes contain it by chance with
    /// a probability below n / 2^190, and nobody can know it in advance, so the data are not searched for it. Names are escaped
    /// as browsers do it, `"` as %22 and line ends as %0D and %0A (WHATWG HTML §4.10.21.8), and are otherwise UTF-8. Values are
    /// sent unchanged. A form without parts is only its closing line.
    ///
    /// Each file is checked now, and must be unchanged when an attempt reads it. If it was removed, replaced or changed in
    /// size, the attempt fails; a part of a file is never sent as the whole.
    ///
    /// - Parameter generator: must have good randomness, except in tests.
    /// - Throws: `ServiceError` `.badRequest` if a file does not exist, or if a content type is not visible ASCII on one line.
    public func encoded(using generator: inout some RandomNumberGenerator) throws -> HttpBody.Encoded {
        let letters = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
        let drawn = (0..<32).map { _ in letters[Int.random(in: 0..<letters.count, using: &generator)] }
        let boundary = "holdfast-" + String(drawn)
        var writer = MultipartWriter(boundary: boundary)
        for part in parts { try writer.append(part) }
        return HttpBody.Encoded(contentType: "multipart/form-data; boundary=\(boundary)", content: writer.finished())
    }
}

/// Writes the parts of a form, one after the other (RFC 2046 §5.1.1).
struct MultipartWriter {
    /// A part of the content.
    enum Section: Sendable {
        case bytes(ByteChunk)
        case stream(length: Int?, @Sendable () async throws -> any ByteSource)

        /// The length in bytes if known.
        var length: Int? {
            switch self {
            case .bytes(let bytes): bytes.count
            case .stream(let length, _): length
            }
        }
    }

    /// Bytes up to this length are copied, to join several small pieces into one chunk.
    private static let shortest = 16 << 10
    private let boundary: String
    private var sections: [Section] = []
    private var pending: [UInt8] = []

    init(boundary: String) { self.boundary = boundary }

    mutating func append(_ part: MultipartForm.Part) throws {
        switch part.content {
        case .values(let argument):
            for value in argument.values { try append(part, content: .bytes(ByteChunk(copying: value.utf8))) }
        case .bytes(let bytes):
            try append(part, content: .bytes(bytes))
        case .file(let url):
            let snapshot = try FileSnapshot(of: url)
            try append(part, content: .stream(length: snapshot.size) { FileSource(snapshot) })
        case .stream(let length, let make):
            try append(part, content: .stream(length: length, make))
        }
    }

    /// The whole content, with its closing line: bytes if all of it is in memory.
    mutating func finished() -> RequestBody {
        pending += Array("--\(boundary)--\r\n".utf8)
        flush()
        if sections.allSatisfy({ if case .bytes = $0 { true } else { false } }) {
            var all: [UInt8] = []
            for case .bytes(let bytes) in sections { bytes.append(to: &all) }
            return .bytes(ByteChunk(all))
        }
        let length = sections.reduce(0 as Int?) { sum, section in
            guard let sum, let length = section.length else { return nil }
            let (total, isTooLong) = sum.addingReportingOverflow(length)
            return isTooLong ? nil : total
        }
        return .factory(length: length) { [sections] in MultipartSource(sections) }
    }

    private mutating func append(_ part: MultipartForm.Part, content: Section) throws {
        var head = "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(escaped(part.name))\""
        if let fileName = part.fileName { head += "; filename=\"\(escaped(fileName))\"" }
        head += "\r\n"
        if let contentType = part.contentType {
            guard contentType.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
                throw ServiceError.badRequest(
                    "The content type of a form's part contains characters other than visible ASCII. "
                        + "Use a media type such as image/png."
                )
            }
            head += "Content-Type: \(contentType)\r\n"
        }
        pending += Array("\(head)\r\n".utf8)
        if case .bytes(let bytes) = content, bytes.count <= MultipartWriter.shortest {
            bytes.append(to: &pending)
        } else {
            flush()
            sections.append(content)
        }
        pending += Array("\r\n".utf8)
    }

    private mutating func flush() {
        sections.append(.bytes(ByteChunk(pending)))
        pending = []
    }

    private func escaped(_ name: String) -> String { PercentCoding.encode(name, allowing: .partName) }
}

/// Reads the sections of a form one after the other.
final class MultipartSource: ByteSource {
    private struct State {
        var sections: ArraySlice<MultipartWriter.Section>
        var current: Current?
        var isCancelled = false
    }

    /// The section being read.
    private struct Current {
        let source: any ByteSource
        /// The bytes still to come, if the length is known.
        var missing: Int?
    }

    private let reading = OneReader()
    private let state: Mutex<State>

    init(_ sections: [MultipartWriter.Section]) { state = Mutex(State(sections: sections[...])) }

    deinit { state.withLock { $0.current }?.source.cancel() }

    func next() async throws -> ByteChunk? {
        try reading.begin()
        defer { reading.end() }
        while true {
            let (isCancelled, current) = state.withLock { ($0.isCancelled, $0.current) }
            if isCancelled { throw CancellationError() }
            if let current {
                if let chunk = try await chunk(of: current) { return chunk }
                continue
            }
            switch state.withLock({ $0.sections.popFirst() }) {
            case nil: return nil
            case .bytes(let bytes): if !bytes.isEmpty { return bytes }
            case .stream(let length, let make): try begin(try await make(), length: length)
            }
        }
    }

    func cancel() {
        let current = state.withLock { state in
            state.isCancelled = true
            state.sections = []
            return state.current.take()
        }
        current?.source.cancel()
    }

    private func begin(_ source: any ByteSource, length: Int?) throws {
        let isCancelled = state.withLock { state in
            if !state.isCancelled { state.current = Current(source: source, missing: length) }
            return state.isCancelled
        }
        guard isCancelled else { return }
        source.cancel()
        throw CancellationError()
    }

    /// The next chunk of a section; nil at its end, after which the next section is read.
    private func chunk(of current: Current) async throws -> ByteChunk? {
        let chunk: ByteChunk?
        do {
            chunk = try await current.source.next()
        } catch {
            cancel()
            throw error
        }
        if let missing = current.missing, chunk.map({ $0.count > missing }) ?? (missing > 0) {
            cancel()
            throw ServiceError.badRequest(
                "A part of the form is not as long as declared. Declare its true length, or none."
            )
        }
        state.withLock { state in
            guard let chunk else { return state.current = nil }
            if let missing = state.current?.missing { state.current?.missing = missing - chunk.count }
        }
        return chunk
    }
}
