// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: the Holdfast authors

#if Proxy
    internal import Foundation
    internal import Holdfast
    internal import HoldfastSemantics
    internal import NIOCore

    #if canImport(FoundationNetworking)
        internal import FoundationNetworking
    #endif

    /// A request as it goes out, checked so that no server can read it as two (RFC 9112 §11.2).
    struct OutgoingRequest: Sendable {
        /// How its content is framed.
        enum Framing: Sendable, Hashable {
            case none
            case length(Int)
            case chunked
        }

        let key: OriginKey
        let method: RequestMethod
        /// The origin as it stands in Host where the request names none.
        private let authority: String
        private let target: String
        private let fields: [(name: String, value: String)]
        /// The length that the request's own field gives its content.
        let declaredLength: Int?

        /// The request as a transport was given it.
        ///
        /// - Parameter exact: the method and the target to send in place of the request's own.
        /// - Throws: ``ServiceError`` `.badRequest` or `.unsupported`, with progress `notSent`.
        init(_ request: URLRequest, exact: ExactRequestHead?) throws {
            guard let url = request.url, let parts = OutgoingURL(url.absoluteString) else {
                throw OutgoingRequest.refusal(
                    "The URL cannot be sent to; give it a host, and the scheme http or https."
                )
            }
            key = parts.key
            authority = parts.authority
            target = exact?.requestTarget ?? parts.target
            let method = exact?.method.rawValue ?? request.httpMethod ?? "GET"
            guard let method = RequestMethod(validating: method) else {
                throw OutgoingRequest.refusal("The request's method is no token (RFC 9110 §9.1); give it a valid one.")
            }
            guard method != .connect else {
                throw ServiceError(
                    .unsupported,
                    "CONNECT asks for a tunnel, which this transport does not make; send another method.",
                    progress: .notSent
                )
            }
            self.method = method
            guard target.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
                throw OutgoingRequest.refusal(
                    "The request's target holds a blank or control character; percent-encode it."
                )
            }
            var fields: [(name: String, value: String)] = []
            var declaredLength: Int?
            for (name, value) in request.allHTTPHeaderFields ?? [:] {
                guard !name.isEmpty, name.utf8.allSatisfy(\.isTokenCharacter) else {
                    throw OutgoingRequest.refusal(
                        "A header field's name is no token (RFC 9110 §5.1); give it a valid one."
                    )
                }
                guard value.utf8.allSatisfy({ $0 != 0x0D && $0 != 0x0A && $0 != 0 }) else {
                    throw OutgoingRequest.refusal(
                        "A header field's value holds CR, LF or NUL (RFC 9110 §5.5); take them out."
                    )
                }
                switch name.loweringASCII() {
                case "content-length": declaredLength = value.utf8.allSatisfy(\.isDigit) ? Int(value) : nil
                case "transfer-encoding": continue
                default: fields.append((name, value))
                }
            }
            // Foundation's fields have no order; theirs is at least always the same.
            fields.sort { $0.name < $1.name }
            if let host = fields.firstIndex(where: { $0.name.loweringASCII() == "host" }) {
                fields.insert(fields.remove(at: host), at: 0)
            } else {
                fields.insert(("Host", authority), at: 0)
            }
            self.fields = fields
            self.declaredLength = declaredLength
        }

        /// How content of this length is framed; nil: of unknown length.
        func framing(of length: Int?) -> Framing {
            guard let length = length ?? declaredLength else { return .chunked }
            guard length == 0 else { return .length(length) }
            // RFC 9110 §8.6: methods that expect content say that there is none.
            let says = declaredLength != nil || method == .post || method == .put || method == .patch
            return says ? .length(0) : .none
        }

        /// The head's bytes.
        ///
        /// - Parameter room: how many bytes the content takes that is to follow in the same buffer.
        func head(_ framing: Framing, room: Int = 0, _ allocator: ByteBufferAllocator) -> ByteBuffer {
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
#endif
