// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import HoldfastStorage
    internal import NIOCore

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    /// A request as it is sent, checked so that no server can read it as two (RFC 9112 §11.2).
    struct OutgoingRequest: Sendable {
        private(set) var key: OriginKey
        let method: RequestMethod
        private let target: String
        private var fields: [(name: String, value: String)]
        /// The content length in the request's own field.
        let declaredLength: Int?

        /// Creates it from the request that the transport got.
        ///
        /// - Parameter exact: the method and the target to send instead of the request's own.
        /// - Throws: ``ServiceError`` `.badRequest` or `.unsupported`, with progress `notSent`.
        init(_ request: URLRequest, exact: ExactRequestHead?) throws {
            guard let url = request.url, let parts = OutgoingURL(url.absoluteString) else {
                throw OutgoingRequest.refusal(
                    "The URL cannot be used. It needs a host, and the scheme http or https."
                )
            }
            key = parts.key
            target = exact?.requestTarget ?? parts.target
            let method = exact?.method.rawValue ?? request.httpMethod ?? "GET"
            guard let method = RequestMethod(validating: method) else {
                throw OutgoingRequest.refusal(
                    "The request's method is invalid (RFC 9110 §9.1). Use a token such as PATCH."
                )
            }
            guard method != .connect else {
                throw ServiceError(
                    .unsupported,
                    "CONNECT requests a tunnel, which this transport does not support. Use another method.",
                    progress: .notSent
                )
            }
            self.method = method
            guard target.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
                throw OutgoingRequest.refusal(
                    "The request's target contains a space or control character. Percent-encode it."
                )
            }
            var fields: [(name: String, value: String)] = []
            var declaredLength: Int?
            for (name, value) in request.allHTTPHeaderFields ?? [:] {
                guard !name.isEmpty, name.utf8.allSatisfy(\.isTokenCharacter) else {
                    throw OutgoingRequest.refusal(
                        "A header field's name is not a token (RFC 9110 §5.1). Use a valid name."
                    )
                }
                guard value.utf8.allSatisfy({ $0 != 0x0D && $0 != 0x0A && $0 != 0 }) else {
                    throw OutgoingRequest.refusal(
                        "A header field's value contains CR, LF or NUL (RFC 9110 §5.5). Remove them."
                    )
                }
                switch name.loweringASCII() {
                case "content-length": declaredLength = value.utf8.allSatisfy(\.isDigit) ? Int(value) : nil
                case "transfer-encoding": continue
                default: fields.append((name, value))
                }
            }
            // Foundation's fields have no order; sorting makes it at least constant.
            fields.sort { $0.name < $1.name }
            if let host = fields.firstIndex(where: { $0.name.loweringASCII() == "host" }) {
                fields.insert(fields.remove(at: host), at: 0)
            } else {
                fields.insert(("Host", parts.authority), at: 0)
            }
            self.fields = fields
            self.declaredLength = declaredLength
        }

        /// Sends the request to a server, whatever its URL says.
        ///
        /// - Parameter keepingHost: whether Host stays unchanged.
        mutating func aim(at member: OriginGroup.Member, keepingHost: Bool) {
            key = member.key
            // The first line is Host.
            if !keepingHost { fields[0].value = member.authority }
        }

        /// How content of this length is framed; nil: of unknown length.
        func framing(of length: Int?) -> RequestFraming.Content {
            guard let length = length ?? declaredLength else { return .chunked }
            guard length == 0 else { return .length(length) }
            // RFC 9110 §8.6: methods that expect content state that there is none.
            let says = declaredLength != nil || method == .post || method == .put || method == .patch
            return says ? .length(0) : .none
        }

        /// The head's bytes.
        ///
        /// - Parameter room: the length of the content that will follow in the same buffer.
        func head(_ framing: RequestFraming.Content, room: Int = 0, allocator: ByteBufferAllocator) -> ByteBuffer {
            var size = method.rawValue.utf8.count + target.utf8.count + 64
            for field in fields { size += field.name.utf8.count + field.value.utf8.count + 4 }
            var buffer = allocator.buffer(capacity: size + room)
            buffer.writeString(method.rawValue)
            buffer.writeInteger(UInt8(ascii: " "))
            buffer.writeString(target)
            buffer.writeStaticString(" HTTP/1.1\r\n")
            for field in fields {
                buffer.writeString(field.name)
                buffer.writeStaticString(": ")
                _ = buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: field.value.utf8.count) { target in
                    target.baseAddress.map { FieldText.write(field.value, to: $0) } ?? 0
                }
                buffer.writeStaticString("\r\n")
            }
            switch framing {
            case .none: break
            case .length(let length):
                buffer.writeStaticString("Content-Length: ")
                buffer.writeString(String(length))
                buffer.writeStaticString("\r\n")
            case .chunked: buffer.writeStaticString("Transfer-Encoding: chunked\r\n")
            }
            buffer.writeStaticString("\r\n")
            return buffer
        }

        private static func refusal(_ message: String) -> ServiceError {
            ServiceError(.badRequest, message, progress: .notSent)
        }
    }

    /// The parts of a URL that a request needs, verbatim: nothing is decoded, normalized or sorted.
    struct OutgoingURL: Sendable, Hashable {
        let key: OriginKey
        /// The Host field: without user information, and without the scheme's default port.
        let authority: String
        /// Path and query.
        let target: String

        /// The parts of an absolute http or https URL; nil for anything else.
        init?(_ url: String) {
            let text = url.utf8
            guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return nil }
            let isSecure: Bool
            switch String(url[..<colon]).loweringASCII() {
            case "http": isSecure = false
            case "https": isSecure = true
            default: return nil
            }
            var rest = text[text.index(after: colon)...]
            guard rest.starts(with: "//".utf8) else { return nil }
            rest = rest.dropFirst(2)
            let authorityEnd = rest.firstIndex { "/?#".utf8.contains($0) } ?? rest.endIndex
            var authority = rest[..<authorityEnd]
            if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
                authority = authority[authority.index(after: at)...]
            }
            guard authority.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\\") }) else { return nil }
            let usual = isSecure ? 443 : 80
            guard let (host, port) = OutgoingURL.split(authority) else { return nil }
            let name = host.first == UInt8(ascii: "[") ? host.dropFirst().dropLast() : host
            guard !name.isEmpty else { return nil }
            key = OriginKey(isSecure: isSecure, host: String(Substring(name)).loweringASCII(), port: port ?? usual)
            let isUsual = port == nil || port == usual
            self.authority = isUsual ? String(Substring(host)) : "\(Substring(host)):\(port ?? usual)"
            let target = rest[authorityEnd...].prefix { $0 != UInt8(ascii: "#") }
            self.target =
                target.first == UInt8(ascii: "/") ? String(Substring(target)) : "/" + String(Substring(target))
        }

        /// Host, with brackets if it has them, and port.
        private static func split(_ authority: Substring.UTF8View) -> (host: Substring.UTF8View, port: Int?)? {
            let hostEnd: Substring.UTF8View.Index
            if authority.first == UInt8(ascii: "[") {
                guard let bracket = authority.firstIndex(of: UInt8(ascii: "]")) else { return nil }
                hostEnd = authority.index(after: bracket)
            } else {
                hostEnd = authority.firstIndex(of: UInt8(ascii: ":")) ?? authority.endIndex
            }
            let rest = authority[hostEnd...]
            guard !rest.isEmpty else { return (authority, nil) }
            let digits = rest.dropFirst()
            guard rest.first == UInt8(ascii: ":"), digits.allSatisfy(\.isDigit) else { return nil }
            // An empty port is the scheme's default (RFC 3986 §6.2.3).
            guard !digits.isEmpty else { return (authority[..<hostEnd], nil) }
            guard digits.count <= 5, let port = Int(Substring(digits)), port <= 65_535 else { return nil }
            return (authority[..<hostEnd], port)
        }
    }

    /// The content for sending a request once.
    enum OutgoingContent: Sendable {
        case bytes(ByteChunk)
        /// Nothing of it has been read.
        case source(any ByteSource, length: Int?)

        /// Opens a body; nothing is sent yet, and nothing of a stream is read.
        ///
        /// - Throws: ``ServiceError`` `.badRequest` with progress `notSent`, or `CancellationError`.
        static func open(_ body: RequestBody, of request: URLRequest) async throws -> OutgoingContent {
            do {
                if body.isNone { return .bytes(ByteChunk()) }
                if case .bytes(let bytes) = body.form { return .bytes(bytes) }
                let content = try await body.content(of: request)
                return .source(try await content.open(), length: content.length)
            } catch let error as CancellationError {
                throw error
            } catch {
                throw ServiceError(
                    .badRequest,
                    "The request body cannot be opened, so nothing was sent; see the cause, and check a file's path and permissions.",
                    cause: error,
                    progress: .notSent
                )
            }
        }

        /// The length in bytes, if known.
        var length: Int? {
            switch self {
            case .bytes(let bytes): bytes.count
            case .source(_, let length): length
            }
        }

        /// Releases a source.
        func cancel() {
            if case .source(let source, _) = self { source.cancel() }
        }
    }
#endif
